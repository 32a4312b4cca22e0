package speculate

// A Rate is a running estimate of a probability.
type Rate struct{ Value, Weight float64 }

// Weights: the prior's, in observations, and the maximum weight of the past.
const (
	ratePrior  = 4
	rateMemory = 24
)

// NewRate returns a rate with a prior estimate.
func NewRate(prior float64) Rate { return Rate{prior, ratePrior} }

// Observe records an outcome.
func (r *Rate) Observe(right bool) { r.observe(right, rateMemory) }

// observe is Observe with the given maximum weight of the past.
func (r *Rate) observe(right bool, memory float64) {
	v := 0.0
	if right {
		v = 1
	}
	r.Weight = min(r.Weight+1, memory)
	r.Value += (v - r.Value) / r.Weight
}
