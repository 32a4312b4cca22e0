package dispatch

import "fmt"

// Splits says into how many parts an attention had best cut a context, as it was
// measured with one sequence.
type Splits struct {
	Context int       `json:"context"` // state rows
	Parts   int       `json:"parts"`   // the fewest of Tried that are within 2 % of the fastest
	Tried   []int     `json:"tried"`
	Seconds []float64 `json:"seconds"` // medians
}

// String spells the choice: "attention over 1024 rows: 8 parts, of 16 at most".
func (s Splits) String() string {
	most := s.Parts
	for _, n := range s.Tried {
		most = max(most, n)
	}
	return fmt.Sprintf("attention over %d rows: %d parts, of %d at most", s.Context, s.Parts, most)
}

// MaxSplits is into how many parts a context is cut at most.
const MaxSplits = 64

func (p *Profile) checkSplits() error {
	for i, s := range p.Splits {
		if s.Context < 1 || i > 0 && s.Context <= p.Splits[i-1].Context {
			return fmt.Errorf("%s: splits: entry %d is of %d state rows; contexts must ascend from 1", p.name(), i+1, s.Context)
		}
		if s.Parts < 1 || s.Parts > MaxSplits {
			return fmt.Errorf("%s: splits of %d state rows: %d parts; expected 1 to %d", p.name(), s.Context, s.Parts, MaxSplits)
		}
	}
	return nil
}

// SplitsAt is the place in Splits of the context that is nearest to so many state
// rows, by their ratio; 0 where there is none.
func (p *Profile) SplitsAt(rows int) int {
	if p == nil {
		return 0
	}
	for i := 1; i < len(p.Splits); i++ {
		if rows*rows < p.Splits[i-1].Context*p.Splits[i].Context {
			return i - 1
		}
	}
	return max(len(p.Splits)-1, 0)
}
