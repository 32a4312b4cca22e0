package grammar

// A pattern is a regular expression over characters, as a tree.
type pattern struct {
	op     patternOp
	ranges []runeRange // of a patternSet
	kids   []*pattern
	lo, hi int  // of a patternRepeat; hi < 0: no limit
	not    bool // of a patternLook: its pattern must not match
	behind bool // of a patternLook: it looks at the text before
	size   int  // of a pattern that was read: the number of its nodes and ranges
}

type patternOp uint8

const (
	patternEmpty patternOp = iota
	patternSet             // one character
	patternConcat
	patternAlternate
	patternRepeat
	patternLook  // look-ahead or look-behind
	patternBegin // start of the text
	patternEnd   // end of the text
)

func setOf(ranges ...runeRange) *pattern { return &pattern{op: patternSet, ranges: ranges} }

func concat(kids ...*pattern) *pattern { return &pattern{op: patternConcat, kids: kids} }

func alternate(kids ...*pattern) *pattern { return &pattern{op: patternAlternate, kids: kids} }

func repeated(kid *pattern, lo, hi int) *pattern {
	return &pattern{op: patternRepeat, kids: []*pattern{kid}, lo: lo, hi: hi}
}

func look(kid *pattern, not, behind bool) *pattern {
	return &pattern{op: patternLook, kids: []*pattern{kid}, not: not, behind: behind}
}

// has reports whether the pattern contains one of the ops.
func (p *pattern) has(ops ...patternOp) bool {
	for _, op := range ops {
		if p.op == op {
			return true
		}
	}
	for _, kid := range p.kids {
		if kid.has(ops...) {
			return true
		}
	}
	return false
}
