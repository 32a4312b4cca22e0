package grammar

import (
	"encoding/json"
	"fmt"
	"math/big"
	"regexp"
	"slices"
	"strings"
)

// A numberShape is a set of numbers.
type numberShape struct {
	whole  int    // 1: only integers; -1: no integers
	lo, hi *limit // nil: no limit
	steps  []step
	path   string
}

// key distinguishes the rules of numbers.
func (n *numberShape) key(whole, exact bool) string {
	key := fmt.Sprintf("numbers %v %v %d %s %s", whole, exact, n.whole, n.lo, n.hi)
	for _, s := range n.steps {
		key += fmt.Sprintf(" %v %s", s.not, s.of)
	}
	return key
}

// A step is a condition on numbers: multiples of it or, with not, all others.
type step struct {
	of  *big.Rat
	not bool
}

// A limit is an end of a range: its digits before and after the point, without leading
// and trailing zeros, and whether the range excludes it.
type limit struct {
	value    *big.Rat
	whole    string
	fraction string
	open     bool
}

const maxDigits = 64

func (l *limit) String() string {
	if l == nil {
		return ""
	}
	return fmt.Sprint(l.value, l.open)
}

func newLimit(r *big.Rat, open bool) (*limit, bool) {
	if r == nil {
		return nil, false
	}
	text := new(big.Rat).Abs(r).FloatString(maxDigits)
	whole, fraction, _ := strings.Cut(text, ".")
	exact, ok := new(big.Rat).SetString(text)
	if !ok || exact.Cmp(new(big.Rat).Abs(r)) != 0 || len(whole) > maxDigits {
		return nil, false
	}
	return &limit{r, whole, strings.TrimRight(fraction, "0"), open}, true
}

// numberLeaf returns the leaf of a schema's keywords for numbers, except type.
func (w *schemaWriter) numberLeaf(o *object, path string) *expr {
	n := &numberShape{path: path}
	n.lo, n.hi = w.limit(o, "minimum", "exclusiveMinimum", 1, path), w.limit(o, "maximum", "exclusiveMaximum", -1, path)
	if v, ok := o.get("multipleOf"); ok {
		r, ok := rational(v)
		if !ok {
			w.fail(path+"/multipleOf", "expected a number of fewer digits, found %.40s", writeJSON(v))
			return w.exprs.none
		}
		n.steps = []step{{of: r}}
	}
	if n.lo == nil && n.hi == nil && n.steps == nil {
		return w.exprs.any
	}
	set := restricted(kindNumber, &shape{number: n})
	if !n.possible() {
		set[kindNumber] = nil
	}
	return w.leaf(set, path)
}

// limit reads an inclusive and an exclusive keyword; the tighter one applies.
func (w *schemaWriter) limit(o *object, word, exclusive string, sign int, path string) *limit {
	var out *limit
	for _, k := range []string{word, exclusive} {
		v, ok := o.get(k)
		if !ok {
			continue
		}
		if flag, isFlag := v.(bool); isFlag { // in older drafts
			if out != nil {
				out.open = flag
			}
			continue
		}
		if !w.spend(16, path) {
			return nil
		}
		if n, isNumber := v.(json.Number); isNumber && beyondNumbers(n, sign) {
			continue
		}
		r, ok := rational(v)
		l, exact := newLimit(r, k == exclusive)
		if !ok || !exact {
			w.fail(path+"/"+k, "%.40s is not a number of at most %d digits", writeJSON(v), maxDigits)
			return nil
		}
		out = tighter(out, l, sign)
	}
	return out
}

// beyondNumbers reports whether all numbers that are written are above a lower limit
// (sign 1) or below an upper one (-1).
func beyondNumbers(n json.Number, sign int) bool {
	f, err := n.Float64()
	return err == nil && f*float64(sign) < -1e240
}

// tighter returns the limit that excludes more numbers; nil excludes none.
func tighter(a, b *limit, sign int) *limit {
	if a == nil || b != nil && (b.value.Cmp(a.value)*sign > 0 || b.value.Cmp(a.value) == 0 && b.open) {
		return b
	}
	return a
}

// joinNumbers returns the numbers in two shapes; possible is false if there are
// certainly none.
func (w *schemaWriter) joinNumbers(a, b *numberShape) (out *numberShape, possible bool) {
	if a.whole*b.whole < 0 || !w.spend(4+len(a.steps)/4+2*len(a.steps)*len(b.steps), b.path) {
		return nil, false
	}
	out = &numberShape{whole: a.whole, lo: tighter(a.lo, b.lo, 1), hi: tighter(a.hi, b.hi, -1), path: a.path}
	if out.whole == 0 {
		out.whole = b.whole
	}
	out.steps = slices.Clone(a.steps)
	for _, s := range b.steps {
		i := slices.IndexFunc(out.steps, func(t step) bool { return !t.not && !s.not || t.not == s.not && t.of.Cmp(s.of) == 0 })
		switch {
		case i < 0:
			out.steps = append(out.steps, s)
		case !s.not:
			out.steps[i].of = commonMultiple(s.of, out.steps[i].of)
			if !w.spend(size(out.steps[i].of)/16, b.path) {
				return nil, false
			}
			if size(out.steps[i].of) > maxMultiple {
				w.fail(b.path+"/multipleOf", "the least common multiple of multipleOf here and in other schemas is too long; use numbers with fewer digits")
				return nil, false
			}
		}
	}
	return out, out.possible()
}

