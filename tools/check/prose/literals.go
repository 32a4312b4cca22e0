package main

import (
	"regexp/syntax"
	"strings"
)

// literals returns texts of which each match of a regular expression contains at least one;
// nil: unknown. Searching for them is much faster than searching for the expression.
func literals(re *syntax.Regexp) []string {
	switch re.Op {
	case syntax.OpLiteral:
		if re.Flags&syntax.FoldCase == 0 {
			return []string{string(re.Rune)}
		}
	case syntax.OpCapture, syntax.OpPlus:
		return literals(re.Sub[0])
	case syntax.OpRepeat:
		if re.Min > 0 {
			return literals(re.Sub[0])
		}
	case syntax.OpAlternate:
		var all []string
		for _, sub := range re.Sub {
			some := literals(sub)
			if some == nil {
				return nil
			}
			all = append(all, some...)
		}
		return all
	case syntax.OpConcat:
		var best []string
		for _, sub := range re.Sub {
			if some := literals(sub); best == nil || some != nil && shortest(some) > shortest(best) {
				best = some
			}
		}
		return best
	}
	return nil
}

// shortest returns the length of the shortest text.
func shortest(list []string) int {
	n := len(list[0])
	for _, text := range list {
		n = min(n, len(text))
	}
	return n
}

// mayOccur reports whether a lower-case text contains one of the phrase's literals.
func (p *phrase) mayOccur(lower string) bool {
	for _, text := range p.literals {
		if strings.Contains(lower, text) {
			return true
		}
	}
	return p.literals == nil
}
