package grammar

// A runeSet is a set of characters: one bit for each ASCII character, and two bits for
// the others. It is exact for ASCII except NUL and DEL, whose bits have another use.
type runeSet struct{ low, high uint64 }

// Members of a runeSet that are not ASCII characters.
const (
	broken = 0    // NUL, DEL or bytes that are not UTF-8
	beyond = 0x7F // any character of several bytes; the last one may be incomplete
)

// has reports whether c, an ASCII character or one of the constants, is a member.
func (s runeSet) has(c byte) bool {
	if c < 64 {
		return s.low>>c&1 == 1
	}
	return s.high>>(c-64)&1 == 1
}

func (s *runeSet) add(c byte) {
	if c < 64 {
		s.low |= 1 << c
	} else {
		s.high |= 1 << (c - 64)
	}
}

func (s runeSet) union(t runeSet) runeSet { return runeSet{s.low | t.low, s.high | t.high} }

func (s runeSet) intersect(t runeSet) runeSet { return runeSet{s.low & t.low, s.high & t.high} }

// within reports whether s is a subset of t.
func (s runeSet) within(t runeSet) bool { return s.low&^t.low|s.high&^t.high == 0 }

// meets reports whether s and t have common members.
func (s runeSet) meets(t runeSet) bool { return s.low&t.low|s.high&t.high != 0 }

// memberOf returns the member for a character with the first byte c.
func memberOf(c byte) byte {
	switch {
	case c >= 0x80:
		return beyond
	case c == 0 || c == 0x7F:
		return broken
	}
	return c
}

// A byteRange is an inclusive range of bytes.
type byteRange struct{ lo, hi byte }

// encodings are the byte sequences of all characters of several bytes in UTF-8.
var encodings = [][]byteRange{
	{{0xC2, 0xDF}, {0x80, 0xBF}},
	{{0xE0, 0xE0}, {0xA0, 0xBF}, {0x80, 0xBF}},
	{{0xE1, 0xEC}, {0x80, 0xBF}, {0x80, 0xBF}},
	{{0xED, 0xED}, {0x80, 0x9F}, {0x80, 0xBF}},
	{{0xEE, 0xEF}, {0x80, 0xBF}, {0x80, 0xBF}},
	{{0xF0, 0xF0}, {0x90, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
	{{0xF1, 0xF3}, {0x80, 0xBF}, {0x80, 0xBF}, {0x80, 0xBF}},
	{{0xF4, 0xF4}, {0x80, 0x8F}, {0x80, 0xBF}, {0x80, 0xBF}},
}

// characters returns the set and the number of a token's characters, at most 255.
func characters(text []byte) (s runeSet, n int) {
	at := uint8(whole)
	for _, c := range text {
		if at == whole {
			n++
			s.add(memberOf(c))
		}
		if at = advance(at, c); at == invalid {
			s.add(broken)
			break
		}
	}
	return s, min(n, 255)
}

// Where a node's path ends. Others are 4e + k: after k bytes of a character
// of encodings[e].
const (
	whole   = 0    // after complete characters
	invalid = 0xFF // after bytes that are not UTF-8
)

// advance returns where a path ends after another byte.
func advance(at uint8, c byte) uint8 {
	switch {
	case at == invalid:
		return invalid
	case at != whole:
		e, k := int(at/4), int(at%4)
		if r := encodings[e][k]; c < r.lo || c > r.hi {
			return invalid
		}
		if k+1 == len(encodings[e]) {
			return whole
		}
		return at + 1
	case c < 0x80:
		return whole
	}
	for e, ranges := range encodings {
		if ranges[0].lo <= c && c <= ranges[0].hi {
			return uint8(4*e + 1)
		}
	}
	return invalid
}

// describe computes what the nodes say about their paths and the texts below.
func (v *Vocabulary) describe() {
	ends := make([]uint8, len(v.nodes)) // of the nodes' paths
	for i := range v.nodes {
		n := &v.nodes[i]
		from, to := n.children()
		for j := from; j < to; j++ {
			chars := int(n.chars)
			if ends[i] == whole {
				chars++
			}
			ends[j] = advance(ends[i], v.nodes[j].b)
			if chars > 255 {
				ends[j] = invalid
			}
			if ends[j] != invalid {
				v.nodes[j].chars = uint8(chars)
			}
		}
	}
	for i := len(v.nodes) - 1; i >= 0; i-- {
		if ends[i] != invalid {
			v.lookBelow(&v.nodes[i], ends, ends[i] == whole)
		}
	}
}

// lookBelow sets what a node says about the texts below, from what its children say.
// whole reports whether its path ends after a character.
func (v *Vocabulary) lookBelow(n *node, ends []uint8, whole bool) {
	from, to := n.children()
	for j := from; j < to; j++ {
		c := &v.nodes[j]
		if ends[j] == invalid {
			n.below.add(broken)
			continue
		}
		n.below = n.below.union(c.below)
		longest := int(c.longest)
		if whole {
			n.below.add(memberOf(c.b))
			longest++
		}
		n.longest = max(n.longest, uint8(min(longest, 255)))
	}
}
