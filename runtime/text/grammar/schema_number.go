package grammar

import (
	"math/big"
	"strings"
)

// Limits on the length of numbers: 32 digits before and after the point, and exponents
// up to 199, which all doubles support.
const (
	integers = `-?(0|[1-9][0-9]{0,31})`
	numbers  = integers + `(\.[0-9]{1,32})?([eE][+-]?[01]?[0-9]{1,2})?`
)

// Limits on the digits of numbers: longest applies to integers without limits. In a
// range with fractions, the total is limited to precise digits: decimal numbers of this
// length differ as doubles too, so a reader that compares doubles finds a number on the
// same side of a limit.
const (
	longest = 32
	precise = 15
)

// number writes the numbers of a schema. With limits, exponents are not allowed.
func (w *schemaWriter) number(o *object, integer bool, path string) part {
	lo, hi := w.limits(o, path)
	for _, l := range []*limit{lo, hi} {
		if l != nil && l.open && !integer && l.fraction != "" && len(l.whole)+len(l.fraction) > precise {
			w.fail(path, "an exclusive limit with a fraction may have at most %d digits, so that doubles can distinguish it from its neighbors", precise)
		}
	}
	if w.err != nil {
		return w.b.nothing()
	}
	if step, ok := o.get("multipleOf"); ok {
		return w.multiple(step, integer, lo != nil || hi != nil, path)
	}
	if lo == nil && hi == nil {
		name := numbers
		if integer {
			name = integers
		}
		return w.rule(name, func() part { return w.pattern(name) })
	}
	return w.between(lo, hi, integer)
}

