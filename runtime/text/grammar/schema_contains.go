package grammar

import "slices"

// A listWriter writes arrays whose items are counted. A state is the number of items so
// far; for each condition, the number of items that meet it; and for each scarce class,
// the number of values that remain; all of them up to the numbers that matter.
type listWriter struct {
	w       *schemaWriter
	a       *arrayShape
	most    int // number of items up to which it matters
	horizon int // index from which on all items are alike, and only contains needs them
	states  map[string]int32
	queue   []listState

	classes []scarce
	finite  map[*expr]bool   // cells whose values all belong to classes
	lists   map[string]*expr // nodes of the values of classes
}

type listState struct {
	n            int
	counts, left []int
	edges        []listEdge
	back         []int32 // states that lead here
	alive        bool    // an array can end from here on
	at           int32   // in the network
}

// A listEdge adds an item to an array: one of a cell, or one of a class.
type listEdge struct {
	to         int32
	cell       *expr // nil: one of a class
	set, class int
}

// counting returns the writer of the arrays of a shape, or nil if their items need not be
// counted.
func (w *schemaWriter) counting(a *arrayShape) *listWriter {
	if !a.unique && len(a.contains) == 0 {
		return nil
	}
	const conditions = 6
	if len(a.contains) > conditions {
		w.fail(a.path, "more than %d contains for one array are not supported", conditions)
		return nil
	}
	l := &listWriter{w: w, a: a, states: map[string]int32{}, finite: map[*expr]bool{}, lists: map[string]*expr{}}
	l.most, l.horizon = max(a.lo, a.hi+1, len(a.prefix), 1), a.lo
	if l.demanding() {
		l.horizon = max(a.lo, len(a.prefix))
	}
	for _, c := range a.contains {
		l.most = max(l.most, c.from)
		if c.lo > 0 {
			l.horizon = max(l.horizon, c.from)
		}
	}
	if a.unique && l.need(0, make([]int, len(a.contains))) > maxUnique {
		limited := *a
		limited.hi = fewer(a.hi, maxUnique)
		l.a, l.most = &limited, max(l.most, limited.hi)
	}
	l.findScarce()
	if len(a.contains) == 0 && len(l.classes) == 0 {
		return nil
	}
	return l
}

// demanding reports whether contains needs items.
func (l *listWriter) demanding() bool {
	return slices.ContainsFunc(l.a.contains, func(c contains) bool { return c.lo > 0 })
}

// need returns the number of items that an array needs at most to become valid; 0: it is
// valid.
func (l *listWriter) need(n int, counts []int) int {
	need := 0
	for i, c := range l.a.contains {
		need += max(0, c.lo-counts[i])
	}
	if need == 0 {
		return max(0, l.a.lo-n)
	}
	return need + max(0, l.horizon-n)
}

// write writes the arrays between their brackets.
func (l *listWriter) write() part {
	w, b := l.w, l.w.b
	left := make([]int, len(l.classes))
	for k, c := range l.classes {
		left[k] = len(c.values)
	}
	l.state(0, make([]int, len(l.a.contains)), left)
	for i := 0; i < len(l.queue) && w.spend(16, l.a.path); i++ {
		if s := l.queue[i]; l.a.hi < 0 || s.n < l.a.hi {
			l.queue[i].edges = l.edges(s)
		}
	}
	l.prune()
	out := b.state()
	if w.err != nil || !l.queue[0].alive {
		return b.nothing()
	}
	for i := range l.queue {
		if l.queue[i].alive {
			l.queue[i].at = b.state()
		}
	}
	for _, s := range l.queue {
		if w.err != nil || b.err != nil {
			return b.nothing()
		}
		if s.alive {
			l.items(&s)
		}
		if l.need(s.n, s.counts) == 0 {
			b.eps(s.at, out)
		}
	}
	return part{l.queue[0].at, out}
}

// maxListing limits the states of a listWriter. A state with an item needs 8 states of the
// network or more.
const maxListing = maxStates / 8

// state returns the state after n items.
func (l *listWriter) state(n int, counts, left []int) int32 {
	n = min(n, l.most)
	left = l.remaining(n, counts, left)
	key := appendKey(nil, int32(n))
	for _, x := range counts {
		key = appendKey(key, int32(x))
	}
	for k, x := range left {
		if x >= 0 {
			key = appendKey(key, int32(k), int32(x))
		}
	}
	s, ok := l.states[string(key)]
	if !ok {
		l.w.spend(1+len(left), l.a.path) // which limits the numbers of all states, too
		if s = int32(len(l.queue)); s == maxListing {
			l.w.fail(l.a.path, "more than %d combinations of items decide which ones may follow; use smaller limits in minItems, maxItems and contains, or items of fewer different enums where they must be unique", maxListing)
		}
		l.states[string(key)] = s
		l.queue = append(l.queue, listState{n: n, counts: counts, left: left})
	}
	return s
}

// cell returns the items of an array at an index that meet a set of conditions and,
// where it matters, no other condition.
func (w *schemaWriter) cell(a *arrayShape, n, set int) *expr {
	what := []*expr{a.item(n)}
	for i, c := range a.contains {
		switch {
		case n < c.from:
		case set>>i&1 == 1:
			what = append(what, c.what)
		case c.hi >= 0:
			what = append(what, w.not(c.what))
		}
	}
	return w.all(what...)
}

// counted returns the counts after an item at an index that meets a set of conditions.
// ok is false if it need not be counted for one of them, or may not be.
func (a *arrayShape) counted(n int, counts []int, set int) (after []int, ok bool) {
	after = slices.Clone(counts)
	for i, c := range a.contains {
		if set>>i&1 == 1 {
			if n < c.from || c.hi < 0 && after[i] >= c.lo || c.hi >= 0 && after[i] >= c.hi {
				return nil, false
			}
			after[i]++
		}
	}
	return after, true
}

