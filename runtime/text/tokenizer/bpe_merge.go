package tokenizer

// mergeWord is a word during merging: its symbols in a doubly linked list inside a
// slice, and a heap of candidate merges ordered by rank, then position.
type mergeWord struct {
	symbols []mergeSymbol
	heap    []mergeCandidate
}

type mergeSymbol struct {
	id         int32
	prev, next int32
	alive      bool
}

type mergeCandidate struct {
	rank, pos, into int32
}

func (c mergeCandidate) before(o mergeCandidate) bool {
	return c.rank < o.rank || (c.rank == o.rank && c.pos < o.pos)
}

func (w *mergeWord) add(id int32) {
	n := int32(len(w.symbols))
	if n > 0 {
		w.symbols[n-1].next = n
	}
	w.symbols = append(w.symbols, mergeSymbol{id: id, prev: n - 1, next: -1, alive: true})
}

// mergeAll applies merges until none is left. A stale candidate still applies if the
// symbols now at its position merge into the same token.
func (w *mergeWord) mergeAll(rules *mergeTable) {
	for i := range len(w.symbols) - 1 {
		w.candidate(rules, int32(i), int32(i+1))
	}
	for len(w.heap) > 0 {
		top := w.pop()
		left := &w.symbols[top.pos]
		if !left.alive || left.next < 0 {
			continue
		}
		right := &w.symbols[left.next]
		rule, ok := rules.find(left.id, right.id)
		if !ok || rule.into != top.into {
			continue
		}
		right.alive = false
		left.id = top.into
		left.next = right.next
		if right.next >= 0 {
			w.symbols[right.next].prev = top.pos
			w.candidate(rules, top.pos, right.next)
		}
		if left.prev >= 0 {
			w.candidate(rules, left.prev, top.pos)
		}
	}
}

func (w *mergeWord) candidate(rules *mergeTable, left, right int32) {
	if rule, ok := rules.find(w.symbols[left].id, w.symbols[right].id); ok {
		w.push(mergeCandidate{rule.rank, left, rule.into})
	}
}

func (w *mergeWord) push(c mergeCandidate) {
	w.heap = append(w.heap, c)
	h := w.heap
	i := len(h) - 1
	for i > 0 {
		parent := (i - 1) / 2
		if !h[i].before(h[parent]) {
			break
		}
		h[i], h[parent] = h[parent], h[i]
		i = parent
	}
}

func (w *mergeWord) pop() mergeCandidate {
	h := w.heap
	top := h[0]
	last := len(h) - 1
	h[0] = h[last]
	h = h[:last]
	w.heap = h
	for i := 0; ; {
		least := i
		for _, kid := range [2]int{2*i + 1, 2*i + 2} {
			if kid < last && h[kid].before(h[least]) {
				least = kid
			}
		}
		if least == i {
			return top
		}
		h[i], h[least] = h[least], h[i]
		i = least
	}
}
