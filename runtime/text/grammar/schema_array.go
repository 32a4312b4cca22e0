package grammar

import (
	"fmt"
	"slices"
)

// An arrayShape is a set of arrays.
type arrayShape struct {
	prefix   []*expr // of the first items
	rest     *expr   // of the items after them
	lo, hi   int     // number of items; hi < 0: no limit
	contains []contains
	unique   bool // all items differ
	repeated bool // two items are equal
	path     string
}

// contains limits the number of items that a node contains, from an index on.
type contains struct {
	from   int
	what   *expr
	lo, hi int // hi < 0: no limit
}

// item returns the node of the item at an index.
func (a *arrayShape) item(i int) *expr {
	if i < len(a.prefix) {
		return a.prefix[i]
	}
	return a.rest
}

// arrayLeaf returns the leaf of a schema's keywords for arrays.
func (w *schemaWriter) arrayLeaf(o *object, path string) *expr {
	if !o.has(arrayWords...) {
		return w.exprs.any
	}
	a := &arrayShape{path: path, lo: w.count(o, "minItems", path), hi: w.count(o, "maxItems", path)}
	prefix, rest := itemsOf(o)
	for i, item := range prefix {
		a.prefix = append(a.prefix, w.node(item, fmt.Sprintf("%s/prefixItems/%d", path, i)))
	}
	a.rest = w.node(rest, path+"/items")
	if v, ok := o.get("contains"); ok {
		c := contains{what: w.node(v, path+"/contains"), lo: 1, hi: w.count(o, "maxContains", path)}
		if o.has("minContains") {
			c.lo = w.count(o, "minContains", path)
		}
		if c.lo > 0 || c.hi >= 0 {
			a.contains = []contains{c}
		}
	}
	a.unique = o.values["uniqueItems"] == true
	set := restricted(kindArray, &shape{array: a})
	if a.hi >= 0 && a.hi < a.lo {
		set[kindArray] = nil
	}
	return w.leaf(set, path)
}

// itemsOf returns the schemas of an array's first items and of the items after them.
func itemsOf(o *object) (prefix []any, rest any) {
	rest, hasRest := o.get("items")
	if list, older := rest.([]any); older { // prefixItems before draft 2020-12
		prefix = list
		rest, hasRest = o.get("additionalItems")
	} else if given, has := o.get("prefixItems"); has {
		prefix = given.([]any)
	}
	if !hasRest {
		rest = true
	}
	return prefix, rest
}

// joinArrays returns the arrays in two shapes; possible is false if there are certainly
// none.
func (w *schemaWriter) joinArrays(a, b *arrayShape) (out *arrayShape, possible bool) {
	out = &arrayShape{rest: w.all(a.rest, b.rest), lo: max(a.lo, b.lo), hi: fewer(a.hi, b.hi), unique: a.unique || b.unique, repeated: a.repeated || b.repeated, path: a.path}
	n := max(len(a.prefix), len(b.prefix))
	if out.hi >= 0 {
		n = min(n, out.hi)
	}
	for i := range n {
		out.prefix = append(out.prefix, w.all(a.item(i), b.item(i)))
	}
	for i, x := range out.prefix {
		if x == w.exprs.none && (out.hi < 0 || out.hi > i) {
			out.hi = i
		}
	}
	if out.rest == w.exprs.none {
		out.hi = fewer(out.hi, len(out.prefix))
	}
	out.contains = slices.Clone(a.contains)
	for _, c := range b.contains {
		if !slices.Contains(out.contains, c) {
			out.contains = append(out.contains, c)
		}
	}
	return out, (out.hi < 0 || out.hi >= out.lo) && !(out.unique && out.repeated)
}

// fewer returns the smaller of two limits; a negative one is no limit.
func fewer(a, b int) int {
	if a < 0 || b >= 0 && b < a {
		return b
	}
	return a
}