// edges returns the items that may follow a state.
func (l *listWriter) edges(s listState) []listEdge {
	var list []listEdge
	for set := range 1 << len(s.counts) {
		after, ok := l.a.counted(s.n, s.counts, set)
		if !ok {
			continue
		}
		if cell := l.w.cell(l.a, s.n, set); cell != l.w.exprs.none && l.unlisted(s, set, cell) && l.w.err == nil {
			list = append(list, listEdge{to: l.state(s.n+1, after, s.left), cell: cell, set: set})
		}
	}
	for k := range l.classes {
		if after, ok := l.countsAfter(s, k); ok && l.w.spend(1+len(s.left)/8, l.a.path) {
			left := slices.Clone(s.left)
			left[k]--
			list = append(list, listEdge{to: l.state(s.n+1, after, left), class: k})
		}
	}
	return list
}

// unlisted reports whether a cell has other values than those of the classes that are
// counted.
func (l *listWriter) unlisted(s listState, set int, cell *expr) bool {
	if !l.finite[cell] {
		return true
	}
	for k := range l.classes {
		if s.left[k] < 0 && l.has(s.n, set, &l.classes[k]) {
			return true
		}
	}
	return false
}

// countsAfter returns the counts after an item of a class. ok is false if it is not
// allowed, or not counted by itself.
func (l *listWriter) countsAfter(s listState, class int) (after []int, ok bool) {
	k := &l.classes[class]
	if s.left[class] <= 0 || !k.items[l.a.item(s.n)] {
		return nil, false
	}
	after = slices.Clone(s.counts)
	for i, c := range l.a.contains {
		switch {
		case s.n < c.from:
		case !k.meets[i]:
			if !k.fails[i] {
				return nil, false
			}
		case c.hi < 0:
			after[i] = min(after[i]+1, c.lo)
		default:
			if after[i]++; after[i] > c.hi {
				return nil, false
			}
		}
	}
	return after, true
}

// prune finds the states from which an array can end, and removes the edges to others.
func (l *listWriter) prune() {
	var work []int32
	for i := range l.queue {
		for _, e := range l.queue[i].edges {
			l.queue[e.to].back = append(l.queue[e.to].back, int32(i))
		}
		if s := &l.queue[i]; l.need(s.n, s.counts) == 0 {
			s.alive = true
			work = append(work, int32(i))
		}
	}
	for len(work) > 0 {
		s := &l.queue[work[len(work)-1]]
		work = work[:len(work)-1]
		for _, i := range s.back {
			if !l.queue[i].alive {
				l.queue[i].alive = true
				work = append(work, i)
			}
		}
	}
	for i := range l.queue {
		s := &l.queue[i]
		s.edges = slices.DeleteFunc(s.edges, func(e listEdge) bool { return !l.queue[e.to].alive })
	}
}

// items writes the items that may follow a state.
func (l *listWriter) items(s *listState) {
	w, b := l.w, l.w.b
	if len(s.edges) == 0 {
		return
	}
	from := s.at
	if s.n > 0 {
		comma := w.comma()
		b.eps(from, comma.in)
		from = comma.out
	}
	add := func(item *expr, to int32) {
		if item != nil && item != w.exprs.none && w.err == nil {
			one := w.child(item)
			b.eps(from, one.in)
			b.eps(one.out, l.queue[to].at)
		}
	}
	var cells []listEdge
	targets := slices.Repeat([]int32{-1}, len(l.classes)) // of the edge of each class
	classes, order := map[int32][]int{}, []int32{}
	for _, e := range s.edges {
		if e.cell != nil {
			cells = append(cells, e)
			continue
		}
		if classes[e.to] == nil {
			order = append(order, e.to)
		}
		classes[e.to] = append(classes[e.to], e.class)
		targets[e.class] = e.to
	}
	for _, e := range cells {
		if !w.spend(1+len(l.classes)/8, l.a.path) {
			return
		}
		add(w.all(e.cell, l.except(s, e, targets)), e.to)
	}
	for _, to := range order {
		if !w.spend(1+(len(l.classes)+len(classes[to])*len(cells))/8, l.a.path) {
			return
		}
		if l.covers(s, to, targets) {
			add(l.a.item(s.n), to)
			continue
		}
		beside := slices.DeleteFunc(classes[to], func(k int) bool { // those in a cell with the same target
			return slices.ContainsFunc(cells, func(e listEdge) bool { return e.to == to && l.has(s.n, e.set, &l.classes[k]) })
		})
		add(l.listed(beside), to)
	}
}

// except returns the node of the values that an edge of a cell must leave to others.
// Values of which none remain need not be excluded: items are unique.
func (l *listWriter) except(s *listState, e listEdge, targets []int32) *expr {
	var list []int
	for k := range l.classes {
		if s.left[k] > 0 && targets[k] != e.to && l.has(s.n, e.set, &l.classes[k]) {
			list = append(list, k)
		}
	}
	if len(list) == 0 {
		return l.w.exprs.any
	}
	excluded := l.listed(list)
	if excluded == nil { // the limit of the work is reached
		return l.w.exprs.none
	}
	return l.w.not(excluded)
}

// covers reports whether every item that may follow a state leads to the same one.
func (l *listWriter) covers(s *listState, to int32, targets []int32) bool {
	item := l.a.item(s.n)
	for k, c := range l.classes {
		if c.items[item] && s.left[k] != 0 && targets[k] != to {
			return false
		}
	}
	return l.finite[item]
}
