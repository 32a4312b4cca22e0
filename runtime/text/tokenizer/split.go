package tokenizer

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// splitBehavior determines what happens to the delimiters that a pattern matches.
type splitBehavior uint8

const (
	splitRemoved splitBehavior = iota
	splitIsolated
	splitMergedWithPrevious
	splitMergedWithNext
	splitContiguous
)

func parseBehavior(name string) (splitBehavior, error) {
	switch name {
	case "Removed":
		return splitRemoved, nil
	case "Isolated":
		return splitIsolated, nil
	case "MergedWithPrevious":
		return splitMergedWithPrevious, nil
	case "MergedWithNext":
		return splitMergedWithNext, nil
	case "Contiguous":
		return splitContiguous, nil
	}
	return 0, fmt.Errorf("behavior %q is not known; expected Removed, Isolated, MergedWithPrevious, MergedWithNext or Contiguous", name)
}

// splitter splits text at the matches of find.
type splitter struct {
	find     func(s string) []regexp.Span
	behavior splitBehavior
	invert   bool // the text between matches is the delimiter
}

func newSplit(c *Component) (*splitter, error) {
	behavior, err := parseBehavior(c.Behavior)
	if err != nil {
		return nil, err
	}
	s := &splitter{behavior: behavior, invert: c.Invert}
	switch {
	case c.Pattern != nil && c.Pattern.String != nil:
		literal := *c.Pattern.String
		s.find = func(text string) []regexp.Span { return findLiteral(text, literal) }
	case c.Pattern != nil && c.Pattern.Regex != nil:
		re, err := regexp.Compile(*c.Pattern.Regex)
		if err != nil {
			return nil, err
		}
		s.find = re.FindAll
	default:
		return nil, fmt.Errorf("needs a pattern with the key String or Regex")
	}
	return s, nil
}

func findLiteral(text, literal string) []regexp.Span {
	var out []regexp.Span
	for pos := 0; literal != ""; {
		i := strings.Index(text[pos:], literal)
		if i < 0 {
			break
		}
		out = append(out, regexp.Span{Start: pos + i, End: pos + i + len(literal)})
		pos += i + len(literal)
	}
	return out
}

// findRunes matches single characters.
func findRunes(is func(rune) bool) func(string) []regexp.Span {
	return func(s string) []regexp.Span {
		var out []regexp.Span
		for i, r := range s {
			if is(r) {
				out = append(out, regexp.Span{Start: i, End: i + regexp.RuneLen(s, i)})
			}
		}
		return out
	}
}

// findWords matches runs of word characters, and runs of other characters except white
// space: \w+|[^\w\s]+.
func findWords(s string) []regexp.Span {
	kind := func(r rune) int {
		switch {
		case wordClass().Has(r):
			return 1
		case isSpace(r):
			return 0
		}
		return 2
	}
	var out []regexp.Span
	last := 0
	for i, r := range s {
		k := kind(r)
		switch {
		case k != 0 && k == last:
			out[len(out)-1].End = i + regexp.RuneLen(s, i)
		case k != 0:
			out = append(out, regexp.Span{Start: i, End: i + regexp.RuneLen(s, i)})
		}
		last = k
	}
	return out
}

// stretch is a part of the text: a match of the pattern or the text between matches.
type stretch struct {
	regexp.Span
	match bool
}

// stretches covers s without gaps.
func (t *splitter) stretches(s string) []stretch {
	found := t.find(s)
	out := make([]stretch, 0, 2*len(found)+1)
	done := 0
	for _, m := range found {
		if done < m.Start {
			out = append(out, stretch{regexp.Span{Start: done, End: m.Start}, t.invert})
		}
		out = append(out, stretch{m, !t.invert})
		done = m.End
	}
	if done < len(s) {
		out = append(out, stretch{regexp.Span{Start: done, End: len(s)}, t.invert})
	}
	return out
}

func (t *splitter) split(out []piece, p piece) []piece {
	for _, s := range t.behavior.apply(t.stretches(p.text)) {
		if s.Start < s.End {
			out = append(out, piece{p.text[s.Start:s.End], p.first && s.Start == 0})
		}
	}
	return out
}

// apply keeps, drops or joins stretches.
func (b splitBehavior) apply(all []stretch) []stretch {
	switch b {
	case splitRemoved:
		return slices.DeleteFunc(all, func(s stretch) bool { return s.match })
	case splitMergedWithPrevious:
		return joinPrevious(all)
	case splitMergedWithNext:
		return joinNext(all)
	case splitContiguous:
		return joinEqual(all)
	}
	return all
}

func joinPrevious(all []stretch) []stretch {
	out := all[:0]
	previous := false
	for _, s := range all {
		if s.match && !previous && len(out) > 0 {
			out[len(out)-1].End = s.End
		} else {
			out = append(out, s)
		}
		previous = s.match
	}
	return out
}

func joinNext(all []stretch) []stretch {
	var out []stretch
	previous := false
	for i := len(all) - 1; i >= 0; i-- {
		s := all[i]
		if s.match && !previous && len(out) > 0 {
			out[len(out)-1].Start = s.Start
		} else {
			out = append(out, s)
		}
		previous = s.match
	}
	slices.Reverse(out)
	return out
}

func joinEqual(all []stretch) []stretch {
	out := all[:0]
	previous := false
	for _, s := range all {
		if s.match == previous && len(out) > 0 {
			out[len(out)-1].End = s.End
		} else {
			out = append(out, s)
		}
		previous = s.match
	}
	return out
}
