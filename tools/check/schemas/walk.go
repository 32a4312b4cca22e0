package main

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/grammar"
)

const eos = 256 // the token that ends a text

// tokens is a vocabulary: all bytes, the end token, and pieces as in
// tokenizers, some of which span several parts of JSON.
func tokens() [][]byte {
	var out [][]byte
	for b := range 256 {
		out = append(out, []byte{byte(b)})
	}
	out = append(out, nil) // the end
	for i := range 1000 {
		out = append(out, fmt.Append(nil, i))
		if i < 100 {
			out = append(out, fmt.Appendf(nil, "%02d", i))
		}
	}
	pieces := "\": |\":|\":\"|\": \"|\": {|\":[|{\"|[\"|\",\"|\", \"|\"}|\"]|\"},|]}|}}|}]|],|},|[]|{}|[{|[[|,\"|, \"|\"\"|[ |{ | }|\n|\n\n|\r\n|\t| |  |    |,\n|{\n  \"|" +
		"true|false|null|tru|nul|-|-1|0.|.5|.0|00|e+|E-|e1|\\|\\\"|\\\\|\\n|\\u|\\u00|\\u0041|\\ud83d|\\ude00|\\/|" +
		"the| the| a|in|er|ing| name|name|id|value|type|red|green|blue|foo|bar|abc|ab|x1|Key|http|://|www.|.com|@|2024|-01-|T12:|:00Z|::1|192.|" +
		"é|ü|ß|ñ|漢|字|中文|😀|👍🏽|\u2028|\u00a0|\u0301|٣|Ω|\ufeff|\u0000|\u007f"
	for _, p := range strings.Split(pieces, "|") {
		if p != "" {
			out = append(out, []byte(p))
		}
	}
	for c := rune(0x80); c < 0x500; c += 7 { // characters of two bytes
		out = append(out, []byte(string(c)))
	}
	return out
}

// A walk samples one text.
type walk struct {
	rng   *rand.Rand
	words [][]byte
	style string
}

// text samples tokens among the allowed ones until the end or a limit. In its
// second half it prefers tokens that lead to the end.
func (w *walk) text(g *grammar.Grammar, v *grammar.Vocabulary, limit int) text {
	t := text{Style: w.style}
	m, err := grammar.NewMatcher(g, v)
	if err != nil {
		t.Error = err.Error()
		return t
	}
	var out []byte
	for i := 0; i < limit && !t.Ended; i++ {
		mask, err := m.Mask()
		if err != nil {
			t.Error = err.Error()
			break
		}
		id := w.draw(mask, i >= limit/2)
		if err := m.Accept(id); err != nil {
			t.Error = err.Error()
			break
		}
		if t.Ended = id == eos; !t.Ended {
			out = append(out, w.words[id]...)
		}
	}
	t.Text = string(out)
	return t
}

// draw samples one of the tokens that a mask allows.
func (w *walk) draw(mask []uint64, toEnd bool) int32 {
	var ids []int32
	var sums []float64
	sum := 0.0
	for id := range int32(len(w.words)) {
		if mask[id/64]>>(id%64)&1 == 1 {
			sum += w.weight(id, toEnd)
			ids, sums = append(ids, id), append(sums, sum)
		}
	}
	at := w.rng.Float64() * sum
	for i, s := range sums {
		if at < s {
			return ids[i]
		}
	}
	return ids[len(ids)-1]
}

// weight returns the weight of a token in a style.
func (w *walk) weight(id int32, toEnd bool) float64 {
	word := w.words[id]
	if toEnd || w.style == "end" {
		switch {
		case id == eos:
			return 1e6
		case len(word) == 1 && bytes.Contains([]byte(`"}]`), word):
			return 1e3
		case len(word) == 1 && bytes.Contains([]byte(`:,0123456789ntf`), word):
			return 30
		}
		return 0.1
	}
	switch w.style {
	case "long":
		return float64(len(word)*len(word)) + 0.01
	case "odd": // white space, digits and escapes
		if bytes.ContainsAny(word, " \t\r\n0123456789\\.-eE+") {
			return 20
		}
	case "parts": // parts of values, little text in strings
		if bytes.ContainsAny(word, "\"{}[],:") || id == eos {
			return 50
		}
	}
	return 1
}
