package medusa

import "math"

// Defaults of typical acceptance, from the reference implementation.
const (
	DefaultThreshold = 0.09 // ε
	DefaultAlpha     = 0.3  // α, about √ε
)

// entropyFloor is the constant that the reference adds inside the logarithm of the
// entropy.
const entropyFloor = 1e-5

// A Typical is the typical acceptance rule (arXiv:2401.10774, §2.3.1): a token of
// probability p is accepted if p > min(ε, α·exp(−H)), where H is the entropy of the
// model's distribution in nats. It changes the distribution of the text.
type Typical struct {
	Threshold, Alpha float64 // ε, α
	Temperature      float64 // of the model's distribution, above 0
}

// Distribution returns the probabilities of a row of logits, in work's memory if it is
// large enough, and the threshold above which a token is accepted.
func (r Typical) Distribution(logits []float32, work []float64) (p []float64, threshold float64) {
	p = softmax(work[:0], logits, r.Temperature)
	entropy := 0.0
	for _, q := range p {
		entropy -= q * math.Log(q+entropyFloor)
	}
	return p, math.Min(r.Threshold, r.Alpha*math.Exp(-entropy))
}

// softmax appends the distribution of logits at a temperature.
func softmax(to []float64, logits []float32, temperature float64) []float64 {
	top := math.Inf(-1)
	for _, l := range logits {
		top = math.Max(top, float64(l))
	}
	sum := 0.0
	for _, l := range logits {
		e := math.Exp((float64(l) - top) / temperature)
		to = append(to, e)
		sum += e
	}
	for i := range to {
		to[i] /= sum
	}
	return to
}

// Walk returns the longest path with all nodes accepted, the most probable among
// equals, or nil. parent lists the nodes' parents (-1: the root), which precede them,
// tokens their tokens. row returns the model's logits after a node (-1: after the
// root).
func (r Typical) Walk(parent, tokens []int32, row func(node int) []float32) []int {
	var probs []float64 // after node last
	var threshold float64
	last := -2
	depth := make([]int, len(parent)) // of accepted nodes; 0: rejected
	likelihood := make([]float64, len(parent))
	best := -1
	for i, from := range parent {
		if from >= 0 && depth[from] == 0 {
			continue
		}
		if int(from) != last {
			last = int(from)
			probs, threshold = r.Distribution(row(last), probs)
		}
		p := probs[tokens[i]]
		if p <= threshold {
			continue
		}
		depth[i], likelihood[i] = 1, math.Log(p)
		if from >= 0 {
			depth[i], likelihood[i] = depth[from]+1, likelihood[from]+math.Log(p)
		}
		if best < 0 || depth[i] > depth[best] || depth[i] == depth[best] && likelihood[i] > likelihood[best] {
			best = i
		}
	}
	if best < 0 {
		return nil
	}
	path := make([]int, depth[best])
	for at := best; at >= 0; at = int(parent[at]) {
		path[depth[at]-1] = at
	}
	return path
}
