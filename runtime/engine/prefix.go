//go:build unix

package engine

import (
	"crypto/sha256"
	"time"
)

// A prefixKey identifies the contents of a full page: its tokens and the number of the
// page before it. The key holds the tokens themselves, not a hash, so two prompts are
// never confused.
type prefixKey struct {
	before uint64            // number of the preceding page; 0: none
	scope  [sha256.Size]byte // of a first page: hash of Query.PrefixScope
	tokens [pageRows]int32
}

// A cachedPage has a number that stands for all tokens up to its end. Numbers are not
// reused, so pages that followed an evicted page are never found.
type cachedPage struct {
	key    prefixKey
	number uint64 // 0: the page is not cached
	older  int32  // neighbor in the list of unused pages; -1: none
	newer  int32
}

// A prefixCache finds full pages by their contents. Unused ones form a list in LRU
// order.
type prefixCache struct {
	pages  []cachedPage
	find   map[prefixKey]int32 // page
	last   uint64              // the highest number assigned
	idle   int                 // cached pages that no sequence uses
	oldest int32               // unused page; -1: none
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

// release marks a cached page as unused, so that it may be evicted. It returns false if
// the page is not cached.
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

// reuse takes an unused page out of the LRU list, because a sequence uses it again.
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

// key returns the key of page i of a sequence; before is the number of the page before
// it.
func (s *sequence) key(i int, before uint64) (k prefixKey) {
	if k.before = before; before == 0 {
		k.scope = s.scope
	}
	copy(k.tokens[:], s.tokens[i*pageRows:])
	return k
}

// cachedPrefix returns how many rows, up to the first output row, the prefix cache
// holds for a sequence that has computed nothing, and how many of their pages are
// otherwise unused.
func (e *Engine) cachedPrefix(s *sequence) (rows, unused int) {
	if !e.opt.Prefix || s.done > 0 || len(s.pages) > 0 {
		return 0, 0
	}
	for before := s.prefix; rows+pageRows <= min(s.outFrom, len(s.tokens)-1); rows += pageRows {
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

// reuse assigns the pages that cachedPrefix finds to a sequence that has computed
// nothing.
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

// cachePages adds the pages to the prefix cache that a sequence has filled since it had
// computed from tokens. If the cache already holds a page with the same contents, the
// sequence uses that page and frees its own.
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

// Stats are an engine's counters since it was opened.
type Stats struct {
	Steps     int64
	Tokens    int64 // tokens computed
	Preempted int64 // times a sequence or a source lost its pages

	Drafted  int64 // drafted tokens computed
	Accepted int64 // drafted tokens accepted

	Prompts       int64 // prompt tokens looked up in the prefix cache
	PromptsReused int64 // prompt tokens found in the prefix cache

	Stages int             // pipeline stages; 1: no pipeline
	Active time.Duration   // time in which at least one step was in flight
	Worked time.Duration   // time that the stages computed, summed over the stages
	Busy   []time.Duration // the same for each stage; nil: unknown

	Graphs     int64 // CUDA graphs of steps that the GPU holds
	GraphSteps int64 // steps that ran as CUDA graphs

	Pages int // KV cache pages
	Used  int // pages that sequences use
	Kept  int // pages that only the prefix cache holds
}

// Stats returns the engine's counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	n := e.ctx.Counters()
	s.Busy, s.Graphs, s.GraphSteps = n.Busy, n.Graphs, n.GraphSteps
	s.Stages, s.Active, s.Worked = e.pipe.stages(), e.pipe.active, e.pipe.worked(s.Busy)
	s.Pages, s.Kept = e.opt.Pages, e.pages.cache.idle
	s.Used = s.Pages - e.pages.unused()
	return s
}

// Unused returns how many KV cache pages new sequences may use, including those of
// suspended sequences.
func (e *Engine) Unused() int { return e.pages.unused() + e.suspendedPages() }
