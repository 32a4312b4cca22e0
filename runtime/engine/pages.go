//go:build unix

package engine

import "github.com/iflowc/iflowc/runtime/load"

const pageRows = load.PageRows

// pagesFor is the number of pages that a number of rows takes.
func pagesFor(rows int) int { return (rows + pageRows - 1) / pageRows }

// A pageList knows which state pages are free. The last page given back is
// the first taken, while it is warm in the caches.
type pageList struct{ idle []int32 }

func newPageList(n int) pageList {
	idle := make([]int32, n)
	for i := range idle {
		idle[i] = int32(n - 1 - i) // page 0 first: memory is touched from its start
	}
	return pageList{idle}
}

// take moves n pages to list, or reports that there are not enough.
func (p *pageList) take(list []int32, n int) ([]int32, bool) {
	if n > len(p.idle) {
		return list, false
	}
	for range max(n, 0) {
		last := len(p.idle) - 1
		list = append(list, p.idle[last])
		p.idle = p.idle[:last]
	}
	return list, true
}

// free takes pages back.
func (p *pageList) free(list []int32) {
	for i := len(list) - 1; i >= 0; i-- {
		p.idle = append(p.idle, list[i])
	}
}
