package decode

// largest is the function largest with the sampler's buffer.
func (s *StandardSampler) largest(logits []float32, k int, floor float32) []candidate {
	s.pool = largest(s.pool[:0], logits, k, floor)
	return s.pool
}

// largest fills pool, which is empty, with the k largest logits that are at least
// floor, in descending order. Few logits of a vocabulary exceed the k-th largest so far,
// so groups of eight are skipped with one comparison.
func largest(pool []candidate, logits []float32, k int, floor float32) []candidate {
	bound, full := floor, false // full: candidates must exceed bound, else they may equal it
	add := func(i int, l float32) {
		if l < bound || full && l == bound {
			return
		}
		pool = append(pool, candidate{id: int32(i), logit: l})
		if len(pool)/4 >= k && len(pool) >= 256 {
			front(pool, k)
			pool = pool[:k]
			bound, full = pool[k-1].logit, true
		}
	}
	x, i := logits, 0
	for ; len(x) >= 8; x, i = x[8:], i+8 {
		g := (*[8]float32)(x)
		if g[0] < bound && g[1] < bound && g[2] < bound && g[3] < bound && g[4] < bound && g[5] < bound && g[6] < bound && g[7] < bound {
			continue
		}
		for j, l := range g {
			add(i+j, l)
		}
	}
	for j, l := range x {
		add(i+j, l)
	}
	front(pool, k)
	return pool[:min(k, len(pool))]
}

// nucleus returns the candidates that top-p keeps of all logits. Probabilities are
// relative to the whole vocabulary, but only few tokens are listed.
func (s *StandardSampler) nucleus(logits []float32, top, floor float32) []candidate {
	total := s.masses(logits, top, floor)
	for k := 64; ; k *= 8 {
		c := s.largest(logits, k, floor)
		sum := 0.0
		for i := range c {
			c[i].p = s.mass(c[i].logit, top) / total
			if sum += c[i].p; sum >= s.opt.TopP {
				return c[:i+1]
			}
		}
		if len(c) < k {
			return c
		}
	}
}

// massBlock is the number of logits per entry of s.sums.
const massBlock = 64

// mass returns the unnormalized probability of a logit.
func (s *StandardSampler) mass(logit, top float32) float64 {
	return exp((float64(logit) - float64(top)) / s.opt.Temperature)
}

// masses returns the sum of e^((logit − top)/temperature) over the logits that are at
// least floor, and stores the sum of each block in s.sums.
func (s *StandardSampler) masses(logits []float32, top, floor float32) (total float64) {
	s.sums = s.sums[:0]
	scale, high := 1/s.opt.Temperature, float64(top)
	for ; len(logits) > 0; logits = logits[min(massBlock, len(logits)):] {
		sum := 0.0
		for _, l := range logits[:min(massBlock, len(logits))] {
			if l >= floor {
				sum += exp((float64(l) - high) * scale)
			}
		}
		s.sums = append(s.sums, sum)
		total += sum
	}
	return total
}

// drawAny samples from all logits that are at least floor: first the block, then the
// token in it.
func (s *StandardSampler) drawAny(logits []float32, top, floor float32) int32 {
	r := s.rng.Float64() * s.masses(logits, top, floor)
	block := 0
	for last := len(s.sums) - 1; block < last && r >= s.sums[block]; block++ {
		r -= s.sums[block]
	}
	for s.sums[block] == 0 { // r exceeded the sum by rounding
		block--
	}
	chosen, from := 0, block*massBlock
	for i, l := range logits[from:min(from+massBlock, len(logits))] {
		if l < floor {
			continue
		}
		p := s.mass(l, top)
		if p > 0 {
			chosen = from + i
		}
		if r < p {
			break
		}
		r -= p
	}
	return int32(chosen)
}
