package tokenizer

import (
	"strings"
	"sync"

	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// gpt2Pattern is GPT-2's word pattern (Radford et al. 2019, encoder.py).
const gpt2Pattern = `'s|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+`

var gpt2Regex = sync.OnceValue(func() *regexp.Regexp {
	re, err := regexp.Compile(gpt2Pattern)
	if err != nil {
		panic("bug: " + err.Error())
	}
	return re
})

// byteLevel is GPT-2's pre-tokenizer: it optionally prepends a space, splits the text
// into words and spells bytes in a printable alphabet.
type byteLevel struct {
	prefixSpace bool
	words       *splitter
	spell       bool
}

func newByteLevel(prefixSpace, useRegex, spell bool) (*byteLevel, error) {
	b := &byteLevel{prefixSpace: prefixSpace, spell: spell}
	if useRegex {
		b.words = &splitter{find: gpt2Regex().FindAll, behavior: splitIsolated}
	}
	return b, nil
}

func (b *byteLevel) split(out []piece, p piece) []piece {
	if b.prefixSpace && !strings.HasPrefix(p.text, " ") {
		p.text = " " + p.text
	}
	start := len(out)
	if b.words == nil {
		out = append(out, p)
	} else {
		out = b.words.split(out, p)
	}
	if b.spell {
		for i := start; i < len(out); i++ {
			out[i].text = ByteAlphabet(out[i].text)
		}
	}
	return out
}
