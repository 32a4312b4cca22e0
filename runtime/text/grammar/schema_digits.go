package grammar

import (
	"math/big"
	"strconv"
	"strings"
)

// Limits on the length of numbers, so that a model that repeats a digit ends: 20 digits
// before the point, as many as integers of 64 bits have, 17 after it, which distinguish all
// doubles, and exponents up to 199.
const (
	integers = `-?(0|[1-9][0-9]{0,19})`
	numbers  = integers + `(\.[0-9]{1,17})?([eE][+-]?[01]?[0-9]{1,2})?`

	exactIntegers = `(0|-?[1-9][0-9]{0,19})`
	exactNumbers  = `(0|-?[1-9][0-9]{0,19}|-?(0\.[0-9]{0,14}|[1-9][0-9]{0,7}\.[0-9]{0,6})[1-9])` // see precise
)

// Limits on the digits of numbers: longest applies to numbers without limits. In a
// range with fractions, and in an array with unique items, the total of a number with a
// fraction is limited to precise digits: decimal numbers of this length differ as doubles
// too, so a reader that compares doubles finds the same.
const (
	longest = 20
	precise = 15
)

// number writes the numbers of a shape. With conditions, exponents are not allowed.
func (w *schemaWriter) number(n *numberShape) part {
	all, allIntegers := numbers, integers
	if w.exact {
		all, allIntegers = exactNumbers, exactIntegers
	}
	if n == nil {
		return w.rule(all, func() part { return w.fixed(all) })
	}
	residues, whole, ok := n.residues()
	if !ok {
		return w.multiples(n)
	}
	for _, l := range []*limit{n.lo, n.hi} {
		if l != nil && l.open && !whole && l.fraction != "" && len(l.whole)+len(l.fraction) > precise {
			return w.fail(n.path, "an exclusive limit with a fraction may have at most %d digits, so that doubles can distinguish it from its neighbors", precise)
		}
	}
	if whole && n.whole >= 0 && n.lo == nil && n.hi == nil {
		if len(residues) == 0 || len(residues) == 1 && !residues[0].not && residues[0].modulus == 1 {
			return w.rule(allIntegers, func() part { return w.fixed(allIntegers) })
		}
	}
	return w.rule(n.key(whole, w.exact), func() part {
		d := &digits{b: w.b, integer: whole, fraction: n.whole < 0, exact: w.exact, residues: residues, longest: digitsOf(residues)}
		return d.between(n.lo, n.hi)
	})
}

// residues returns the residues of the steps, and whether all numbers are integers. ok
// is false if the numbers are not written digit by digit.
func (n *numberShape) residues() (list []residue, whole, ok bool) {
	whole = n.whole > 0
	for _, s := range n.steps {
		if !s.not && s.of.IsInt() {
			whole = true
		}
	}
	states := 1
	for _, s := range n.steps {
		r, ok := newResidue(s, whole)
		if states *= r.modulus + 1; !ok || states > maxRemainders {
			return nil, whole, false
		}
		list = append(list, r)
	}
	return list, whole, true
}

// fixed writes a pattern of this package.
func (w *schemaWriter) fixed(text string) part {
	p, err := regex(text)
	if err != nil {
		panic("bug: " + err.Error())
	}
	out, _ := w.b.pattern(p, plainText, true)
	return out
}

// maxRemainders limits the states of multipleOf for each place of a number.
const maxRemainders = 10000

// multiples writes the numbers of a shape one by one.
func (w *schemaWriter) multiples(n *numberShape) part {
	const most = 4096
	for _, s := range n.steps {
		if s.not || n.lo == nil || n.hi == nil {
			continue
		}
		first, last := new(big.Rat).Quo(n.lo.value, s.of), new(big.Rat).Quo(n.hi.value, s.of)
		at, end := floor(first), floor(last)
		if count := new(big.Int).Sub(end, at); !count.IsInt64() || count.Int64() > most {
			break
		}
		var parts []part
		for ; at.Cmp(end) <= 0; at.Add(at, big.NewInt(1)) {
			value := new(big.Rat).Mul(new(big.Rat).SetInt(at), s.of)
			text, exact := decimal(value)
			if w.spend(8+size(value)/64, n.path) && exact && w.rationalFits(value, n, n.path) {
				parts = append(parts, w.b.literal(text))
			}
		}
		return w.b.alt(parts...)
	}
	return w.fail(n.path+"/multipleOf", "expected a number with at most the digits %d, not counting the point, or a minimum and a maximum with at most %d multiples between them", maxRemainders-1, most)
}

func floor(r *big.Rat) *big.Int {
	q, _ := new(big.Int).DivMod(r.Num(), r.Denom(), new(big.Int))
	return q
}

// decimal formats a number. exact is false if it has more than maxDigits digits after the
// point.
func decimal(r *big.Rat) (text string, exact bool) {
	if r.IsInt() {
		return r.Num().String(), true
	}
	places, finite := r.FloatPrec()
	return strings.TrimRight(r.FloatString(maxDigits), "0"), finite && places <= maxDigits
}

// A residue decides whether a number is a multiple of modulus / 10^places.
type residue struct {
	modulus, places int
	not             bool
}

// newResidue returns the residue of a step. The integers that are multiples of p/q are
// the multiples of p.
func newResidue(s step, whole bool) (residue, bool) {
	of := s.of
	if whole {
		of = new(big.Rat).SetInt(of.Num())
	}
	r := residue{not: s.not}
	ten := big.NewRat(10, 1)
	for ; !of.IsInt(); r.places++ {
		of = new(big.Rat).Mul(of, ten)
	}
	if !of.Num().IsInt64() || of.Num().Int64() > maxRemainders || r.places > precise {
		return residue{}, false
	}
	r.modulus = int(of.Num().Int64())
	return r, true
}

// next returns the remainder after a digit, of which n digits after the point precede.
// The remainder modulus means that the number is no multiple, whatever follows.
func (r residue) next(rem, digit, n int, behind bool) int {
	switch {
	case rem == r.modulus:
		return rem
	case !behind || n < r.places:
		return (rem*10 + digit) % r.modulus
	case digit != 0:
		return r.modulus
	}
	return rem
}

// ends reports whether a number with n digits after the point meets the condition.
func (r residue) ends(rem, n int) bool {
	if rem == r.modulus {
		return r.not
	}
	for ; n < r.places; n++ {
		rem = rem * 10 % r.modulus
	}
	return (rem == 0) != r.not
}

// digitsOf returns the number of digits before the point of numbers without limits: fewer
// if each place has many states, but at least two more than those of a step.
func digitsOf(list []residue) int {
	const most = 60_000
	states, least := 1, 0
	for _, r := range list {
		states *= r.modulus + 1
		least = max(least, len(strconv.Itoa(r.modulus))+2)
	}
	return min(longest, max(least, most/states))
}
