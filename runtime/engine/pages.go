//go:build unix

package engine

import "github.com/iflowc/iflowc/runtime/device"

const pageRows = device.PageRows

// pagesFor returns the number of KV cache pages that hold the given number of rows.
func pagesFor(rows int) int { return (rows + pageRows - 1) / pageRows }

// A pageList tracks which KV cache pages are free, and how many sequences share each of
// the others. Full pages never change, so forks and equal prefixes share them. The most
// recently freed page is allocated first, while it is still in the CPU's caches. Full
// pages of the prefix cache are evicted last, in LRU order.
type pageList struct {
	idle  []int32
	refs  []int32
	cache prefixCache
	last  int32 // the highest page that was ever in use
}

func newPageList(n int) pageList {
	idle := make([]int32, n)
	for i := range idle {
		idle[i] = int32(n - 1 - i) // page 0 first, so that memory is touched from its start
	}
	return pageList{idle: idle, refs: make([]int32, n), cache: newPrefixCache(n)}
}

// unused returns the number of pages that no sequence uses, cached ones included.
func (p *pageList) unused() int { return len(p.idle) + p.cache.idle }

// take appends n free pages to list; it returns false if there are not enough.
func (p *pageList) take(list []int32, n int) ([]int32, bool) {
	if n > p.unused() {
		return list, false
	}
	for range max(n, 0) {
		var page int32
		if last := len(p.idle) - 1; last >= 0 {
			page, p.idle = p.idle[last], p.idle[:last]
		} else {
			page = p.cache.evict()
		}
		p.refs[page] = 1
		p.last = max(p.last, page)
		list = append(list, page)
	}
	return list, true
}

// share appends pages to list that other sequences use or the prefix cache holds.
func (p *pageList) share(list, pages []int32) []int32 {
	for _, page := range pages {
		if p.refs[page] == 0 {
			p.cache.reuse(page)
		}
		p.refs[page]++
	}
	return append(list, pages...)
}

// free releases one reference to each page. It starts at the end of the list, so that
// the end of a cached prefix is evicted before its start.
func (p *pageList) free(list []int32) {
	for i := len(list) - 1; i >= 0; i-- {
		page := list[i]
		if p.refs[page]--; p.refs[page] > 0 {
			continue
		}
		if !p.cache.release(page) {
			p.idle = append(p.idle, page)
		}
	}
}
