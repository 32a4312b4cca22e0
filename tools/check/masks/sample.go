package main

import (
	"bytes"
	"math/bits"
	"math/rand/v2"

	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// A sampler draws texts among the allowed tokens.
type sampler struct {
	rng   *rand.Rand
	words *vocabulary
}

// text samples tokens until the end of the grammar or the limit. In its second half it
// prefers tokens that lead to the end.
func (s *sampler) text(g *grammar.Grammar, v *grammar.Vocabulary, limit int) (text []int32, ended bool, err error) {
	m, err := grammar.NewMatcher(g, v)
	if err != nil {
		return nil, false, err
	}
	for len(text) < limit && !m.Done() {
		mask, err := m.Mask()
		if err != nil {
			return nil, false, err
		}
		closing := 0.12
		if len(text) >= limit/2 {
			closing = 0.6
		}
		id := s.draw(mask, closing)
		if err := m.Accept(id); err != nil {
			return nil, false, err
		}
		text = append(text, id)
	}
	return text, m.Done(), nil
}

// draw samples an allowed token: with the probability closing one that ends a string,
// an array or an object, if any. Otherwise the weight falls with the id as in natural
// text: vocabularies list frequent tokens first.
func (s *sampler) draw(mask []uint64, closing float64) int32 {
	onlyEnds := s.rng.Float64() < closing
	total, best, bestEnd := 0.0, int32(-1), int32(-1)
	for w, word := range mask {
		for ; word != 0; word &= word - 1 {
			id := int32(w*64 + bits.TrailingZeros64(word))
			if onlyEnds && (id == s.words.eos || ends(s.words.words[id])) {
				if s.rng.IntN(int(id)+2) == 0 || bestEnd < 0 {
					bestEnd = id
				}
			}
			weight := 1 / float64(id+300)
			total += weight
			if s.rng.Float64()*total < weight {
				best = id
			}
		}
	}
	if bestEnd >= 0 {
		return bestEnd
	}
	return best
}

// ends reports whether a token consists of closing quotes and brackets.
func ends(word []byte) bool { return len(word) > 0 && len(bytes.Trim(word, `"]}`)) == 0 }
