package grammar

import "slices"

// brackets encloses items or members in brackets. If they must be unique, the opening
// one has a mark; see history.
func (w *schemaWriter) brackets(open, shut byte, unique bool, inside part) part {
	first := w.b.bytes(open, open)
	if unique {
		w.b.states[first.in].unique = true
		w.b.unique = true
	}
	return w.b.seq(first, inside, w.b.bytes(shut, shut))
}

// A scarce class is a set of values of which an array with unique items may need more
// than it has: earlier items can use them up. Its values belong to the same items and
// meet the same conditions of contains.
type scarce struct {
	values []any
	items  map[*expr]bool // the items that they may be
	last   int            // the last index below the horizon of such an item; -1: none
	meets  []bool         // by condition
	fails  []bool         // by condition: need not meet it, and need not be counted
}

// findScarce finds the scarce classes. A history keeps equal items out of an array, but
// does not see whether a later item finds a value. So the grammar counts what remains of
// values that may become scarce. The others are always enough: up to an item that an
// array needs there are fewer items than values.
func (l *listWriter) findScarce() {
	if !l.a.unique || l.need(0, make([]int, len(l.a.contains))) < 2 {
		return
	}
	cells, most := l.cells()
	var values []any
	known := map[string]bool{}
	for before := -1; before < len(values); {
		before = len(values)
		list := l.w.lister(most+before, l.a.path)
		for _, c := range cells {
			if l.finite[c.items] {
				continue
			}
			found := list.list(c.items)
			fresh := slices.DeleteFunc(slices.Clone(found.values), func(v any) bool { return known[keyOf(v)] })
			if l.w.err != nil {
				return
			}
			if found.complete && len(fresh) < c.need {
				values = append(values, fresh...)
				for _, v := range fresh {
					known[keyOf(v)] = true
				}
				l.finite[c.items] = true
			}
		}
	}
	l.classify(values)
}

// A cell is a set of items. If it has as many values as needed, one always remains.
type cell struct {
	items *expr
	need  int
}

// cells lists the sets of the items that an array may need, and returns the number of
// values that any of them needs at most.
func (l *listWriter) cells() (list []cell, most int) {
	from, most := len(l.a.prefix), l.horizon
	for _, c := range l.a.contains {
		from = max(from, c.from)
		most += c.lo
	}
	last := min(l.horizon-1, from)
	if most > l.horizon {
		last = max(last, from)
	}
	index := map[*expr]int{}
	for n := range last + 1 {
		need := n + 1
		if n == last {
			need = most
		}
		for set := range 1 << len(l.a.contains) {
			items := l.w.cell(l.a, n, set)
			if at, ok := index[items]; ok {
				list[at].need = need
			} else if l.w.spend(4, l.a.path) {
				index[items] = len(list)
				list = append(list, cell{items, need})
			}
		}
	}
	return list, most
}

// classify divides values into classes.
func (l *listWriter) classify(values []any) {
	var items []*expr
	for n := range min(max(l.horizon, 1), len(l.a.prefix)+1) {
		if x := l.a.item(n); !slices.Contains(items, x) && l.w.spend(1+len(items)/8, l.a.path) {
			items = append(items, x)
		}
	}
	if !slices.Contains(items, l.a.rest) {
		items = append(items, l.a.rest)
	}
	index := map[string]int{}
	for _, v := range values {
		c := scarce{items: map[*expr]bool{}, last: -1}
		var key []byte
		mark := func(is bool) bool {
			key = append(key, '0')
			if is {
				key[len(key)-1] = '1'
			}
			return is
		}
		for _, x := range items {
			if mark(l.w.holds(v, x)) {
				c.items[x] = true
			}
		}
		for _, m := range l.a.contains {
			c.meets = append(c.meets, mark(l.w.holds(v, m.what)))
			c.fails = append(c.fails, mark(m.hi < 0 || l.w.holds(v, l.w.not(m.what))))
		}
		at, ok := index[string(key)]
		if !ok {
			at = len(l.classes)
			index[string(key)] = at
			for n := range min(l.horizon, len(l.a.prefix)) {
				if c.items[l.a.item(n)] {
					c.last = n
				}
			}
			if l.horizon > len(l.a.prefix) && c.items[l.a.rest] {
				c.last = l.horizon - 1
			}
			l.classes = append(l.classes, c)
		}
		if !l.w.spend(1+len(l.a.prefix)/8, l.a.path) {
			return
		}
		l.classes[at].values = append(l.classes[at].values, v)
	}
}

// remaining returns the numbers of values of each class that remain. It returns -1 where
// they are enough: an item that uses one of them reduces what is needed, too.
func (l *listWriter) remaining(n int, counts, left []int) []int {
	missing, last := 0, l.horizon-1
	for i, m := range l.a.contains {
		missing += max(0, m.lo-counts[i])
	}
	if missing == 0 {
		last = l.a.lo - 1
	}
	out := slices.Clone(left)
	for k, c := range l.classes {
		need := max(0, min(c.last, last)-n+1)
		for i, m := range l.a.contains {
			if counts[i] < m.lo && c.meets[i] && c.items[l.a.rest] {
				need += missing
				break
			}
		}
		if out[k] >= need {
			out[k] = -1
		}
	}
	return out
}

// has reports whether a cell contains the values of a class.
func (l *listWriter) has(n, set int, c *scarce) bool {
	ok := c.items[l.a.item(n)]
	for i, m := range l.a.contains {
		if n >= m.from {
			ok = ok && (set>>i&1 == 0 && c.fails[i] || set>>i&1 == 1 && c.meets[i])
		}
	}
	return ok
}

// listed returns the node of the values of classes, or nil.
func (l *listWriter) listed(classes []int) *expr {
	key := make([]int32, len(classes))
	var values []any
	for i, k := range classes {
		key[i] = int32(k)
		values = append(values, l.classes[k].values...)
	}
	x := l.lists[stateKey(key)]
	if x == nil && len(values) > 0 && l.w.spend(1+len(values)/4, l.a.path) {
		x = l.w.valuesNode(values, l.a.path)
		l.lists[stateKey(key)] = x
	}
	return x
}
