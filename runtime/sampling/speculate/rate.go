package speculate

// A Rate is how often something is right of late.
type Rate struct{ Value, Weight float64 }

// What a prior weighs in observations, and what the past weighs against one.
const (
	ratePrior  = 4
	rateMemory = 24
)

// NewRate begins with what is expected before anything is known.
func NewRate(prior float64) Rate { return Rate{prior, ratePrior} }

// Observe takes an outcome into account.
func (r *Rate) Observe(right bool) { r.observe(right, rateMemory) }

// observe is Observe with another memory.
func (r *Rate) observe(right bool, memory float64) {
	v := 0.0
	if right {
		v = 1
	}
	r.Weight = min(r.Weight+1, memory)
	r.Value += (v - r.Value) / r.Weight
}
