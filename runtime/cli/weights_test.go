//go:build unix

package cli_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// TestRandomWeights: the subcommand writes a file that the binary accepts and reports as
// random, and never replaces another file.
func TestRandomWeights(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	if code, _, stderr := b.run(t.Context(), "weights", "--random", "5"); code != 2 || !strings.Contains(stderr, "does not have random weights") {
		t.Errorf("exit %d, %q: real weights may be replaced", code, stderr)
	}
	if err := os.Remove(b.program + ".weights"); err != nil {
		t.Fatal(err)
	}
	var written struct {
		Seed  uint64
		Files []struct {
			File  string
			Bytes int64
		}
	}
	b.must(t, &written, "weights", "--random", "5", "--json")
	if written.Seed != 5 || len(written.Files) != 1 || written.Files[0].File != b.program+".weights" {
		t.Fatalf("%+v", written)
	}
	var verified struct{ OK bool }
	b.must(t, &verified, "verify", "--json")
	var info struct {
		Bytes  int64   `json:"weight_bytes"`
		Random *uint64 `json:"random_weights"`
	}
	b.must(t, &info, "info", "--json")
	if !verified.OK || info.Random == nil || *info.Random != 5 || info.Bytes != written.Files[0].Bytes {
		t.Errorf("verified: %v, info: %+v", verified.OK, info)
	}
	if code, _, stderr := b.run(t.Context(), "logits", "--ids", "1,2"); code != 0 || !strings.Contains(stderr, "random weights (seed 5)") {
		t.Errorf("exit %d, %q: nothing says that the weights are random", code, stderr)
	}
	other := filepath.Join(t.TempDir(), "other.weights")
	b.must(t, &written, "weights", "--random", "5", "--json", "-o", other)
	one, err := os.ReadFile(b.program + ".weights")
	two, err2 := os.ReadFile(other)
	if err != nil || err2 != nil || string(one) != string(two) {
		t.Errorf("one seed gives two files; %v, %v", err, err2)
	}
	if code, _, _ := b.run(t.Context(), "weights", "--random", "6"); code != 0 {
		t.Error("a file of random weights cannot be replaced")
	}
}
