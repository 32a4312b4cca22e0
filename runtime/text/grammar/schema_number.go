package grammar

import (
	"math/big"
	"strings"
)

const (
	integers = `-?(0|[1-9][0-9]*)`
	numbers  = integers + `(\.[0-9]+)?([eE][+-]?[0-9]+)?`
)

// number writes the numbers of a schema. Those with limits have no exponent.
func (w *schemaWriter) number(o *object, integer bool, path string) part {
	lo := w.limit(o, "minimum", "exclusiveMinimum", 1, path)
	hi := w.limit(o, "maximum", "exclusiveMaximum", -1, path)
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

// A limit is an end of a range: its digits before and after the point, without
// zeros at the ends, and whether the range lacks it.
type limit struct {
	value    *big.Rat
	whole    string
	fraction string
	open     bool
}

const maxDigits = 64

// limit reads an inclusive and an exclusive keyword; the tighter one counts.
func (w *schemaWriter) limit(o *object, word, exclusive string, sign int, path string) *limit {
	var out *limit
	for _, k := range []string{word, exclusive} {
		v, ok := o.get(k)
		if !ok {
			continue
		}
		if flag, isFlag := v.(bool); isFlag && k == exclusive { // draft 4: a flag
			if out != nil {
				out.open = flag
			}
			continue
		}
		r, ok := rational(v)
		l, exact := newLimit(r, k == exclusive)
		if !ok || !exact {
			w.fail(path+"/"+k, "have %.40s, expected a number of at most %d digits", writeJSON(v), maxDigits)
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

// between writes the numbers from lo to hi; nil is no limit.
func (w *schemaWriter) between(lo, hi *limit, integer bool) part {
	b := w.b
	zero, _ := newLimit(new(big.Rat), false)
	var parts []part
	if hi == nil || hi.value.Sign() >= 0 { // magnitudes of numbers from 0
		from := zero
		if lo != nil && lo.value.Sign() >= 0 {
			from = lo
		}
		parts = append(parts, w.magnitudes(from, hi, integer))
	}
	if lo == nil || lo.value.Sign() < 0 { // of numbers below 0
		from := zero
		if hi != nil && hi.value.Sign() <= 0 {
			from = hi
		}
		parts = append(parts, b.seq(b.literal("-"), w.magnitudes(from, lo, integer)))
	}
	return b.alt(parts...)
}

// A place in the digits of a number: how many have been written, whether they
// are behind the point, and whether all are those of the lower or upper limit,
// so that the next one must keep to it.
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

// magnitudes writes the numbers without sign from lo to hi.
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
	if hi == nil { // more digits than lo has
		longer := b.seq(b.bytes('1', '9'), b.repeat(len(lo.whole), -1, func() part { return b.bytes('0', '9') }))
		if !integer {
			longer = b.seq(longer, b.optional(b.seq(b.literal("."), b.repeat(1, -1, func() part { return b.bytes('0', '9') }))))
		}
		b.eps(p.in, longer.in)
		b.eps(longer.out, p.out)
	}
	return p
}

// state gives the state of a place, with all that follows it.
func (d *digits) state(at place) int32 {
	if at.behind && at.n > 0 && !at.lo && !at.hi {
		at.n = 1 // nothing depends on the place any more
	}
	if at.behind && at.n > 0 {
		at.n = min(at.n, max(len(d.lo.fraction), d.hiDigits())+1)
	}
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
		if !d.integer {
			point := d.b.literal(".")
			d.b.eps(s, point.in)
			d.b.eps(point.out, d.state(place{behind: true, lo: at.lo, hi: at.hi}))
		}
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

func (d *digits) hiDigits() int {
	if d.hi == nil {
		return 0
	}
	return len(d.hi.fraction)
}

// digit is the digit of a limit at a place.
func (l *limit) digit(at place) byte {
	switch {
	case !at.behind:
		return l.whole[at.n]
	case at.n < len(l.fraction):
		return l.fraction[at.n]
	}
	return '0'
}

// next gives the place after a digit, if that keeps within the limits.
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

// mayEnd tells whether the digits up to a place are a number of the range.
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

// multiple writes the multiples of a step: whole numbers by the remainder of
// their digits, powers of ten below 1 by the count of digits behind the point.
func (w *schemaWriter) multiple(step any, integer, limited bool, path string) part {
	const most = 10000
	path += "/multipleOf"
	r, ok := rational(step)
	if !ok || r.Sign() <= 0 {
		return w.fail(path, "have %.40s, expected a number above 0", writeJSON(step))
	}
	if limited {
		return w.fail(path, "multipleOf beside minimum or maximum is not supported")
	}
	one := big.NewInt(1)
	switch {
	case r.Num().Cmp(one) == 0 && integer:
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
	return w.fail(path, "have %.40s; supported are whole numbers up to %d and powers of ten below 1", writeJSON(step), most)
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
