package decode

import (
	"cmp"
	"math"
	"slices"
)

// A Ranked is a token with its log-probability (natural logarithm).
type Ranked struct {
	ID      int32
	Logprob float64
}

// LogSumExp returns log Σ exp over a row of logits. A token's log-probability is its
// logit minus that. The error is ErrNaN.
func LogSumExp(logits []float32) (float64, error) {
	top, ok := argmax(logits)
	if !ok {
		return 0, ErrNaN
	}
	sum := 0.0
	for _, l := range logits {
		sum += exp(float64(l) - float64(logits[top]))
	}
	return math.Log(sum) + float64(logits[top]), nil
}

// Top returns the k most probable tokens of a row of logits in descending order, the
// smaller id first among equals. total is the row's LogSumExp.
func Top(logits []float32, total float64, k int) []Ranked {
	better := func(a, b Ranked) int {
		if a.Logprob != b.Logprob {
			return cmp.Compare(b.Logprob, a.Logprob)
		}
		return cmp.Compare(a.ID, b.ID)
	}
	top := make([]Ranked, 0, k+1)
	least := math.Inf(-1) // lower values are not in the top k
	for i, l := range logits {
		if k == 0 || float64(l)-total < least {
			continue
		}
		r := Ranked{int32(i), float64(l) - total}
		if len(top) == k && better(r, top[k-1]) > 0 {
			continue
		}
		at, _ := slices.BinarySearchFunc(top, r, better)
		top = slices.Insert(top, at, r)
		if top = top[:min(len(top), k)]; len(top) == k {
			least = top[k-1].Logprob
		}
	}
	return top
}
