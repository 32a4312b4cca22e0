package regexp

import (
	"slices"
	"unicode"
)

// A Set is a set of code points: sorted, disjoint, inclusive lo,hi pairs.
type Set []rune

// normalizeSet sorts and merges arbitrary lo,hi pairs into a Set.
func normalizeSet(pairs []rune) Set {
	type span struct{ lo, hi rune }
	spans := make([]span, 0, len(pairs)/2)
	for i := 0; i+1 < len(pairs); i += 2 {
		if pairs[i] <= pairs[i+1] {
			spans = append(spans, span{pairs[i], pairs[i+1]})
		}
	}
	slices.SortFunc(spans, func(a, b span) int { return int(a.lo) - int(b.lo) })
	var out Set
	for _, s := range spans {
		if n := len(out); n > 0 && s.lo <= out[n-1]+1 {
			out[n-1] = max(out[n-1], s.hi)
			continue
		}
		out = append(out, s.lo, s.hi)
	}
	return out
}

// Union returns the union of s and o.
func (s Set) Union(o Set) Set {
	return normalizeSet(append(slices.Clone(s), o...))
}

// Negate returns the complement.
func (s Set) Negate() Set {
	var out Set
	next := rune(0)
	for i := 0; i < len(s); i += 2 {
		if s[i] > next {
			out = append(out, next, s[i]-1)
		}
		next = s[i+1] + 1
	}
	if next <= unicode.MaxRune {
		out = append(out, next, unicode.MaxRune)
	}
	return out
}

// Intersect returns the intersection of s and o.
func (s Set) Intersect(o Set) Set {
	return s.Negate().Union(o.Negate()).Negate()
}

// fold adds the simple case variants of every code point.
func (s Set) fold() Set {
	pairs := slices.Clone(s)
	for i := 0; i < len(s); i += 2 {
		if s[i+1]-s[i] > 4096 {
			continue // huge ranges (negated classes, \p{L}) already contain their case variants
		}
		for r := s[i]; r <= s[i+1]; r++ {
			for f := unicode.SimpleFold(r); f != r; f = unicode.SimpleFold(f) {
				pairs = append(pairs, f, f)
			}
		}
	}
	return normalizeSet(pairs)
}

// Table returns the code points of Unicode tables.
func Table(tables ...*unicode.RangeTable) Set {
	var pairs []rune
	for _, t := range tables {
		for _, r := range t.R16 {
			pairs = appendStride(pairs, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
		for _, r := range t.R32 {
			pairs = appendStride(pairs, rune(r.Lo), rune(r.Hi), rune(r.Stride))
		}
	}
	return normalizeSet(pairs)
}

func appendStride(pairs []rune, lo, hi, stride rune) []rune {
	if stride == 1 {
		return append(pairs, lo, hi)
	}
	for r := lo; r <= hi; r += stride {
		pairs = append(pairs, r, r)
	}
	return pairs
}

// A Class is a Set with fast lookup: a bitmap of the basic multilingual plane and a
// sorted list above it.
type Class struct {
	bmp  [1024]uint64
	high Set
}

// NewClass returns the class of a set.
func NewClass(s Set) *Class {
	c := &Class{}
	for i := 0; i < len(s); i += 2 {
		lo, hi := s[i], s[i+1]
		for r := lo; r <= min(hi, 0xffff); r++ {
			c.bmp[r>>6] |= 1 << (r & 63)
		}
		if hi > 0xffff {
			c.high = append(c.high, max(lo, 0x10000), hi)
		}
	}
	return c
}

// Has reports whether the class contains a code point.
func (c *Class) Has(r rune) bool {
	if uint32(r) < 0x10000 {
		return c.bmp[r>>6]&(1<<(r&63)) != 0
	}
	lo, hi := 0, len(c.high)/2
	for lo < hi {
		mid := (lo + hi) / 2
		if r > c.high[2*mid+1] {
			lo = mid + 1
		} else {
			hi = mid
		}
	}
	return lo < len(c.high)/2 && r >= c.high[2*lo]
}
