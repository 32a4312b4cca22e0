package decode

import (
	"encoding/binary"
	"math/rand/v2"
)

// pickFSD is Frustratingly Simple Decoding (Yang et al. 2024, section 3): the
// k most probable are judged by (1-alpha) times their probability minus alpha
// times the probability that a language model of n-grams, counted in the text
// so far, gives them.
func pickFSD(p params, _ *rand.Rand) picker {
	m := &ngrams{n: p.whole("n"), beta: p["beta"], counts: map[string]map[int32]int{}, totals: map[string]int{}}
	k, alpha := p.whole("k"), p["alpha"]
	return func(pool []candidate, history []int32) int {
		m.learn(history)
		if len(history) < m.n-1 {
			return 0
		}
		best, top := 0, 0.0
		for i, c := range pool[:min(k, len(pool))] {
			score := (1-alpha)*c.p - alpha*m.penalty(history, c.id)
			if i == 0 || score > top {
				best, top = i, score
			}
		}
		return best
	}
}

// randomStart is for how many tokens random_fsd may sample.
const randomStart = 10

// pickRandomFSD is FSD, but each of the first tokens is sampled if a coin says
// so.
func pickRandomFSD(p params, rng *rand.Rand) picker {
	fsd, sample := pickFSD(p, rng), pickStd(p, rng)
	tokens := 0
	return func(pool []candidate, history []int32) int {
		tokens++
		at := fsd(pool, history) // it counts the text whoever chooses
		if tokens <= randomStart && rng.Float64() < 0.5 {
			return sample(pool, history)
		}
		return at
	}
}

// ngrams counts which tokens followed which contexts of up to n-1 tokens.
type ngrams struct {
	n      int
	beta   float64
	seen   int // tokens of the text that are counted
	counts map[string]map[int32]int
	totals map[string]int
	key    []byte
}

// context spells tokens as a key.
func (m *ngrams) context(tokens []int32) string {
	m.key = m.key[:0]
	for _, t := range tokens {
		m.key = binary.LittleEndian.AppendUint32(m.key, uint32(t))
	}
	return string(m.key)
}

// learn counts the tokens that the text has gained.
func (m *ngrams) learn(text []int32) {
	for ; m.seen < len(text); m.seen++ {
		for i := 0; i < m.n && i <= m.seen; i++ {
			c := m.context(text[m.seen-i : m.seen])
			if m.counts[c] == nil {
				m.counts[c] = map[int32]int{}
			}
			m.counts[c][text[m.seen]]++
			m.totals[c]++
		}
	}
}

// penalty is the n-gram model's probability of a token: longer contexts take
// beta of what is left, orders in which the token did not follow none.
func (m *ngrams) penalty(text []int32, token int32) float64 {
	left, sum := 1.0, 0.0
	for i := m.n - 1; i > 0; i-- {
		c := m.context(text[len(text)-i:])
		if count := m.counts[c][token]; count > 0 {
			sum += left * m.beta * float64(count) / float64(m.totals[c]+1)
			left *= 1 - m.beta
		}
	}
	if total := m.totals[""]; total > 0 {
		sum += left * float64(m.counts[""][token]) / float64(total)
	}
	return sum
}
