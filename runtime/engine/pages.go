//go:build unix

package engine

import "github.com/iflowc/iflowc/runtime/device"

const pageRows = device.PageRows

// pagesFor is the number of pages that a number of rows takes.
func pagesFor(rows int) int { return (rows + pageRows - 1) / pageRows }

// A pageList knows which state pages are free, and how many sequences share
// each of the others: full pages never change, so forks and equal prefixes
// share them. The last page given back is the first taken, while it is warm in
// the caches; full pages in the prefix cache are taken last, the longest unused
// first.
type pageList struct {
	idle  []int32
	refs  []int32
	cache prefixCache
	last  int32 // the highest page that ever was in use
}

func newPageList(n int) pageList {
	idle := make([]int32, n)
	for i := range idle {
		idle[i] = int32(n - 1 - i) // page 0 first: memory is touched from its start
	}
	return pageList{idle: idle, refs: make([]int32, n), cache: newPrefixCache(n)}
}

// unused is how many pages nobody uses, cached ones among them.
func (p *pageList) unused() int { return len(p.idle) + p.cache.idle }

// take moves n pages to list, or reports that there are not enough.
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

// share adds pages to list that others use, or that are cached.
func (p *pageList) share(list, pages []int32) []int32 {
	for _, page := range pages {
		if p.refs[page] == 0 {
			p.cache.reuse(page)
		}
		p.refs[page]++
	}
	return append(list, pages...)
}

// free takes pages back, once nobody shares them any more. The last go first,
// so that of a cached prefix its end is evicted first.
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
