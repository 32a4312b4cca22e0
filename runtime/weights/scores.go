package weights

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// scoresName is the tensor of an importance file that holds Scores.
const scoresName = "attention.scores"

// Scores are how often calibration saw each largest attention score of a row: for
// each layer manifest.ScoreBins counts.
type Scores []float32

// ReadScores reads them from an importance file; without there are none.
func ReadScores(path string) (Scores, error) {
	set, err := Open(path)
	if err != nil {
		return nil, err
	}
	defer set.Close()
	if _, ok := set.Lookup(scoresName); !ok {
		return nil, nil
	}
	s, err := set.Float32(scoresName)
	if err != nil {
		return nil, err
	}
	if len(s)%manifest.ScoreBins != 0 {
		return nil, fmt.Errorf("%s: tensor %q has %d elements, expected %d for each layer; calibrate again", path, scoresName, len(s), manifest.ScoreBins)
	}
	return s, nil
}

// Range are the lowest and the highest of rows' largest scores, times log₂e, in
// any layer, but for one row in ten thousand on either side. It is false where
// nothing was counted or the range is open.
func (s Scores) Range() (lo, hi float64, ok bool) {
	var bins [manifest.ScoreBins]float64
	total := 0.0
	for i, n := range s {
		bins[i%len(bins)] += float64(n)
		total += float64(n)
	}
	if total == 0 {
		return 0, 0, false
	}
	first, last := 0, len(bins)-1
	for rare := total / 10000; bins[first] <= rare; first++ {
		rare -= bins[first]
	}
	for rare := total / 10000; bins[last] <= rare; last-- {
		rare -= bins[last]
	}
	return float64(first - 128), float64(last - 127), first > 0 && last < len(bins)-1
}
