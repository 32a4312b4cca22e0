package spec

import (
	"fmt"
	"strconv"
	"strings"
)

// A Pattern is a tensor name with placeholders for indices: {i} is the layer, {j}
// the expert or head.
type Pattern struct {
	src   string
	parts []patternPart
}

type patternPart struct {
	text string // literal, if hole is 0
	hole byte   // 'i' or 'j'
}

// ParsePattern parses a tensor name pattern. Errors contain the column.
func ParsePattern(s string) (*Pattern, error) {
	p := &Pattern{src: s}
	for at := 0; at < len(s); {
		rest := s[at:]
		n := strings.IndexAny(rest, "{} \t\n\f\r")
		switch {
		case strings.HasPrefix(rest, "{i}"), strings.HasPrefix(rest, "{j}"):
			n = len("{i}")
			p.parts = append(p.parts, patternPart{hole: rest[1]})
		case n == 0:
			return nil, patternError(s, at)
		default:
			if n < 0 {
				n = len(rest)
			}
			p.parts = append(p.parts, patternPart{text: rest[:n]})
		}
		at += n
	}
	if len(p.parts) == 0 {
		return nil, patternError(s, 0)
	}
	return p, nil
}

// patternError returns the error about a pattern that has no part at byte at.
func patternError(s string, at int) error {
	if rest := s[at:]; strings.HasPrefix(rest, "{") {
		at++
		if strings.HasPrefix(rest, "{i") || strings.HasPrefix(rest, "{j") {
			at++
		}
	}
	found := "the end of the name"
	if at < len(s) {
		found = strconv.Quote(s[at : at+1])
	}
	return fmt.Errorf("%q: column %d: unexpected %s; want a name in which {i} is the layer and {j} the expert", s, at+1, found)
}

// String returns the pattern as written.
func (p *Pattern) String() string { return p.src }

// Match reports whether the name matches and returns its indices; an index that
// the pattern does not contain is -1.
func (p *Pattern) Match(name string) (i, j int, ok bool) {
	i, j = -1, -1
	for _, part := range p.parts {
		if part.hole == 0 {
			if name, ok = strings.CutPrefix(name, part.text); !ok {
				return -1, -1, false
			}
			continue
		}
		n := 0
		for n < len(name) && n < 6 && '0' <= name[n] && name[n] <= '9' {
			n++
		}
		v, err := strconv.Atoi(name[:n])
		if err != nil || n > 1 && name[0] == '0' {
			return -1, -1, false
		}
		have := &i
		if part.hole == 'j' {
			have = &j
		}
		if *have >= 0 && *have != v {
			return -1, -1, false
		}
		*have, name = v, name[n:]
	}
	return i, j, name == ""
}

// Name returns the name with the placeholders replaced by the indices.
func (p *Pattern) Name(i, j int) string {
	var b strings.Builder
	for _, part := range p.parts {
		switch part.hole {
		case 0:
			b.WriteString(part.text)
		case 'i':
			b.WriteString(strconv.Itoa(i))
		default:
			b.WriteString(strconv.Itoa(j))
		}
	}
	return b.String()
}
