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
	load   uint64            // of a first page: Adapter.load; 0: no adapter
	tokens [pageRows]int32
}

// A cachedBlock has a number that stands for all tokens up to its end. Numbers are not
// reused, so pages that followed an evicted page are never found.
type cachedBlock[K comparable] struct {
	key    K
	number uint64 // 0: the block is not cached
	older  int32  // neighbor in the list of unused blocks; -1: none
	newer  int32
}

// A prefixCache finds full blocks by their contents: pages by prefixKey, cells by the
// number of the page that ends where they end. Unused blocks form a list in LRU order.
type prefixCache[K comparable] struct {
	blocks  []cachedBlock[K]
	find    map[K]int32 // block
	last    uint64      // the highest number assigned
	idle    int         // cached blocks that no sequence uses
	oldest  int32       // unused block; -1: none
	newest  int32
	evicted func(number uint64) // called for each block that is evicted; nil: not called
}

func newPrefixCache[K comparable](n int) prefixCache[K] {
	return prefixCache[K]{blocks: make([]cachedBlock[K], n), find: map[K]int32{}, oldest: -1, newest: -1}
}

// add caches a block that has just become full and returns its number.
func (p *prefixCache[K]) add(block int32, key K) uint64 {
	p.last++
	p.blocks[block] = cachedBlock[K]{key: key, number: p.last}
	p.find[key] = block
	return p.last
}

// release marks a cached block as unused, so that it may be evicted. It returns false if
// the block is not cached.
func (p *prefixCache[K]) release(block int32) bool {
	r := &p.blocks[block]
	if r.number == 0 {
		return false
	}
	r.older, r.newer = p.newest, -1
	if p.newest >= 0 {
		p.blocks[p.newest].newer = block
	} else {
		p.oldest = block
	}
	p.newest = block
	p.idle++
	return true
}

// reuse takes an unused block out of the LRU list, because a sequence uses it again.
func (p *prefixCache[K]) reuse(block int32) {
	r := &p.blocks[block]
	if r.older >= 0 {
		p.blocks[r.older].newer = r.newer
	} else {
		p.oldest = r.newer
	}
	if r.newer >= 0 {
		p.blocks[r.newer].older = r.older
	} else {
		p.newest = r.older
	}
	p.idle--
}

// remove drops an unused block.
func (p *prefixCache[K]) remove(block int32) {
	p.reuse(block)
	delete(p.find, p.blocks[block].key)
	p.blocks[block].number = 0
}

// evict drops the least recently used block and returns it.
func (p *prefixCache[K]) evict() int32 {
	block, number := p.oldest, p.blocks[p.oldest].number
	p.remove(block)
	if p.evicted != nil {
		p.evicted(number)
	}
	return block
}

// key returns the key of page i of a sequence; before is the number of the page before
// it.
func (s *sequence) key(i int, before uint64) (k prefixKey) {
	if k.before = before; before == 0 {
		k.scope = s.scope
		if s.adapter != nil {
			k.load = s.adapter.load
		}
	}
	copy(k.tokens[:], s.tokens[i*pageRows:])
	return k
}

// A prefixHit is what the prefix cache holds for a sequence that has computed nothing.
type prefixHit struct {
	rows    int   // rows that the sequence can reuse
	pages   int   // pages of these rows that are otherwise unused
	cells   int   // the same for cells
	cell    int32 // the cell that ends with these rows
	matched int   // rows of all cached pages, from the first on; with cells, perhaps more than rows
}

// cachedPrefix returns what the prefix cache holds for a sequence up to its first output
// row.
func (e *Engine) cachedPrefix(s *sequence) (hit prefixHit) {
	if !e.opt.Prefix || s.done > 0 || len(s.pages) > 0 {
		return hit
	}
	unused := 0
	for before := s.prefix; hit.matched+pageRows <= min(s.outFrom, len(s.tokens)-1); {
		page, ok := e.pages.cache.find[s.key(hit.matched/pageRows, before)]
		if !ok {
			break
		}
		hit.matched += pageRows
		before = e.pages.cache.blocks[page].number
		if e.pages.refs[page] == 0 {
			unused++
		}
		if !e.celled {
			hit.rows, hit.pages = hit.matched, unused
		} else if cell, ok := e.cells.cache.find[before]; ok {
			hit.rows, hit.pages, hit.cell, hit.cells = hit.matched, unused, cell, 0
			if e.cells.refs[cell] == 0 {
				hit.cells = 1
			}
		}
	}
	return hit
}

// reuse assigns the pages and the cell that cachedPrefix finds to a sequence that has
// computed nothing.
func (e *Engine) reuse(s *sequence) {
	if !e.opt.Prefix || s.done > 0 || len(s.pages) > 0 {
		return
	}
	hit := e.cachedPrefix(s)
	for i := range hit.rows / pageRows {
		page := e.pages.cache.find[s.key(i, s.prefix)]
		s.pages = e.pages.share(s.pages, []int32{page})
		s.prefix = e.pages.cache.blocks[page].number
	}
	s.done, s.branch = hit.rows, hit.matched
	if e.celled && hit.rows > 0 {
		s.cells, s.cellFrom = e.cells.share(s.cells[:0], []int32{hit.cell}), hit.rows/cellRows-1
		s.started = s.cellFrom
	}
	if !s.tried {
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
			s.prefix = e.pages.cache.blocks[page].number
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

	Adapters     int   // loaded adapters, and unloaded ones that sequences use
	AdapterBytes int64 // memory of their matrices

	Graphs     int64 // CUDA graphs of steps that the GPU holds
	GraphSteps int64 // steps that ran as CUDA graphs

	Pages int // KV cache pages
	Used  int // pages that sequences use
	Kept  int // pages that only the prefix cache holds

	Cells     int // cells of fixed-size states
	CellsUsed int // cells that sequences use
	CellsKept int // cells that only the prefix cache holds
}

// Stats returns the engine's counters.
func (e *Engine) Stats() Stats {
	s := e.stats
	n := e.ctx.Counters()
	s.Busy, s.Graphs, s.GraphSteps = n.Busy, n.Graphs, n.GraphSteps
	s.Stages, s.Active, s.Worked = e.pipe.stages(), e.pipe.active, e.pipe.worked(s.Busy)
	s.Pages, s.Kept = e.opt.Pages, e.pages.cache.idle
	s.Used = s.Pages - e.pages.unused()
	s.Adapters, s.AdapterBytes = e.adapters.n, e.adapters.bytes
	s.Cells, s.CellsUsed, s.CellsKept = e.opt.Cells, e.opt.Cells-e.cells.unused(), e.cells.cache.idle
	return s
}

// Unused returns how many KV cache pages new sequences may use, including those of
// suspended sequences.
func (e *Engine) Unused() int { return e.pages.unused() + e.suspendedPages() }
