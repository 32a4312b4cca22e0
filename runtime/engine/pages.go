//go:build unix

package engine

import "github.com/iflowc/iflowc/runtime/load"

const pageRows = load.PageRows

// pagesFor is the number of pages that a number of rows takes.
func pagesFor(rows int) int { return (rows + pageRows - 1) / pageRows }

// A pageList knows which state pages are free, and how many sequences share
// each of the others: full pages never change, so forks share them. The last
// page given back is the first taken, while it is warm in the caches.
type pageList struct {
	idle []int32
	refs []int32
}

func newPageList(n int) pageList {
	idle := make([]int32, n)
	for i := range idle {
		idle[i] = int32(n - 1 - i) // page 0 first: memory is touched from its start
	}
	return pageList{idle, make([]int32, n)}
}

// take moves n pages to list, or reports that there are not enough.
func (p *pageList) take(list []int32, n int) ([]int32, bool) {
	if n > len(p.idle) {
		return list, false
	}
	for range max(n, 0) {
		last := len(p.idle) - 1
		page := p.idle[last]
		p.refs[page] = 1
		list = append(list, page)
		p.idle = p.idle[:last]
	}
	return list, true
}

// share adds pages to list that another sequence goes on using.
func (p *pageList) share(list, pages []int32) []int32 {
	for _, page := range pages {
		p.refs[page]++
	}
	return append(list, pages...)
}

// free takes pages back, once nobody shares them any more.
func (p *pageList) free(list []int32) {
	for i := len(list) - 1; i >= 0; i-- {
		page := list[i]
		if p.refs[page]--; p.refs[page] == 0 {
			p.idle = append(p.idle, page)
		}
	}
}
