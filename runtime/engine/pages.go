//go:build unix

package engine

import "github.com/iflowc/iflowc/runtime/device"

const pageRows = device.PageRows

// pagesFor returns the number of KV cache pages that hold the given number of rows.
func pagesFor(rows int) int { return (rows + pageRows - 1) / pageRows }

// A pool tracks which of a number of blocks are free, and how many sequences share each
// of the others. Blocks are KV cache pages, or cells of fixed-size states. Full blocks
// never change, so forks and equal prefixes share them. The most recently freed block is
// allocated first, while it is still in the CPU's caches. Full blocks of the prefix
// cache are evicted last, in LRU order.
type pool[K comparable] struct {
	idle  []int32
	refs  []int32
	cache prefixCache[K]
	last  int32 // the highest block that was ever in use

	// The first fresh blocks of idle were never in use. They take memory when they are,
	// so more says how many may be before others are evicted from the prefix cache.
	fresh int
	more  func() int
}

// newPool returns a pool of n blocks. With more nil, all may be used before any is evicted.
func newPool[K comparable](n int, more func() int) pool[K] {
	idle := make([]int32, n)
	for i := range idle {
		idle[i] = int32(n - 1 - i) // block 0 first, so that memory is touched from its start
	}
	p := pool[K]{idle: idle, refs: make([]int32, n), cache: newPrefixCache[K](n), more: more}
	if more != nil {
		p.fresh = n
	}
	return p
}

// unused returns the number of blocks that no sequence uses, cached ones included.
func (p *pool[K]) unused() int { return len(p.idle) + p.cache.idle }

// take appends n free blocks to list; it returns false if there are not enough.
func (p *pool[K]) take(list []int32, n int) ([]int32, bool) {
	if n > p.unused() {
		return list, false
	}
	for range max(n, 0) {
		var block int32
		if last := len(p.idle) - 1; last >= 0 && (last >= p.fresh || p.grant()) {
			block, p.idle = p.idle[last], p.idle[:last]
		} else {
			block = p.cache.evict()
		}
		p.refs[block] = 1
		p.last = max(p.last, block)
		list = append(list, block)
	}
	return list, true
}

// grant lets fresh blocks come into use: as many as more allows, or one if there is no
// other. It returns false if none may.
func (p *pool[K]) grant() bool {
	n := p.more()
	if n == 0 && p.cache.idle == 0 {
		n = 1
	}
	p.fresh = max(p.fresh-n, 0)
	return n > 0
}

// share appends blocks to list that other sequences use or the prefix cache holds.
func (p *pool[K]) share(list, blocks []int32) []int32 {
	for _, block := range blocks {
		if p.refs[block] == 0 {
			p.cache.reuse(block)
		}
		p.refs[block]++
	}
	return append(list, blocks...)
}

// free releases one reference to each block; it skips those below 0. It starts at the
// end of the list, so that the end of a cached prefix is evicted before its start.
func (p *pool[K]) free(list []int32) {
	for i := len(list) - 1; i >= 0; i-- {
		block := list[i]
		if block < 0 {
			continue
		}
		if p.refs[block]--; p.refs[block] > 0 {
			continue
		}
		if !p.cache.release(block) {
			p.idle = append(p.idle, block)
		}
	}
}

// forget removes the block with a key from the prefix cache, unless a sequence uses it.
func (p *pool[K]) forget(key K) {
	if block, ok := p.cache.find[key]; ok && p.refs[block] == 0 {
		p.cache.remove(block)
		p.idle = append(p.idle, block)
	}
}
