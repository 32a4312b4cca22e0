package tokenizer

import (
	"strings"

	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// spNormalizer implements SentencePiece's normalizer.cc: it replaces the longest known
// prefix at every position, collapses spaces and writes them as marks.
type spNormalizer struct {
	charsmap     *charsmap
	dummyPrefix  bool
	removeSpaces bool
	userText     *tokenMatcher // copied unchanged
}

func (n *spNormalizer) normalize(s string) string {
	if n.removeSpaces {
		for s != "" {
			text, used := n.prefix(s)
			if text != " " {
				break
			}
			s = s[used:]
		}
	}
	if s == "" {
		return ""
	}
	var b strings.Builder
	if n.dummyPrefix {
		b.WriteString(Mark)
	}
	afterSpace := n.removeSpaces
	for s != "" {
		text, used := n.prefix(s)
		s = s[used:]
		if afterSpace {
			text = strings.TrimLeft(text, " ")
		}
		if text != "" {
			b.WriteString(strings.ReplaceAll(text, " ", Mark))
			afterSpace = strings.HasSuffix(text, " ")
		}
		afterSpace = afterSpace && n.removeSpaces
	}
	out := b.String()
	for n.removeSpaces && strings.HasSuffix(out, Mark) {
		out = strings.TrimSuffix(out, Mark)
	}
	return out
}

// prefix normalizes the start of s and returns the number of bytes used.
func (n *spNormalizer) prefix(s string) (text string, used int) {
	if end, index := n.userText.longestAt(s, 0); index >= 0 {
		return s[:end], end
	}
	if n.charsmap != nil {
		if text, used, ok := n.charsmap.longest(s); ok {
			return text, used
		}
	}
	used = regexp.RuneLen(s, 0)
	return s[:used], used
}
