package weights_test

import (
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/weights"
)

// TestScores: counts come back from the file, and their range leaves one row in
// ten thousand out on either side.
func TestScores(t *testing.T) {
	t.Parallel()
	counted := make(weights.Scores, 2*manifest.ScoreBins)
	counted[128-7], counted[128-2], counted[manifest.ScoreBins+128+9], counted[manifest.ScoreBins+128+40] = 1, 9000, 10000, 1
	path := filepath.Join(t.TempDir(), "importance")
	if err := weights.WriteImportance(path, weights.Importance{"w": {1, 2}}, nil, counted, nil); err != nil {
		t.Fatal(err)
	}
	scores, err := weights.ReadScores(path)
	if err != nil {
		t.Fatal(err)
	}
	if lo, hi, ok := scores.Range(); lo != -2 || hi != 10 || !ok {
		t.Errorf("scores from %v to %v (%v), expected -2 to 10", lo, hi, ok)
	}
	if imp, err := weights.ReadImportance(path); err != nil || len(imp) != 1 {
		t.Errorf("%d matrices (%v), expected one", len(imp), err)
	}
	scores[manifest.ScoreBins-1] = 100
	if _, _, ok := scores.Range(); ok {
		t.Error("a range that is open has no end")
	}
	if _, _, ok := (weights.Scores{}).Range(); ok {
		t.Error("a range of nothing")
	}
}
