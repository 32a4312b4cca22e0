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

	// Only blocks below granted come into use, because a block takes memory from then on.
	// more says how many others may: it is called once half of them are in use, so that
	// a device can allocate their memory in advance. Without more, blocks are evicted from
	// the prefix cache.
	granted int
	more    func() int
}

// newPool returns a pool of n blocks. With more nil, all may be used before any is evicted.
func newPool[K comparable](n int, more func() int) pool[K] {
	idle := make([]int32, n)
	for i := range idle {
		idle[i] = int32(n - 1 - i) // block 0 first, so that memory is touched from its start
	}
	p := pool[K]{idle: idle, refs: make([]int32, n), cache: newPrefixCache[K](n), granted: n, more: more}
	if more != nil {
		p.granted = 0
		p.grow()
	}
	return p
}

// grow grants as many blocks as more allows.
func (p *pool[K]) grow() { p.granted = min(p.granted+p.more(), len(p.refs)) }

// unused returns the number of blocks that no sequence uses, cached ones included.
func (p *pool[K]) unused() int { return len(p.idle) + p.cache.idle }

// take appends n free blocks to list; it returns false if there are not enough.
func (p *pool[K]) take(list []int32, n int) ([]int32, bool) {
	if n > p.unused() {
		return list, false
	}
	for range max(n, 0) {
		block := p.next()
		p.refs[block] = 1
		list = append(list, block)
	}
	return list, true
}

// next removes a block from those that no sequence uses. Blocks that were never in use
// are the first of idle, in descending order.
func (p *pool[K]) next() int32 {
	last := len(p.idle) - 1
	if last < 0 {
		return p.cache.evict()
	}
	block := p.idle[last]
	if p.granted < len(p.refs) && int(block) >= p.granted/2 {
		p.grow()
	}
	if int(block) >= p.granted {
		if p.cache.idle > 0 {
			return p.cache.evict()
		}
		p.granted = int(block) + 1 // the only one left
	}
	p.idle = p.idle[:last]
	return block
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