// possible reports whether the limits leave any number.
func (n *numberShape) possible() bool {
	if n.lo == nil || n.hi == nil {
		return true
	}
	c := n.lo.value.Cmp(n.hi.value)
	return c < 0 || c == 0 && !n.lo.open && !n.hi.open
}

// maxMultiple limits the bits of a common multiple. One number of 400 digits, the longest
// one that is read, has 2,700.
const maxMultiple = 1 << 14

// size returns the number of bits of a number.
func size(r *big.Rat) int { return r.Num().BitLen() + r.Denom().BitLen() }

func commonMultiple(a, b *big.Rat) *big.Rat {
	x, y := new(big.Int).Mul(a.Num(), b.Denom()), new(big.Int).Mul(b.Num(), a.Denom())
	gcd := new(big.Int).GCD(nil, nil, x, y)
	return new(big.Rat).SetFrac(new(big.Int).Mul(x, new(big.Int).Quo(y, gcd)), new(big.Int).Mul(a.Denom(), b.Denom()))
}

// exceptNumbers returns the numbers that are not in a shape, which has conditions or
// the given values.
func (w *schemaWriter) exceptNumbers(s *shape, path string) []*numberShape {
	if s.values == nil {
		return exceptConditions(s.number)
	}
	var points []*limit
	for _, v := range s.values {
		r, ok := rational(v)
		l, exact := newLimit(r, true)
		if !ok || !exact {
			w.fail(path, "%.40s is not a number of at most %d digits, so it cannot be excluded", writeJSON(v), maxDigits)
			return nil
		}
		points = append(points, l)
	}
	slices.SortFunc(points, func(a, b *limit) int { return a.value.Cmp(b.value) })
	out := []*numberShape{{hi: points[0], path: path}}
	for i, p := range points {
		above := &numberShape{lo: p, path: path}
		if i+1 < len(points) {
			above.hi = points[i+1]
		}
		out = append(out, above)
	}
	return slices.DeleteFunc(out, func(n *numberShape) bool { return !n.possible() })
}

func exceptConditions(n *numberShape) []*numberShape {
	var out []*numberShape
	turned := func(l *limit) *limit {
		c := *l
		c.open = !l.open
		return &c
	}
	if n.whole != 0 {
		out = append(out, &numberShape{whole: -n.whole, path: n.path})
	}
	if n.lo != nil {
		out = append(out, &numberShape{hi: turned(n.lo), path: n.path})
	}
	if n.hi != nil {
		out = append(out, &numberShape{lo: turned(n.hi), path: n.path})
	}
	for _, s := range n.steps {
		out = append(out, &numberShape{steps: []step{{s.of, !s.not}}, path: n.path})
	}
	return out
}

func (w *schemaWriter) numberFits(v json.Number, n *numberShape, path string) bool {
	if !w.spend(4+len(v)/6, path) {
		return false
	}
	r, ok := rational(v)
	if !ok {
		if n.whole == 0 || n.lo != nil || n.hi != nil || n.steps != nil {
			w.fail(path, "the constant %.40s is too large or too small to compare with limits; remove the constant or the limits", v)
		}
		return n.whole > 0 && strings.Trim(v.String(), "-0123456789") == ""
	}
	return w.rationalFits(r, n, path)
}

func (w *schemaWriter) rationalFits(r *big.Rat, n *numberShape, path string) bool {
	if n.whole != 0 && r.IsInt() != (n.whole > 0) || !n.lo.allows(r, 1) || !n.hi.allows(r, -1) {
		return false
	}
	return !slices.ContainsFunc(n.steps, func(s step) bool {
		return !w.spend(2+(size(r)+size(s.of))/64, path) || new(big.Rat).Quo(r, s.of).IsInt() == s.not
	})
}

// allows reports whether a number is above (sign 1) or below (sign -1) the limit.
func (l *limit) allows(r *big.Rat, sign int) bool {
	if l == nil {
		return true
	}
	c := r.Cmp(l.value) * sign
	return c > 0 || c == 0 && !l.open
}

// hugeExponent matches numbers with an exact value of a megabyte or more.
var hugeExponent = regexp.MustCompile(`[eE][+-]?0*[1-9][0-9]{3}`)

// rational returns the exact value of a JSON number; ok is false for a huge exponent.
func rational(v any) (*big.Rat, bool) {
	n, ok := v.(json.Number)
	if !ok || len(n) > 400 || hugeExponent.MatchString(n.String()) {
		return nil, false
	}
	if f, err := n.Float64(); err != nil || f != 0 && (f > 1e60 || f < -1e60 || f < 1e-60 && f > -1e-60) {
		return nil, false
	}
	return new(big.Rat).SetString(n.String())
}
