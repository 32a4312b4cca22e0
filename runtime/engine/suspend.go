//go:build unix

package engine

import "slices"

// Suspend lets a sequence wait: it is in no step, takes none of MaxSeqs, and keeps
// its pages unless others need them.
func (e *Engine) Suspend(id ID) {
	if s := cut(&e.seqs, id); s != nil {
		s.suspended = true
		e.suspended = append(e.suspended, s)
	}
}

// cut takes a sequence out of a list; nil: it is not there.
func cut(list *[]*sequence, id ID) *sequence {
	i := slices.IndexFunc(*list, func(s *sequence) bool { return s.id == id })
	if i < 0 {
		return nil
	}
	s := (*list)[i]
	*list = slices.Delete(*list, i, i+1)
	return s
}

// Resume lets a suspended sequence go on. What it lost is computed again. ErrBusy:
// no slot is free.
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

// dropSuspended takes the pages of the sequence that was suspended last; false:
// none has any.
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

// makeRoom takes pages of suspended sequences until a step's new rows have some.
func (e *Engine) makeRoom() {
	if len(e.suspended) == 0 {
		return
	}
	for need := len(e.seqs) + pagesFor(e.opt.MaxTokens) + 1; e.pages.unused() < need && e.dropSuspended(); {
	}
}

// suspendedPages is how many pages would be free without suspended sequences.
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
