package tokenizer

import "unicode"

// scriptSplitter splits where the Unicode script changes. Spaces belong to the
// preceding piece; leading spaces are dropped. Kana and the long-vowel mark count as
// Han, as in SentencePiece.
type scriptSplitter struct{}

func (scriptSplitter) split(out []piece, p piece) []piece {
	start, last := 0, ""
	for i, r := range p.text {
		script := scriptOf(r)
		if script == "" {
			continue
		}
		if last == "" {
			start = i
		} else if script != last {
			out = append(out, piece{p.text[start:i], p.first && start == 0})
			start = i
		}
		last = script
	}
	if last != "" {
		out = append(out, piece{p.text[start:], p.first && start == 0})
	}
	return out
}

// scriptOf returns the script of r, or "" for spaces and code points without a script,
// which join either side.
func scriptOf(r rune) string {
	switch {
	case r == ' ' || scriptsUnknownClass().Has(r):
		return ""
	case r == 0x589 || r == 0x61c: // assigned to a script in a newer Unicode version
		return "Common"
	}
	if r == 0x30fc || unicode.In(r, unicode.Hiragana, unicode.Katakana) {
		return "Han"
	}
	for name, table := range unicode.Scripts {
		if unicode.Is(table, r) {
			return name
		}
	}
	return ""
}
