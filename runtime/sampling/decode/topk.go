package decode

import (
	"cmp"
	"slices"
)

// order sorts by descending logit and, among equals, ascending id, so that ties are cut
// the same way everywhere.
func order(a, b candidate) int {
	if a.logit != b.logit {
		return cmp.Compare(b.logit, a.logit)
	}
	return cmp.Compare(a.id, b.id)
}

// topK keeps the k largest candidates, sorted; 0 keeps all, unsorted.
func topK(c []candidate, k int) []candidate {
	if k <= 0 {
		return c
	}
	front(c, k)
	return c[:min(k, len(c))]
}

// front moves the k largest candidates to the front, sorted: quickselect, then a sort
// of k. Sorting a whole vocabulary takes longer than a small model's step.
func front(c []candidate, k int) {
	selectFront(c, k)
	c = c[:min(k, len(c))]
	if len(c) < radixFrom {
		slices.SortFunc(c, order)
	} else {
		radixSort(c)
	}
}

// selectFront is front without the sort.
func selectFront(c []candidate, k int) {
	if k >= len(c) {
		return
	}
	lo, hi := 0, len(c)
	for hi-lo > 1 {
		cut := partition(c[lo:hi]) + lo
		if cut < k {
			lo = cut + 1
		} else {
			hi = cut
		}
	}
}

// partition moves the candidates that precede a pivot to its left and returns the
// pivot's index. The pivot is the median of the first, middle and last candidate.
func partition(c []candidate) int {
	last := len(c) - 1
	mid := last / 2
	if order(c[mid], c[0]) < 0 {
		c[mid], c[0] = c[0], c[mid]
	}
	if order(c[last], c[0]) < 0 {
		c[last], c[0] = c[0], c[last]
	}
	if order(c[mid], c[last]) < 0 {
		c[mid], c[last] = c[last], c[mid]
	}
	pivot, at := c[last], 0
	for i := range c[:last] {
		if order(c[i], pivot) < 0 {
			c[i], c[at] = c[at], c[i]
			at++
		}
	}
	c[at], c[last] = c[last], c[at]
	return at
}
