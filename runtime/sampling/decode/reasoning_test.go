package decode

import (
	"fmt"
	"slices"
	"testing"
)

// onlyMask allows one token.
type onlyMask struct {
	token int32
	done  bool
}

func (m *onlyMask) Mask() ([]uint64, error)  { return []uint64{1 << m.token}, nil }
func (m *onlyMask) Ready(notify func()) bool { return true }
func (m *onlyMask) Accept(token int32) error { m.done = true; return nil }
func (m *onlyMask) Done() bool               { return m.done }
func logitsFor(token int32) (logits []float32) {
	logits = make([]float32, 10)
	logits[token] = 5
	return
}

// TestReasoningBudget checks which tokens follow: 1 opens the reasoning, 2 closes it, 3 is
// what the model wants, and 7 is all that the answer's mask allows.
func TestReasoningBudget(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		inside, again bool // again: the model reasons whenever it may
		budget        int
		mask          Mask
		rules         Rules
		want          []int32
	}{
		{inside: true, budget: 2, want: []int32{3, 3, 2, 4, 3, 3}},
		{inside: true, budget: 0, want: []int32{2, 4, 3, 3, 3, 3}},
		{inside: true, budget: -1, want: []int32{3, 3, 3, 3, 3, 3}},
		{inside: true, budget: 1, mask: &onlyMask{token: 7}, want: []int32{3, 2, 4, 7}},
		{inside: true, budget: 0, rules: Rules{BadWords: [][]int32{{2}}}, want: []int32{2, 4, 3, 3, 3, 3}},
		{again: true, budget: 1, want: []int32{1, 3, 2, 4, 1, 2, 5, 1, 2, 5}},
		{again: true, budget: 0, want: []int32{1, 2, 4, 1, 2, 5, 1, 2, 5}},
	} {
		inside := c.inside
		set := Settings{Rules: c.rules}
		set.Mask = Reasoning{
			Inside: c.inside, Budget: c.budget,
			Push: func(token int32) (bool, bool) {
				inside = token == 1 || inside && token != 2
				return inside, inside || c.again
			},
			Close: func(again bool) []int32 {
				if again {
					return []int32{2, 5}
				}
				return []int32{2, 4}
			},
		}.Then(c.mask)
		s, err := NewSampler(set, 0)
		if err != nil {
			t.Fatal(err)
		}
		var got []int32
		for len(got) < len(c.want) && !s.Done() {
			wanted := int32(3)
			if c.again && !inside {
				wanted = 1
			}
			token, err := s.Next(logitsFor(wanted), got)
			if err != nil {
				t.Fatal(err)
			}
			got = append(got, token)
		}
		if !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", fmt.Sprintf("%+v", c), got, c.want)
		}
	}
}
