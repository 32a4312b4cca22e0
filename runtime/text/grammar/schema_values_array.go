package grammar

import "slices"

// An arrayLister lists the arrays of a shape.
type arrayLister struct {
	*lister
	a     *arrayShape
	ends  map[string]bool // whether an array can end, by number of items and counts
	alike int             // index from which on all items are alike, and enough for minItems

	needed int // number of items that contains needs at most
}

// arrays adds the arrays of a shape.
func (l *lister) arrays(to *listing, a *arrayShape) bool {
	x := &arrayLister{lister: l, a: a, ends: map[string]bool{}, alike: max(a.lo, len(a.prefix))}
	limited := 0 // conditions that only so many items may meet
	for i, c := range a.contains {
		x.alike = max(x.alike, c.from)
		x.needed += c.lo
		if c.hi >= 0 {
			limited |= 1 << i
		}
	}
	counts := make([]int, len(a.contains))
	if !x.canEnd(0, counts) {
		return true
	}
	for set := 0; set < 1<<len(counts) && a.hi < 0 && !a.unique; set++ {
		if set&limited != 0 {
			continue
		}
		if one := l.find(l.w.cell(a, x.alike, set)); !one.complete || len(one.values) > 0 {
			return false // any number of them may follow
		}
	}
	return x.from(to, nil, counts)
}

// from adds the arrays that begin with some items, of which counts[i] meet condition i.
func (l *arrayLister) from(to *listing, items []any, counts []int) bool {
	if weight(items) > maxListWeight || l.w.arrayFits(items, l.a) && !l.add(to, slices.Clone(items)) || !l.step(1) {
		return false
	}
	if l.a.hi >= 0 && len(items) >= l.a.hi {
		return true
	}
	before := map[string]bool{}
	if l.a.unique {
		before = keysOf(items)
	}
	next := l.next(len(items), counts)
	return next.complete && !slices.ContainsFunc(next.values, func(v any) bool {
		if before[keyOf(v)] {
			return false
		}
		after := slices.Clone(counts)
		for i, c := range l.a.contains {
			if len(items) >= c.from && l.w.holds(v, c.what) {
				after[i]++
			}
			if c.hi < 0 {
				after[i] = min(after[i], c.lo)
			}
		}
		return !l.from(to, append(items, v), after)
	})
}

// next lists the items at an index with which an array can end.
func (l *arrayLister) next(n int, counts []int) listing {
	if len(l.a.contains) == 0 {
		return l.find(l.a.item(n))
	}
	list := listing{keys: map[string]bool{}, complete: true}
	for set := range 1 << len(counts) {
		after, ok := l.a.counted(n, counts, set)
		if !ok || !l.canEnd(n+1, after) {
			continue
		}
		one := l.find(l.w.cell(l.a, n, set))
		if !one.complete || slices.ContainsFunc(one.values, func(v any) bool { return !l.add(&list, v) }) {
			return listing{}
		}
	}
	return list
}

// canEnd reports whether some array has the given counts after n items.
func (l *arrayLister) canEnd(n int, counts []int) bool {
	valid := n >= l.a.lo
	for i, c := range l.a.contains {
		valid = valid && counts[i] >= c.lo
	}
	if valid || !l.step(1) { // a list that takes too many steps is not complete
		return true
	}
	if l.a.hi >= 0 && n >= l.a.hi {
		return false
	}
	if n > l.alike && (l.a.hi < 0 || l.a.hi-n >= l.needed) {
		n = l.alike
	}
	if len(counts) == 0 && n >= len(l.a.prefix) {
		rest := l.find(l.a.rest)
		return (l.a.hi < 0 || l.a.hi >= l.a.lo) && (!rest.complete || len(rest.values) > 0)
	}
	numbers := []int32{int32(n)}
	for _, x := range counts {
		numbers = append(numbers, int32(x))
	}
	key := stateKey(numbers)
	ends, known := l.ends[key]
	if known {
		return ends
	}
	l.ends[key] = false // for the items that change neither n nor the counts
	for set := range 1 << len(counts) {
		after, ok := l.a.counted(n, counts, set)
		if !ok {
			continue
		}
		if one := l.find(l.w.cell(l.a, n, set)); (!one.complete || len(one.values) > 0) && l.canEnd(n+1, after) {
			ends = true
			break
		}
	}
	l.ends[key] = ends
	return ends
}
