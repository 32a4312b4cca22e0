package grammar

import (
	"math/rand/v2"
	"testing"
)

// BenchmarkMask measures the mask of an uncached position, over a vocabulary of 50,000
// generated words.
func BenchmarkMask(b *testing.B) {
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
	for _, c := range schemaCases[:1] {
		b.Run(c.name, func(b *testing.B) {
			for b.Loop() {
				g, err := ParseSchema([]byte(c.schema))
				if err != nil {
					b.Fatal(err)
				}
				m, err := NewMatcher(g, v)
				if err != nil {
					b.Fatal(err)
				}
				for _, r := range []byte(c.good[0][:min(8, len(c.good[0]))]) {
					if err := m.Accept(int32(r)); err != nil {
						b.Fatal(err)
					}
					if _, err := m.Mask(); err != nil {
						b.Fatal(err)
					}
				}
			}
		})
	}
}
