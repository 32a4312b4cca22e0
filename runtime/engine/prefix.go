//go:build unix

package engine

import (
	"crypto/sha256"
	"time"
)

// A prefixKey is what a full page holds: its tokens, behind those that an
// earlier page's number stands for. The tokens themselves are the key, not a
// hash of them, so that no two prompts are ever taken for each other.
type prefixKey struct {
	before uint64            // number of the pages before it; 0: none
	space  [sha256.Size]byte // of a first page: whose it is, as Query.Prefixes says
	tokens [pageRows]int32
}

// A cachedPage has a number that stands for all tokens up to its end. Numbers are
// not used again: what followed an evicted page is never found.
type cachedPage struct {
	key    prefixKey
	number uint64 // 0: the page is not cached
	older  int32  // among those that nobody uses; -1: none
	newer  int32
}

// A prefixCache finds full pages by what they hold. Those that nobody uses form
// a list by their last use.
type prefixCache struct {
	pages  []cachedPage
	find   map[prefixKey]int32 // page
	last   uint64              // the highest number given
	idle   int                 // cached pages that nobody uses
	oldest int32               // of them; -1: none
	newest int32
}

func newPrefixCache(n int) prefixCache {
	return prefixCache{pages: make([]cachedPage, n), find: map[prefixKey]int32{}, oldest: -1, newest: -1}
}

// add caches a page that has just become full and returns its number.
func (p *prefixCache) add(page int32, key prefixKey) uint64 {
	p.last++
	p.pages[page] = cachedPage{key: key, number: p.last}
	p.find[key] = page
	return p.last
}

// release puts a page that nobody uses any more into the list of those that may be
// evicted; false: it is not cached.
func (p *prefixCache) release(page int32) bool {
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

// reuse takes a page out of the list: somebody uses it again.
func (p *prefixCache) reuse(page int32) {
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

// evict drops the least recently used page and returns it.
func (p *prefixCache) evict() int32 {
	page := p.oldest
	p.reuse(page)
	delete(p.find, p.pages[page].key)
	p.pages[page].number = 0
	return page
}

// key is what page i of a sequence holds when it is full.
func (s *sequence) key(i int, before uint64) (k prefixKey) {
	if k.before = before; before == 0 {
		k.space = s.space
	}
	copy(k.tokens[:], s.tokens[i*pageRows:])
	return k
}

// cachedPrefix is how many rows the prefix cache has for a sequence that has
// computed nothing, up to the first output row, and how many of their pages
// nobody uses.
func (e *Engine) cachedPrefix(s *sequence) (rows, unused int) {
	if !e.opt.Prefix || s.done > 0 || len(s.pages) > 0 {
		return 0, 0
	}
	for before := s.prefix; rows+pageRows <= min(s.want, len(s.tokens)-1); rows += pageRows {
		page, ok := e.pages.cache.find[s.key(rows/pageRows, before)]
		if !ok {
			break
		}
		before = e.pages.cache.pages[page].number
		if e.pages.refs[page] == 0 {
			unused++
		}
	}
	return rows, unused
}

// reuse gives a sequence that has computed nothing what cachedPrefix found.
func (e *Engine) reuse(s *sequence) {
	rows, _ := e.cachedPrefix(s)
	for i := range rows / pageRows {
		page := e.pages.cache.find[s.key(i, s.prefix)]
		s.pages = e.pages.share(s.pages, []int32{page})
		s.prefix = e.pages.cache.pages[page].number
	}
	s.done += rows
	if e.opt.Prefix && !s.tried {
		s.tried, s.cached = true, s.done
		e.stats.Prompts += int64(len(s.tokens))
		e.stats.PromptsReused += int64(s.done)
	}
}

// cachePages adds the pages to the prefix cache that a sequence has filled since
// it had computed from tokens. Where another sequence filled a page with the same
// meanwhile, it is used in place of the sequence's own.
func (e *Engine) cachePages(s *sequence, from int) {
	if !e.opt.Prefix {
		return
	}
	for i := from / pageRows; i < s.done/pageRows; i++ {
		key := s.key(i, s.prefix)
		if page, ok := e.pages.cache.find[key]; ok {
			own := s.pages[i]
			e.pages.share(nil, []int32{page})
			s.pages[i] = page
			e.pages.free([]int32{own})
			s.prefix = e.pages.cache.pages[page].number
			continue
		}
		s.prefix = e.pages.cache.add(s.pages[i], key)
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
	PromptsReused int64 // of them, found in the prefix cache when they first came up

	Stages int             // of the pipeline; 1: the model is none
	Active time.Duration   // in which steps were under way
	Worked time.Duration   // in which its stages computed, all together
	Busy   []time.Duration // of Worked, each stage; nil: not known

	Graphs     int64 // of steps, that a GPU keeps
	GraphSteps int64 // of Steps, run as one

	Pages int // of the state
	Used  int // by sequences
	Kept  int // by nobody, but in the prefix cache
}

// Stats returns the counts.
func (e *Engine) Stats() Stats {
	s := e.stats
	n := e.ctx.Counters()
	s.Busy, s.Graphs, s.GraphSteps = n.Busy, n.Graphs, n.GraphSteps
	s.Stages, s.Active, s.Worked = e.pipe.stages(), e.pipe.active, e.pipe.worked(s.Busy)
	s.Pages, s.Kept = e.opt.Pages, e.pages.cache.idle
	s.Used = s.Pages - e.pages.unused()
	return s
}

// Unused is how many state pages sequences may still take.
func (e *Engine) Unused() int { return e.pages.unused() + e.suspendedPages() }
