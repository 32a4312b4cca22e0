package regexp

import "unicode/utf8"

// matcher is the state of one search.
type matcher struct {
	text  string
	steps int // rest of the budget
	depth int
	loop  []int // per opLoop: start of the current iteration, -1 outside
}

const (
	maxMatchDepth = 50000
	noMatch       = -1
	stepsPerByte  = 200
	stepsBase     = 1 << 20
)

// A Span is a half-open byte range.
type Span struct{ Start, End int }

// FindAll returns the non-overlapping matches from left to right. It omits an empty
// match directly after the previous match. When the step budget, which is proportional
// to the length of text, is used up, it returns the matches so far.
func (re *Regexp) FindAll(text string) []Span {
	m := &matcher{text: text, steps: stepsBase + stepsPerByte*len(text), loop: make([]int, re.loops)}
	var out []Span
	last := -1
	first := firstOf(re.start)
	for pos := 0; pos <= len(text) && m.steps > 0; {
		end := noMatch
		if first.admits(text, pos) {
			end = m.search(re.start, pos)
		}
		if end == noMatch || (end == pos && pos == last) {
			pos += RuneLen(text, pos)
			continue
		}
		out = append(out, Span{pos, end})
		last = end
		if end == pos {
			pos += RuneLen(text, pos)
			continue
		}
		pos = end
	}
	return out
}

func (m *matcher) search(n *node, pos int) int {
	for i := range m.loop {
		m.loop[i] = -1
	}
	m.depth = 0
	return m.match(n, pos)
}

// RuneLen returns the length in bytes of the code point at pos, at least 1.
func RuneLen(s string, pos int) int {
	if pos >= len(s) || s[pos] < utf8.RuneSelf {
		return 1
	}
	_, n := utf8.DecodeRuneInString(s[pos:])
	return n
}

// one returns the length of the code point at pos if the class contains it, else 0.
func (m *matcher) one(c *Class, pos int) int {
	if pos >= len(m.text) {
		return 0
	}
	if b := m.text[pos]; b < utf8.RuneSelf {
		return int(c.bmp[b>>6] >> (b & 63) & 1)
	}
	r, n := utf8.DecodeRuneInString(m.text[pos:])
	if !c.Has(r) {
		return 0
	}
	return n
}

// match returns the end of the match of n and its continuation, or noMatch.
func (m *matcher) match(n *node, pos int) int {
	if m.depth++; m.depth > maxMatchDepth {
		m.steps = 0
	}
	end := m.walk(n, pos)
	m.depth--
	return end
}

func (m *matcher) walk(n *node, pos int) int {
	for {
		if m.steps--; m.steps <= 0 {
			return noMatch
		}
		switch n.op {
		case opAccept:
			return pos
		case opSet:
			w := m.one(n.class, pos)
			if w == 0 {
				return noMatch
			}
			pos += w
		case opSetLoop:
			if n.next.op != opAccept || n.mode == 'l' {
				if n.mode != 'p' {
					return m.setLoop(n, pos)
				}
			}
			end, count := m.run(n, pos)
			if count < n.min {
				return noMatch
			}
			pos = end
		case opAlt:
			return m.alternatives(n, pos)
		case opLoop:
			return m.groupLoop(n, pos)
		case opLook:
			if m.look(n, pos) == n.negated {
				return noMatch
			}
		case opAtomic:
			if pos = m.match(n.kids[0], pos); pos == noMatch {
				return noMatch
			}
		case opAnchor:
			if !m.anchor(n.mode, pos) {
				return noMatch
			}
		}
		n = n.next
	}
}

// run matches as many characters of the class as allowed.
func (m *matcher) run(n *node, pos int) (end, count int) {
	for count < n.max {
		w := m.one(n.class, pos)
		if w == 0 {
			break
		}
		pos += w
		count++
	}
	m.steps -= count / 8
	return pos, count
}

func (m *matcher) setLoop(n *node, pos int) int {
	if n.mode == 'l' {
		return m.lazyLoop(n, pos)
	}
	end, count := m.run(n, pos)
	for ; count >= n.min; count-- {
		if r := m.match(n.next, end); r != noMatch {
			return r
		}
		if count == 0 || m.steps <= 0 {
			break
		}
		_, w := utf8.DecodeLastRuneInString(m.text[pos:end])
		end -= w
	}
	return noMatch
}

func (m *matcher) lazyLoop(n *node, pos int) int {
	for count := 0; ; count++ {
		if count >= n.min {
			if r := m.match(n.next, pos); r != noMatch {
				return r
			}
		}
		w := m.one(n.class, pos)
		if count >= n.max || w == 0 || m.steps <= 0 {
			return noMatch
		}
		pos += w
	}
}

func (m *matcher) alternatives(n *node, pos int) int {
	for i, kid := range n.kids {
		if !n.first[i].admits(m.text, pos) {
			continue
		}
		if r := m.match(kid, pos); r != noMatch {
			return r
		}
	}
	return noMatch
}

// groupLoop repeats a group; an iteration that consumed nothing ends the loop.
func (m *matcher) groupLoop(n *node, pos int) int {
	before := m.loop[n.loop]
	again := func() int {
		if before == pos {
			return noMatch
		}
		m.loop[n.loop] = pos
		return m.match(n.kids[0], pos)
	}
	leave := func() int {
		m.loop[n.loop] = -1
		return m.match(n.kids[1], pos)
	}
	tries := [2]func() int{again, leave}
	if n.mode == 'l' {
		tries = [2]func() int{leave, again}
	}
	for _, try := range tries {
		if r := try(); r != noMatch {
			return r
		}
	}
	m.loop[n.loop] = before
	return noMatch
}

func (m *matcher) look(n *node, pos int) bool {
	if !n.behind {
		return m.match(n.kids[0], pos) != noMatch
	}
	text := m.text
	defer func() { m.text = text }()
	m.text = text[:pos]
	for start := pos; start >= 0; start-- {
		if start < pos && !utf8.RuneStart(text[start]) {
			continue
		}
		if m.match(n.kids[0], start) == pos {
			return true
		}
		if m.steps <= 0 || pos-start > maxLookBehind {
			break
		}
	}
	return false
}

// maxLookBehind limits look-behind in bytes. Oniguruma allows only patterns of fixed
// length there, which are short.
const maxLookBehind = 256

func (m *matcher) anchor(kind byte, pos int) bool {
	switch kind {
	case 'A':
		return pos == 0
	case 'z':
		return pos == len(m.text)
	case 'Z':
		return pos == len(m.text) || (pos == len(m.text)-1 && m.text[pos] == '\n')
	case '^':
		return pos == 0 || m.text[pos-1] == '\n'
	case '$':
		return pos == len(m.text) || m.text[pos] == '\n'
	case 'b', 'B':
		before, _ := utf8.DecodeLastRuneInString(m.text[:pos])
		after, _ := utf8.DecodeRuneInString(m.text[pos:])
		atEdge := (pos > 0 && wordClass().Has(before)) != (pos < len(m.text) && wordClass().Has(after))
		return atEdge == (kind == 'b')
	}
	return false
}
