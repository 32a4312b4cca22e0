package decode

import "math/rand/v2"

// maxOrder is the largest n of FSD's n-grams; its authors use 2 to 5.
const maxOrder = 8

// pickFSD implements Frustratingly Simple Decoding (Yang et al. 2024, section 3). The
// score of each of the k most probable tokens is (1-alpha) times its probability minus
// alpha times its probability in an n-gram model of the text so far.
func pickFSD(p params, _ *rand.Rand) picker {
	m := &ngrams{n: p.whole("n"), beta: p["beta"], tokens: map[int32]occurrences{}, index: map[int32]int{}}
	k, alpha := p.whole("k"), p["alpha"]
	return func(pool []candidate, history []int32) int {
		m.learn(history)
		if len(history) < m.n-1 {
			return 0
		}
		pool = pool[:min(k, len(pool))]
		m.look(history, pool)
		best, top := 0, 0.0
		for i, c := range pool {
			score := (1-alpha)*c.p - alpha*m.penalty(i, c.id)
			if i == 0 || score > top {
				best, top = i, score
			}
		}
		return best
	}
}

// randomStart is the number of first tokens that random_fsd may sample.
const randomStart = 10

// pickRandomFSD is FSD, but samples each of the first randomStart tokens with
// probability 1/2.
func pickRandomFSD(p params, rng *rand.Rand) picker {
	fsd, sample := pickFSD(p, rng), pickStd(p, rng)
	tokens := 0
	return func(pool []candidate, history []int32) int {
		tokens++
		at := fsd(pool, history) // always called, because it counts the text
		if tokens <= randomStart && rng.Float64() < 0.5 {
			return sample(pool, history)
		}
		return at
	}
}

// ngrams counts the tokens that followed the last 1 … n-1 tokens of a text at their
// earlier occurrences. It stores only where each token occurs, not the contexts, so its
// memory is linear in the text for any n.
type ngrams struct {
	n      int
	beta   float64
	tokens map[int32]occurrences
	before []int32 // for each position, the previous one with the same token; -1: none

	index  map[int32]int     // token → index of the candidate
	after  [][maxOrder]int32 // how often each candidate followed the last 1, 2, … tokens
	totals [maxOrder]int32   // how often any token did
}

// occurrences are the number of occurrences of a token and the position of the last
// one.
type occurrences struct{ last, count int32 }

// learn adds the new tokens of the text.
func (m *ngrams) learn(text []int32) {
	for i := len(m.before); i < len(text); i++ {
		seen, ok := m.tokens[text[i]]
		if !ok {
			seen.last = -1
		}
		m.before = append(m.before, seen.last)
		m.tokens[text[i]] = occurrences{int32(i), seen.count + 1}
	}
}

// look counts the tokens that followed earlier occurrences of the last tokens.
func (m *ngrams) look(text []int32, pool []candidate) {
	clear(m.index)
	for i, c := range pool {
		m.index[c.id] = i
	}
	m.after = append(m.after[:0], make([][maxOrder]int32, len(pool))...)
	m.totals = [maxOrder]int32{}
	last := len(text) - 1
	if last < 0 || m.n < 2 {
		return
	}
	for p := int(m.before[last]); p >= 0; p = int(m.before[p]) {
		common := 1
		for common < m.n-1 && common <= p && text[p-common] == text[last-common] {
			common++
		}
		i, ok := m.index[text[p+1]]
		for k := range common {
			m.totals[k]++
			if ok {
				m.after[i][k]++
			}
		}
	}
}

// penalty returns the n-gram model's probability of a candidate. From the longest
// context to the shortest, each one in which the token occurred contributes beta of the
// remaining weight.
func (m *ngrams) penalty(candidate int, token int32) float64 {
	left, sum := 1.0, 0.0
	for i := m.n - 2; i >= 0; i-- {
		if count := m.after[candidate][i]; count > 0 {
			sum += left * m.beta * float64(count) / float64(m.totals[i]+1)
			left *= 1 - m.beta
		}
	}
	if total := len(m.before); total > 0 {
		sum += left * float64(m.tokens[token].count) / float64(total)
	}
	return sum
}
