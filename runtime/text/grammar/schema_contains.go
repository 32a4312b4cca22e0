package grammar

import (
	"fmt"
	"slices"
)

// A listWriter writes arrays whose items are counted. A state is the number of items so
// far and, for each condition, the number of items that meet it, up to the numbers that
// matter.
type listWriter struct {
	w      *schemaWriter
	a      *arrayShape
	most   int // number of items up to which it matters
	states map[string]int32
	queue  []listState
	out    int32
}

type listState struct {
	state  int32
	n      int
	counts []int
}

// containing writes the arrays of a shape with contains.
func (w *schemaWriter) containing(a *arrayShape) part {
	l := &listWriter{w: w, a: a, states: map[string]int32{}, out: w.b.state(), most: max(a.lo, a.hi+1, len(a.prefix), 1)}
	for _, c := range a.contains {
		l.most = max(l.most, c.from)
	}
	in := l.state(0, make([]int, len(a.contains)))
	for i := 0; i < len(l.queue) && w.b.err == nil && w.spend(16, a.path); i++ {
		s := l.queue[i]
		ends := s.n >= a.lo
		for j, c := range a.contains {
			ends = ends && s.counts[j] >= c.lo
		}
		if ends {
			w.b.eps(s.state, l.out)
		}
		if a.hi < 0 || s.n < a.hi {
			l.items(s.state, s.n, s.counts)
		}
	}
	return w.brackets('[', ']', a.unique, part{in, l.out})
}

// state returns the state after n items.
func (l *listWriter) state(n int, counts []int) int32 {
	n = min(n, l.most)
	key := fmt.Sprint(n, counts)
	s, ok := l.states[key]
	if !ok {
		s = l.w.b.state()
		l.states[key] = s
		l.queue = append(l.queue, listState{s, n, counts})
	}
	return s
}

// items adds the items that may follow a state: for each subset of the conditions those
// that meet them.
func (l *listWriter) items(from int32, n int, counts []int) {
	w, b := l.w, l.w.b
	const most = 6
	if len(counts) > most {
		w.fail(l.a.path, "more than %d contains for one array are not supported", most)
		return
	}
	for set := range 1 << len(counts) {
		what := []*expr{l.a.item(n)}
		after := slices.Clone(counts)
		possible := true
		for i, c := range l.a.contains {
			in := set>>i&1 == 1
			switch {
			case in && (n < c.from || c.hi >= 0 && counts[i] == c.hi || c.hi < 0 && counts[i] == c.lo):
				possible = false // it need not be counted, or may not be
			case in:
				what = append(what, c.what)
				after[i]++
			case c.hi >= 0 && n >= c.from:
				what = append(what, w.not(c.what))
			}
		}
		item := w.all(what...)
		if !possible || item == w.exprs.none || w.err != nil {
			continue
		}
		one := w.child(item)
		if n > 0 {
			one = b.seq(w.comma(), one)
		}
		b.eps(from, one.in)
		b.eps(one.out, l.state(n+1, after))
	}
}
