package dispatch

import "fmt"

// Splits is the best number of parts to split an attention's context into (flash
// decoding), measured with one sequence.
type Splits struct {
	Context int       `json:"context"` // KV cache rows
	Parts   int       `json:"parts"`   // smallest number in Tried that is within 2 % of the fastest
	Tried   []int     `json:"tried"`
	Seconds []float64 `json:"seconds"` // medians
}

// String returns the choice, for example "attention over 1024 rows: 8 parts, of 16 at
// most".
func (s Splits) String() string {
	most := s.Parts
	for _, n := range s.Tried {
		most = max(most, n)
	}
	return fmt.Sprintf("attention over %d rows: %d parts, of %d at most", s.Context, s.Parts, most)
}

// MaxSplits is the maximum number of parts.
const MaxSplits = 64

func (p *Profile) checkSplits() error {
	for i, s := range p.Splits {
		if s.Context < 1 || i > 0 && s.Context <= p.Splits[i-1].Context {
			return fmt.Errorf("%s: splits: entry %d has %d KV cache rows; contexts must ascend from 1", p.name(), i+1, s.Context)
		}
		if s.Parts < 1 || s.Parts > MaxSplits {
			return fmt.Errorf("%s: splits of %d KV cache rows: %d parts; expected 1 to %d", p.name(), s.Context, s.Parts, MaxSplits)
		}
	}
	return nil
}

// SplitsAt returns the index in Splits of the context nearest to the given number of KV
// cache rows, by ratio; 0 if there is none.
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
