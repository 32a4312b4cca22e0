package tokenizerfile

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// TestTokenizerBombs: tokenizer files that nest, repeat or state numbers without a limit
// cost no more than their own length.
func TestTokenizerBombs(t *testing.T) {
	bpe := func(vocab, more string) string {
		return `{"model": {"type": "BPE", "vocab": {` + vocab + `}, "merges": []}` + more + `}`
	}
	digits := strings.Repeat("9", 1<<16)
	for what, c := range map[string][3]string{
		"lists":           {"tokenizer.json", `{"model": ` + strings.Repeat("[", 1<<16), "max depth"},
		"pretokenizers":   {"tokenizer.json", bpe(`"a": 0`, `, "pre_tokenizer": `+strings.Repeat(`{"type": "Sequence", "pretokenizers": [`, 5000)+strings.Repeat("]}", 5000)), ""},
		"a large id":      {"tokenizer.json", bpe(`"a": 2147483647`, ""), "id"},
		"an id of 64 KB":  {"tokenizer.json", bpe(`"a": `+digits, ""), "tokenizer.json"},
		"one token":       {"tokenizer.json", bpe(strings.Repeat(`"a": 0, `, 1<<14)+`"b": 1`, ""), ""},
		"one id":          {"tokenizer.json", bpe(`"a": 0, "b": 0`, ""), ""},
		"a large added":   {"tokenizer.json", bpe(`"a": 0`, `, "added_tokens": [{"id": 2000000000, "content": "x"}]`), ""},
		"a pattern":       {"tokenizer.json", bpe(`"a": 0`, `, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "`+strings.Repeat("(", 1<<15)+`"}, "behavior": "Isolated"}`), "tokenizer.json"},
		"counted":         {"tokenizer.json", bpe(`"a": 0`, `, "pre_tokenizer": {"type": "Split", "pattern": {"Regex": "((((a{99}){99}){99}){99}){99}"}, "behavior": "Isolated"}`), "tokenizer.json"},
		"a vocabulary":    {"vocab.txt", strings.Repeat("\n", 1<<16), ""},
		"another large":   {"vocab.json", `{"a": 4000000000}`, ""},
		"length of 2^63":  {"tokenizer.model", "\x0a\xff\xff\xff\xff\xff\xff\xff\xff\x7f", "tokenizer.model"},
		"nested messages": {"tokenizer.model", strings.Repeat("\x0b", 1<<16), "tokenizer.model"},
	} {
		files := Files{c[0]: []byte(c[1])}
		t.Run(what, func(t *testing.T) {
			hostiletest.Refused(t, len(c[1]), func() error {
				tok, err := Load(files)
				if err == nil {
					exercise(t, tok)
				}
				return err
			}, c[2])
		})
	}
	for what, data := range map[string]string{"a token of 2 GB": "\x00\x00\x00\x00\x00\x00\x80?\xff\xff\xff\x7fa", "a longest token of 4 GB": "\xff\xff\xff\xff"} {
		t.Run(what, func(t *testing.T) {
			hostiletest.Refused(t, len(data), func() error { _, err := FromLlama2C([]byte(data), 1<<30); return err }, "tokenizer.bin")
		})
	}
	t.Run("serialized", func(t *testing.T) {
		hostiletest.Refused(t, 9, func() error { _, err := tokenizer.Unmarshal("\xff\xff\xff\xff\xff\xff\xff\xff\x7f"); return err }, "tokenizer")
	})
}
