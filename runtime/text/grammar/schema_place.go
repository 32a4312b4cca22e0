package grammar

import (
	"encoding/json"
	"math/big"
	"slices"
)

func jsonNumber(text string) json.Number { return json.Number(text) }

// digits writes numbers digit by digit.
type digits struct {
	b         *builder
	lo, hi    *limit // of the digits without their sign; hi may be nil
	integer   bool   // no point
	fraction  bool   // no integers
	exact     bool   // no zero at the end of a fraction, and no zero with a sign
	residues  []residue
	longest   int // digits before the point, without limits
	out       int32
	states    map[place]int32
	remainder map[string]int // numbers of lists of remainders
	lists     [][]int
}

// A place is a position in the digits of a number. The limits restrict the next digit
// only while all digits so far equal those of the limit.
type place struct {
	left       int  // digits that must follow before the point, or may follow behind it
	first      bool // no zero may follow, because another digit must follow it
	behind     bool // behind the point
	written    int  // digits behind the point that matter to residues and limits
	at         int  // digits before or behind the point, while a limit matters
	lo, hi     bool // all digits so far equal those of the limit
	some, odd  bool // a digit was written behind the point, one that is not 0
	zero       bool // the last digit behind the point is 0
	remainders int
}

// between writes the numbers from lo to hi; nil means no limit.
func (d *digits) between(lo, hi *limit) part {
	b := d.b
	zero, _ := newLimit(new(big.Rat), false)
	var parts []part
	if hi == nil || hi.value.Sign() >= 0 { // numbers >= 0
		from := zero
		if lo != nil && lo.value.Sign() >= 0 {
			from = lo
		}
		parts = append(parts, d.magnitudes(from, hi))
	}
	if lo == nil || lo.value.Sign() < 0 { // numbers < 0
		from, _ := newLimit(new(big.Rat), d.exact)
		if hi != nil && hi.value.Sign() <= 0 {
			from = hi
		}
		parts = append(parts, b.seq(b.literal("-"), d.magnitudes(from, lo)))
	}
	return b.alt(parts...)
}

// magnitudes writes the unsigned numbers from lo to hi.
func (d *digits) magnitudes(lo, hi *limit) part {
	d.lo, d.hi, d.states, d.remainder, d.lists = lo, hi, map[place]int32{}, map[string]int{}, nil
	p := d.b.nothing()
	d.out = p.out
	last := max(d.longest, len(lo.whole)+1)
	if hi != nil {
		last = len(hi.whole)
	}
	zeros := d.number(make([]int, len(d.residues)))
	for n := len(lo.whole); n <= last; n++ {
		from := place{left: n, first: n > 1, lo: n == len(lo.whole), hi: hi != nil && n == len(hi.whole), remainders: zeros}
		d.b.eps(p.in, d.state(from))
	}
	return p
}

func (d *digits) number(list []int) int {
	key := make([]int32, len(list))
	for i, r := range list {
		key[i] = int32(r)
	}
	n, ok := d.remainder[stateKey(key)]
	if !ok {
		n = len(d.lists)
		d.remainder[stateKey(key)] = n
		d.lists = append(d.lists, list)
	}
	return n
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
	if !at.behind && at.left == 0 {
		if length := at.written; !d.integer && length < precise {
			point := d.b.literal(".")
			d.b.eps(s, point.in)
			d.b.eps(point.out, d.state(place{left: precise - length, behind: true, lo: at.lo, hi: at.hi, remainders: at.remainders}))
		}
		return s
	}
	if at.left == 0 {
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
		return l.whole[at.at]
	case at.at < len(l.fraction):
		return l.fraction[at.at]
	}
	return '0'
}

// next returns the place after a digit, and whether the digit keeps within the limits.
func (d *digits) next(at place, c byte) (place, bool) {
	if at.first && c == '0' {
		return place{}, false
	}
	to := at
	to.first, to.left = false, at.left-1
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
	to.at = 0
	if to.lo || to.hi {
		to.at = at.at + 1
	}
	if len(d.residues) > 0 {
		list := slices.Clone(d.lists[at.remainders])
		for i, r := range d.residues {
			list[i] = r.next(list[i], int(c-'0'), at.written, at.behind)
			if list[i] == r.modulus && !r.not {
				return place{}, false
			}
		}
		to.remainders = d.number(list)
	}
	to.written = at.written + 1
	if at.behind {
		most := 0
		for _, r := range d.residues {
			most = max(most, r.places)
		}
		to.written = min(to.written, most)
		to.some, to.odd = true, at.odd || c != '0'
		to.odd, to.zero = to.odd && d.fraction, d.exact && c == '0'
	}
	if d.integer {
		to.written = 0
	}
	return to, true
}

// mayEnd reports whether the digits up to a place are a number in the range.
func (d *digits) mayEnd(at place) bool {
	if !at.behind && at.left > 0 || at.behind && !at.some || d.fraction && !at.odd || at.zero {
		return false
	}
	n := 0
	if at.behind {
		n = at.at
	}
	if at.lo && (n < len(d.lo.fraction) || d.lo.open) || at.hi && n >= len(d.hi.fraction) && d.hi.open {
		return false
	}
	n = 0
	if at.behind {
		n = at.written
	}
	for i, r := range d.residues {
		if !r.ends(d.lists[at.remainders][i], n) {
			return false
		}
	}
	return true
}
