package grammar

import (
	"math/rand/v2"
	"testing"
)

// generatedWords returns a vocabulary of all bytes and of generated words, 50,000 tokens.
func generatedWords(b testing.TB) *Vocabulary {
	rng := rand.New(rand.NewPCG(7, 8))
	v, err := NewVocabulary(50000, func(id int32) []byte {
		if id < 256 {
			return []byte{byte(id)}
		}
		word := make([]byte, 2+rng.IntN(8))
		for i := range word {
			word[i] = " etaoinshrdlcumwfgypbvk,.\":{}[]0123"[rng.IntN(35)]
		}
		return word
	}, nil)
	if err != nil {
		b.Fatal(err)
	}
	return v
}

// BenchmarkMask measures the masks along a text, with a new grammar, over a vocabulary of
// 50,000 generated words.
func BenchmarkMask(b *testing.B) {
	v := generatedWords(b)
	for _, c := range []struct{ name, schema, text string }{
		{"object", `{"type":"object"}`, `{"name": [{"a": "text", "b": [[1, "more"]]}]}`},
		{"properties", schemaCases[0].schema, schemaCases[0].good[0]},
		{"length", `{"type":"array","items":{"type":"string","maxLength":200}}`, `["some text", "and more"]`},
		{"pattern", `{"type":"array","items":{"type":"string","pattern":"^[a-z][a-z0-9 ]{2,30}$"}}`, `["some text", "and more"]`},
	} {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				m := schemaMatcher(b, c.schema, v)
				for _, r := range []byte(c.text) {
					if err := m.Accept(int32(r)); err != nil {
						b.Fatal(err)
					}
					if m.Done() {
						break
					}
					if _, err := m.Mask(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
