//go:build unix

package engine

import "time"

// A prefixKey is what a full page holds: its tokens, behind those that an
// earlier page's number stands for. The tokens themselves are the key, not a
// hash of them, so that no two prompts are ever taken for each other.
type prefixKey struct {
	before uint64 // number of the pages before it; 0: none
	tokens [pageRows]int32
}

// A remembered page has a number that stands for all tokens up to its end.
// Numbers are not used again: what followed a forgotten page is never found.
type remembered struct {
	key    prefixKey
	number uint64 // 0: the page is not remembered
	older  int32  // among those that nobody uses; -1: none
	newer  int32
}

// prefixes remembers full pages by what they hold. Those that nobody uses form
// a list by their last use.
type prefixes struct {
	pages  []remembered
	find   map[prefixKey]int32 // page
	last   uint64              // the highest number given
	idle   int                 // remembered pages that nobody uses
	oldest int32               // of them; -1: none
	newest int32
}

func newPrefixes(n int) prefixes {
	return prefixes{pages: make([]remembered, n), find: map[prefixKey]int32{}, oldest: -1, newest: -1}
}

// add remembers a page that has just become full and returns its number.
func (p *prefixes) add(page int32, key prefixKey) uint64 {
	p.last++
	p.pages[page] = remembered{key: key, number: p.last}
	p.find[key] = page
	return p.last
}

// rest puts a page that nobody uses any more into the list; false: it is not
// remembered.
func (p *prefixes) rest(page int32) bool {
	r := &p.pages[page]
	if r.number == 0 {
		return false
	}
	r.older, r.newer = p.newest, -1
	if p.newest >= 0 {
		p.pages[p.newest].newer = page
	} else {
		p.oldest = page
	}
	p.newest = page
	p.idle++
	return true
}

// revive takes a page out of the list: somebody uses it again.
func (p *prefixes) revive(page int32) {
	r := &p.pages[page]
	if r.older >= 0 {
		p.pages[r.older].newer = r.newer
	} else {
		p.oldest = r.newer
	}
	if r.newer >= 0 {
		p.pages[r.newer].older = r.older
	} else {
		p.newest = r.older
	}
	p.idle--
}

// evict forgets the page that was unused for longest and returns it.
func (p *prefixes) evict() int32 {
	page := p.oldest
	p.revive(page)
	delete(p.find, p.pages[page].key)
	p.pages[page].number = 0
	return page
}

// key is what page i of a sequence holds when it is full.
func (s *sequence) key(i int, before uint64) (k prefixKey) {
	k.before = before
	copy(k.tokens[:], s.tokens[i*pageRows:])
	return k
}

// reuse gives a sequence that has computed nothing the remembered pages with
// which its tokens begin, up to the first wanted row. It reports whether it
// gave any.
func (e *Engine) reuse(s *sequence) bool {
	if !e.opt.Prefix || s.done > 0 || len(s.pages) > 0 {
		return false
	}
	for i := 0; (i+1)*pageRows <= min(s.want, len(s.tokens)-1); i++ {
		page, ok := e.pages.kept.find[s.key(i, s.prefix)]
		if !ok {
			break
		}
		s.pages = e.pages.share(s.pages, []int32{page})
		s.prefix = e.pages.kept.pages[page].number
		s.done += pageRows
	}
	if !s.tried {
		s.tried, s.cached = true, s.done
		e.stats.Prompts += int64(len(s.tokens))
		e.stats.PromptsReused += int64(s.done)
	}
	return s.done > 0
}

// remember notes the pages that a sequence has filled since it had computed
// from tokens. Where another sequence filled a page with the same meanwhile, it
// is used in place of the sequence's own.
func (e *Engine) remember(s *sequence, from int) {
	if !e.opt.Prefix {
		return
	}
	for i := from / pageRows; i < s.done/pageRows; i++ {
		key := s.key(i, s.prefix)
		if page, ok := e.pages.kept.find[key]; ok {
			own := s.pages[i]
			e.pages.share(nil, []int32{page})
			s.pages[i] = page
			e.pages.free([]int32{own})
			s.prefix = e.pages.kept.pages[page].number
			continue
		}
		s.prefix = e.pages.kept.add(s.pages[i], key)
	}
}

// Stats count what an engine has done since it was opened.
type Stats struct {
	Steps     int64
	Tokens    int64 // computed
	Preempted int64 // times that a sequence or a source lost its pages

	Drafted  int64 // tokens of drafts that were computed
	Accepted int64 // of them, accepted

	Prompts       int64 // tokens of queries
	PromptsReused int64 // of them, found remembered when they first came up

	Stages int             // of the pipeline; 1: the model is none
	Active time.Duration   // in which steps were under way
	Worked time.Duration   // in which its stages computed, all together
	Busy   []time.Duration // of Worked, each stage; nil: not known

	Graphs     int64 // of steps, that a GPU keeps
	GraphSteps int64 // of Steps, run as one

	Pages int // of the state
	Used  int // by sequences
	Kept  int // by nobody, but remembered
}

// Stats returns the counts.
func (e *Engine) Stats() Stats {
	s := e.stats
	n := e.ctx.Counters()
	s.Busy, s.Graphs, s.GraphSteps = n.Busy, n.Graphs, n.GraphSteps
	s.Stages, s.Active, s.Worked = e.fly.stages(), e.fly.active, e.fly.worked(s.Busy)
	s.Pages, s.Kept = e.opt.Pages, e.pages.kept.idle
	s.Used = s.Pages - e.pages.unused()
	return s
}

// Unused is how many state pages sequences may still take.
func (e *Engine) Unused() int { return e.pages.unused() }
