package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// piece is a part of a text before tokenization. first marks the piece at the start of
// the whole input.
type piece struct {
	text  string
	first bool
}

// preTokenizer splits a piece.
type preTokenizer interface {
	split(out []piece, p piece) []piece
}

type preTokenizerSequence []preTokenizer

func (q preTokenizerSequence) split(out []piece, p piece) []piece {
	switch len(q) {
	case 0:
		return append(out, p)
	case 1:
		return q[0].split(out, p)
	}
	current := q[0].split(nil, p)
	for _, t := range q[1 : len(q)-1] {
		next := make([]piece, 0, len(current))
		for _, p := range current {
			next = t.split(next, p)
		}
		current = next
	}
	for _, p := range current {
		out = q[len(q)-1].split(out, p)
	}
	return out
}

// buildPreTokenizer returns a pre-tokenizer; for nil it does not split. With rawBytes,
// a final ByteLevel step leaves the spelling in GPT-2's alphabet to the model, which is
// much faster.
func buildPreTokenizer(c *Component, rawBytes bool) (preTokenizer, error) {
	if c == nil {
		return preTokenizerSequence{}, nil
	}
	steps, err := flattenPreTokenizers(nil, c, 0)
	if err != nil {
		return nil, err
	}
	var q preTokenizerSequence
	for i, s := range steps {
		t, err := buildPreTokenizerStep(s, rawBytes && i == len(steps)-1)
		if err != nil {
			return nil, fmt.Errorf("pre_tokenizer %s: %w", s.Type, err)
		}
		q = append(q, t)
	}
	return q, nil
}

// endsInByteLevel reports whether the last step is ByteLevel.
func endsInByteLevel(c *Component) bool {
	steps, err := flattenPreTokenizers(nil, c, 0)
	return err == nil && len(steps) > 0 && steps[len(steps)-1].Type == "ByteLevel"
}

func flattenPreTokenizers(out []*Component, c *Component, depth int) ([]*Component, error) {
	if c == nil {
		return out, nil
	}
	if depth > maxComponentDepth {
		return nil, fmt.Errorf("pre_tokenizer: sequences nest deeper than %d", maxComponentDepth)
	}
	if c.Type != "Sequence" {
		return append(out, c), nil
	}
	var err error
	for i := range c.Pretokenizers {
		if out, err = flattenPreTokenizers(out, &c.Pretokenizers[i], depth+1); err != nil {
			return nil, err
		}
	}
	return out, nil
}

func buildPreTokenizerStep(c *Component, rawBytes bool) (preTokenizer, error) {
	switch c.Type {
	case "ByteLevel":
		return newByteLevel(orTrue(c.AddPrefixSpace), orTrue(c.UseRegex), !rawBytes)
	case "Split":
		return newSplit(c)
	case "Whitespace":
		return &splitter{findWords, splitRemoved, true}, nil
	case "WhitespaceSplit":
		return &splitter{findRunes(isSpace), splitRemoved, false}, nil
	case "BertPreTokenizer":
		return preTokenizerSequence{
			&splitter{findRunes(isSpace), splitRemoved, false},
			&splitter{findRunes(isPunctuation), splitIsolated, false},
		}, nil
	case "Punctuation":
		behavior := splitIsolated
		if c.Behavior != "" {
			var err error
			if behavior, err = parseBehavior(c.Behavior); err != nil {
				return nil, err
			}
		}
		return &splitter{findRunes(isPunctuation), behavior, false}, nil
	case "Digits":
		behavior := splitContiguous
		if c.IndividualDigits {
			behavior = splitIsolated
		}
		return &splitter{findRunes(func(r rune) bool { return numericClass().Has(r) }), behavior, false}, nil
	case "CharDelimiterSplit":
		delimiter, n := utf8.DecodeRuneInString(c.Delimiter)
		if n != len(c.Delimiter) || n == 0 {
			return nil, fmt.Errorf("delimiter %q is not one character", c.Delimiter)
		}
		return &splitter{findRunes(func(r rune) bool { return r == delimiter }), splitRemoved, false}, nil
	case "Metaspace":
		return newMetaspace(c)
	case "UnicodeScripts":
		return scriptSplitter{}, nil
	case "FixedLength":
		if c.Length < 1 {
			return nil, fmt.Errorf("length %d; expected at least 1", c.Length)
		}
		return fixedLength(c.Length), nil
	}
	return nil, fmt.Errorf("unknown type")
}

func isPunctuation(r rune) bool { return punctuationClass().Has(r) }

// fixedLength splits after every n characters.
type fixedLength int

func (n fixedLength) split(out []piece, p piece) []piece {
	start, count := 0, 0
	for i := range p.text {
		if count == int(n) {
			out = append(out, piece{p.text[start:i], p.first && start == 0})
			start, count = i, 0
		}
		count++
	}
	if start < len(p.text) {
		out = append(out, piece{p.text[start:], p.first && start == 0})
	}
	return out
}

// metaspace replaces spaces by a visible mark and splits before it.
type metaspace struct {
	mark  string
	first bool // prepend the mark only at the start of the text
	never bool
	cut   bool
}

func newMetaspace(c *Component) (*metaspace, error) {
	m := &metaspace{mark: c.Replacement, cut: orTrue(c.Split)}
	if m.mark == "" {
		m.mark = "▁"
	}
	switch c.PrependScheme {
	case "always":
	case "":
		m.never = c.AddPrefixSpace != nil && !*c.AddPrefixSpace
	case "first":
		m.first = true
	case "never":
		m.never = true
	default:
		return nil, fmt.Errorf("prepend_scheme %q is not known; expected always, first or never", c.PrependScheme)
	}
	return m, nil
}

func (m *metaspace) split(out []piece, p piece) []piece {
	s := strings.ReplaceAll(p.text, " ", m.mark)
	if !m.never && (!m.first || p.first) && !strings.HasPrefix(s, m.mark) {
		s = m.mark + s
	}
	if !m.cut {
		return append(out, piece{s, p.first})
	}
	words := splitter{find: func(s string) []regexp.Span { return findLiteral(s, m.mark) }, behavior: splitMergedWithNext}
	return words.split(out, piece{s, p.first})
}
