package spec

import (
	"strconv"
	"strings"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
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

type patGrammar struct {
	Parts []*patPart `parser:"@@+"`
}

type patPart struct {
	Text string `parser:"  @Text"`
	Hole string `parser:"| '{' @Hole '}'"`
}

var patParser = participle.MustBuild[patGrammar](participle.Lexer(lexer.MustStateful(lexer.Rules{
	"Root": {
		{Name: "Open", Pattern: `\{`, Action: lexer.Push("Hole")},
		{Name: "Text", Pattern: `[^{}\s]+`},
	},
	"Hole": {
		{Name: "Hole", Pattern: `[ij]`},
		{Name: "Close", Pattern: `\}`, Action: lexer.Pop()},
	},
})))

// ParsePattern parses a tensor name pattern. Errors contain the column.
func ParsePattern(s string) (*Pattern, error) {
	g, err := patParser.ParseString("", s)
	if err != nil {
		return nil, grammarError(s, err, "want a name in which {i} is the layer and {j} the expert")
	}
	p := &Pattern{src: s}
	for _, part := range g.Parts {
		pp := patternPart{text: part.Text}
		if part.Hole != "" {
			pp.hole = part.Hole[0]
		}
		p.parts = append(p.parts, pp)
	}
	return p, nil
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
