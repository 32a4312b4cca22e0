//go:build unix

package engine

import "slices"

// Suspend excludes a sequence from further steps. It no longer counts toward MaxSeqs,
// and keeps its pages and cells until others need them.
func (e *Engine) Suspend(id ID) {
	if s := cut(&e.seqs, id); s != nil {
		s.suspended = true
		e.suspended = append(e.suspended, s)
	}
}

// cut removes a sequence from a list and returns it, or nil if it is not there.
func cut(list *[]*sequence, id ID) *sequence {
	i := slices.IndexFunc(*list, func(s *sequence) bool { return s.id == id })
	if i < 0 {
		return nil
	}
	s := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return s
}

// Resume ends a sequence's suspension; pages that it lost are computed again. It
// returns ErrBusy if no slot is free.
func (e *Engine) Resume(id ID) error {
	if len(e.seqs) == e.opt.MaxSeqs {
		return ErrBusy
	}
	if s := cut(&e.suspended, id); s != nil {
		s.suspended = false
		e.seqs = append(e.seqs, s)
	}
	return nil
}

// dropSuspended frees the pages and cells of the most recently suspended sequence that has any;
// it returns false if there is none.
func (e *Engine) dropSuspended() bool {
	for i := len(e.suspended) - 1; i >= 0; i-- {
		s := e.suspended[i]
		if s.inFlight || len(s.pages) == 0 && (s.source == nil || len(s.source.pages) == 0) {
			continue
		}
		e.drop(s)
		if x := s.source; x != nil {
			e.pages.free(x.pages)
			x.pages, x.encoded = x.pages[:0], false
		}
		e.stats.Preempted++
		return true
	}
	return false
}

// makeRoom frees pages and cells of suspended sequences until the next step has enough.
func (e *Engine) makeRoom() {
	if len(e.suspended) == 0 {
		return
	}
	for need := len(e.seqs) + pagesFor(e.opt.MaxTokens) + 1; (e.pages.unused() < need || e.cellsShort()) && e.dropSuspended(); {
	}
}

// suspendedPages returns how many pages are used only by suspended sequences.
func (e *Engine) suspendedPages() (n int) {
	for _, s := range e.suspended {
		for _, page := range s.pages {
			if e.pages.refs[page] == 1 {
				n++
			}
		}
		if s.source != nil {
			n += len(s.source.pages)
		}
	}
	return n
}
