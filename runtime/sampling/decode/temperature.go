package decode

import "math"

// softmax sets each candidate's probability at a temperature.
func softmax(c []candidate, temperature float64) {
	top := c[0].logit
	for _, x := range c {
		top = max(top, x.logit)
	}
	if math.IsInf(float64(top), 1) { // infinite logits share the probability
		for i := range c {
			c[i].p = 0
			if c[i].logit == top {
				c[i].p = 1
			}
		}
		return
	}
	sum := 0.0
	for i := range c {
		c[i].p = exp((float64(c[i].logit) - float64(top)) / temperature)
		sum += c[i].p
	}
	for i := range c {
		c[i].p /= sum
	}
}

// weighted samples a candidate by probability; the probabilities need not sum to 1.
func weighted(c []candidate, rng interface{ Float64() float64 }) int32 {
	sum := 0.0
	for _, x := range c {
		sum += x.p
	}
	r := rng.Float64() * sum
	for _, x := range c {
		if r < x.p {
			return x.id
		}
		r -= x.p
	}
	for i := len(c) - 1; i > 0; i-- { // r exceeded the sum by rounding
		if c[i].p > 0 {
			return c[i].id
		}
	}
	return c[0].id
}
