package grammar

import "math/big"

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

// limited returns the shape of an array with unique items with at most as many items as
// there are different ones.
func (w *schemaWriter) limited(a *arrayShape) *arrayShape {
	if a.lo > maxUnique {
		w.fail(a.path, "minItems %d: arrays with uniqueItems have at most %d items here", a.lo, maxUnique)
	}
	n := w.cardinality(a)
	if n < 0 {
		return a
	}
	c := *a
	c.hi = fewer(a.hi, n)
	return &c
}

// cardinality returns the number of different items that an array can have if it is
// certainly small, else -1.
func (w *schemaWriter) cardinality(a *arrayShape) int {
	if len(a.prefix) > 0 {
		return -1
	}
	n := 0
	for k, list := range w.shapes(a.rest, false) {
		for _, s := range list {
			one := cardinality(kind(k), s)
			if one < 0 {
				return -1
			}
			n += one
		}
	}
	return n
}

func cardinality(k kind, s *shape) int {
	switch {
	case s.values != nil:
		return len(s.values)
	case k == kindNull || k == kindTrue || k == kindFalse:
		return 1
	case k == kindNumber && s.number != nil && s.number.whole > 0 && s.number.lo != nil && s.number.hi != nil:
		n := new(big.Int).Sub(floor(s.number.hi.value), floor(s.number.lo.value))
		if n.IsInt64() && n.Int64() < 1<<16 {
			return int(n.Int64()) + 1
		}
	}
	return -1
}