// exceptArrays returns the arrays that are not in a shape.
func (w *schemaWriter) exceptArrays(a *arrayShape) []*arrayShape {
	var out []*arrayShape
	add := func(lo, hi int) *arrayShape {
		x := &arrayShape{rest: w.exprs.any, lo: lo, hi: hi, path: a.path}
		out = append(out, x)
		return x
	}
	if a.lo > 0 {
		add(0, a.lo-1)
	}
	if a.hi >= 0 {
		add(a.hi+1, -1)
	}
	for i, item := range a.prefix {
		if item != w.exprs.any {
			add(i+1, -1).prefix = append(slices.Repeat([]*expr{w.exprs.any}, i), w.not(item))
		}
	}
	if a.rest != w.exprs.any {
		if other := w.not(a.rest); other == w.exprs.any {
			add(len(a.prefix)+1, -1)
		} else {
			add(len(a.prefix)+1, -1).contains = []contains{{len(a.prefix), other, 1, -1}}
		}
	}
	for _, c := range a.contains {
		if c.lo > 0 {
			add(0, -1).contains = []contains{{c.from, c.what, 0, c.lo - 1}}
		}
		if c.hi >= 0 {
			add(c.hi+1, -1).contains = []contains{{c.from, c.what, c.hi + 1, -1}}
		}
	}
	if a.unique {
		add(2, -1).repeated = true
	}
	if a.repeated {
		add(0, -1).unique = true
	}
	return out
}

func (w *schemaWriter) arrayFits(v []any, a *arrayShape) bool {
	if len(v) < a.lo || a.hi >= 0 && len(v) > a.hi || !w.spend(len(v), a.path) {
		return false
	}
	for i, item := range v {
		if !w.holds(item, a.item(i)) {
			return false
		}
	}
	for _, c := range a.contains {
		n := 0
		for _, item := range v[min(c.from, len(v)):] {
			if w.holds(item, c.what) {
				n++
			}
		}
		if n < c.lo || c.hi >= 0 && n > c.hi {
			return false
		}
	}
	if !a.unique && !a.repeated {
		return true
	}
	return w.spend(weight(v)/8, a.path) && (len(keysOf(v)) < len(v)) == a.repeated
}

// array writes the arrays of a shape.
func (w *schemaWriter) array(a *arrayShape) part {
	if a == nil {
		a = &arrayShape{rest: w.exprs.any, hi: -1}
	}
	if a.unique && a.lo > maxUnique {
		return w.fail(a.path, "minItems %d: arrays with uniqueItems have at most %d items here", a.lo, maxUnique)
	}
	switch {
	case a.repeated:
		return w.fail(a.path, "arrays in which two items are equal (uniqueItems in not, oneOf or if) are not supported; describe the items otherwise")
	case a.unique && w.mode == asPython:
		return w.fail(a.path, "uniqueItems is not supported in the model's format of tool calls; remove it and remove duplicates from the result")
	case a.unique && !w.exact:
		w.exact = true
		defer func() { w.exact = false }()
	}
	if l := w.counting(a); l != nil {
		return w.brackets('[', ']', a.unique, l.write())
	}
	b := w.b
	if w.err != nil || a.hi >= 0 && a.hi < a.lo {
		return b.nothing()
	}
	at, end := b.empty(), b.state()
	start := at.in
	for i, item := range a.prefix {
		if a.hi >= 0 && i >= a.hi {
			break
		}
		if i >= a.lo {
			b.eps(at.out, end)
		}
		if i > 0 {
			at = b.seq(at, w.comma())
		}
		at = b.seq(at, w.child(item))
	}
	k := len(a.prefix)
	if a.hi < 0 || a.hi > k {
		most := -1
		if a.hi >= 0 {
			most = a.hi - k
		}
		at = b.seq(at, w.items(a.rest, max(a.lo-k, 0), most, k == 0))
	}
	b.eps(at.out, end)
	return w.brackets('[', ']', a.unique, part{start, end})
}

// items writes lo to hi values of one node; with first, no comma precedes the first of
// them.
func (w *schemaWriter) items(item *expr, lo, hi int, first bool) part {
	b := w.b
	if hi == 0 {
		return b.empty()
	}
	next := func() part { return b.seq(w.comma(), w.child(item)) }
	if !first {
		return b.repeat(lo, hi, next)
	}
	tail := hi
	if tail > 0 {
		tail--
	}
	list := b.seq(w.child(item), b.repeat(max(lo-1, 0), tail, next))
	if lo == 0 {
		return b.optional(list)
	}
	return list
}