// pattern writes a pattern of this package.
func (w *schemaWriter) pattern(text string) part {
	p, err := w.b.regex(text, plainText, true)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return p
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

// limits returns the ends of a schema's range; nil means no limit.
func (w *schemaWriter) limits(o *object, path string) (lo, hi *limit) {
	return w.limit(o, "minimum", "exclusiveMinimum", 1, path), w.limit(o, "maximum", "exclusiveMaximum", -1, path)
}

// limit reads an inclusive and an exclusive keyword; the tighter one applies.
func (w *schemaWriter) limit(o *object, word, exclusive string, sign int, path string) *limit {
	var out *limit
	for _, k := range []string{word, exclusive} {
		v, ok := o.get(k)
		if !ok {
			continue
		}
		if flag, isFlag := v.(bool); isFlag && k == exclusive && w.drafts("draft-03", "draft-04") { // a boolean in older drafts
			if out != nil {
				out.open = flag
			}
			continue
		}
		if !w.spend(16, path) {
			return nil
		}
		r, ok := rational(v)
		l, exact := newLimit(r, k == exclusive)
		if !ok || !exact {
			w.fail(path+"/"+k, "%.40s is not a number of at most %d digits", writeJSON(v), maxDigits)
			return nil
		}
		if out == nil || r.Cmp(out.value)*sign >= 0 {
			out = l
		}
	}
	return out
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

// between writes the numbers from lo to hi; nil means no limit.
func (w *schemaWriter) between(lo, hi *limit, integer bool) part {
	b := w.b
	zero, _ := newLimit(new(big.Rat), false)
	var parts []part
	if hi == nil || hi.value.Sign() >= 0 { // numbers >= 0
		from := zero
		if lo != nil && lo.value.Sign() >= 0 {
			from = lo
		}
		parts = append(parts, w.magnitudes(from, hi, integer))
	}
	if lo == nil || lo.value.Sign() < 0 { // numbers < 0
		from := zero
		if hi != nil && hi.value.Sign() <= 0 {
			from = hi
		}
		parts = append(parts, b.seq(b.literal("-"), w.magnitudes(from, lo, integer)))
	}
	return b.alt(parts...)
}

// A place is a position in the digits of a number: the number of digits written,
// whether they are after the point, and whether they all equal those of the lower or
// upper limit, which then restricts the next digit.
type place struct {
	behind bool
	n      int
	lo, hi bool
}

type digits struct {
	b       *builder
	lo, hi  *limit // hi may be nil
	integer bool
	out     int32
	states  map[place]int32
	length  int // digits before the point
}

// magnitudes writes the unsigned numbers from lo to hi.
func (w *schemaWriter) magnitudes(lo, hi *limit, integer bool) part {
	b := w.b
	p := b.nothing()
	longest := len(lo.whole)
	if hi != nil {
		longest = len(hi.whole)
	}
	for n := len(lo.whole); n <= longest; n++ {
		d := &digits{b: b, lo: lo, hi: hi, integer: integer, out: p.out, states: map[place]int32{}, length: n}
		b.eps(p.in, d.state(place{lo: n == len(lo.whole), hi: hi != nil && n == len(hi.whole)}))
	}
	if hi == nil {
		w.longer(p, len(lo.whole), integer)
	}
	return p
}

// longer adds to p the numbers with more than n digits before the point.
func (w *schemaWriter) longer(p part, n int, integer bool) {
	b := w.b
	fractions := []int32{p.out} // states by number of digits that may follow
	for i := 1; !integer && i < precise; i++ {
		s := b.state()
		b.states[s].edges = append(b.states[s].edges, edge{'0', '9', fractions[i-1]})
		b.eps(s, p.out)
		fractions = append(fractions, s)
	}
	at := b.bytes('1', '9')
	b.eps(p.in, at.in)
	for i := 1; i <= max(longest, n+1); i++ {
		if i > n {
			b.eps(at.out, p.out)
			if left := precise - i; !integer && left > 0 {
				first := b.seq(b.literal("."), b.bytes('0', '9'))
				b.eps(at.out, first.in)
				b.eps(first.out, fractions[left-1])
			}
		}
		at = b.seq(at, b.bytes('0', '9'))
	}
}

// state returns the state of a place, and creates everything that follows it.
func (d *digits) state(at place) int32 {
	if s, ok := d.states[at]; ok {
		return s
	}
	s := d.b.state()
	d.states[at] = s
	if d.b.err != nil {
		return s
	}
	if d.mayEnd(at) {
		d.b.eps(s, d.out)
	}
	if !at.behind && at.n == d.length {
		if !d.integer && d.length < precise {
			point := d.b.literal(".")
			d.b.eps(s, point.in)
			d.b.eps(point.out, d.state(place{behind: true, lo: at.lo, hi: at.hi}))
		}
		return s
	}
	if at.behind && at.n == precise-d.length {
		return s
	}
	for c := byte('0'); c <= '9'; c++ {
		if next, ok := d.next(at, c); ok {
			to := d.state(next)
			d.b.states[s].edges = append(d.b.states[s].edges, edge{c, c, to})
		}
	}
	return s
}

// digit returns the digit of a limit at a place.
func (l *limit) digit(at place) byte {
	switch {
	case !at.behind:
		return l.whole[at.n]
	case at.n < len(l.fraction):
		return l.fraction[at.n]
	}
	return '0'
}

// next returns the place after a digit, and whether the digit keeps within the limits.
func (d *digits) next(at place, c byte) (place, bool) {
	if !at.behind && at.n == 0 && c == '0' && d.length > 1 {
		return place{}, false
	}
	to := place{behind: at.behind, n: at.n + 1}
	if at.lo {
		if c < d.lo.digit(at) {
			return place{}, false
		}
		to.lo = c == d.lo.digit(at)
	}
	if at.hi {
		if c > d.hi.digit(at) {
			return place{}, false
		}
		to.hi = c == d.hi.digit(at)
	}
	return to, true
}

// mayEnd reports whether the digits up to a place are a number in the range.
func (d *digits) mayEnd(at place) bool {
	if !at.behind && at.n < d.length || at.behind && at.n == 0 {
		return false
	}
	n := 0
	if at.behind {
		n = at.n
	}
	if at.lo && (n < len(d.lo.fraction) || d.lo.open) {
		return false
	}
	return !at.hi || n < len(d.hi.fraction) || !d.hi.open
}

// multiple writes the multiples of a step: for integers by the remainder of their
// digits, for powers of ten below 1 by the number of digits after the point.
func (w *schemaWriter) multiple(step any, integer, limited bool, path string) part {
	const most = 10000
	path += "/multipleOf"
	r, ok := rational(step)
	if !ok || r.Sign() <= 0 {
		return w.fail(path, "expected a number above 0, found %.40s", writeJSON(step))
	}
	if limited {
		return w.fail(path, "multipleOf together with minimum or maximum is not supported; use one of them, or an enum")
	}
	one := big.NewInt(1)
	if integer { // the integer multiples of p/q are the multiples of p
		r = new(big.Rat).SetInt(r.Num())
	}
	switch {
	case r.IsInt() && r.Num().Cmp(one) == 0:
		return w.pattern(integers)
	case r.IsInt() && r.Num().IsInt64() && r.Num().Int64() <= most:
		return w.remainders(int(r.Num().Int64()))
	}
	for k, ten := 1, big.NewInt(10); k <= 20; k++ {
		if r.Num().Cmp(one) == 0 && r.Denom().Cmp(ten) == 0 {
			b := w.b
			return b.seq(w.pattern(integers), b.optional(b.seq(b.literal("."), b.repeat(1, k, func() part { return b.bytes('0', '9') }))))
		}
		ten = new(big.Int).Mul(ten, big.NewInt(10))
	}
	return w.fail(path, "%.40s is not supported; use an integer up to %d or a power of ten below 1", writeJSON(step), most)
}

func (w *schemaWriter) remainders(n int) part {
	b := w.b
	states := make([]int32, n)
	for i := range states {
		states[i] = b.state()
	}
	p := b.nothing()
	start := b.state()
	b.eps(p.in, start)
	minus := b.literal("-")
	b.eps(p.in, minus.in)
	b.eps(minus.out, start)
	zero := b.literal("0")
	b.eps(start, zero.in)
	b.eps(zero.out, p.out)
	for c := range 10 {
		digit := byte('0' + c)
		if c > 0 {
			b.states[start].edges = append(b.states[start].edges, edge{digit, digit, states[c%n]})
		}
		for i, s := range states {
			b.states[s].edges = append(b.states[s].edges, edge{digit, digit, states[(i*10+c)%n]})
		}
	}
	b.eps(states[0], p.out)
	return p
}
