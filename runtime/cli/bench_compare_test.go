//go:build unix

package cli_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// benchScript is a program that answers bench with one test's speed.
func benchScript(t *testing.T, path string, speed float64) {
	t.Helper()
	text := fmt.Sprintf("#!/bin/sh\n[ \"$1 $2\" = 'bench --json' ] || { echo \"error: $*\" >&2; exit 2; }\necho '[{\"test\":\"tg5\",\"batch\":2,\"tok_s\":{\"median\":%g}}]'\n", speed)
	if err := os.WriteFile(path, []byte(text), 0o755); err != nil {
		t.Fatal(err)
	}
}

func TestAgainst(t *testing.T) {
	t.Parallel()
	b := newBinary(t, nil)
	other := filepath.Join(t.TempDir(), "other")
	benchScript(t, b.program, 300)
	benchScript(t, other, 200)
	var rows []struct {
		Without, Test string
		Batch         int
		Gain          float64 `json:"gain_percent"`
		Low, High     float64
	}
	b.must(t, &rows, "bench", "--against", other, "--prompt", "0", "--gen", "5", "--batch", "2", "--reps", "2", "--json")
	if len(rows) != 1 || rows[0].Without != "other" || rows[0].Test != "tg5" || rows[0].Batch != 2 || math.Abs(rows[0].Gain-50) > 1e-9 {
		t.Errorf("%+v, expected that other takes 50 %% longer", rows)
	}
	benchScript(t, other, 0)
	broken := filepath.Join(t.TempDir(), "broken")
	if err := os.WriteFile(broken, []byte("#!/bin/sh\necho 'error: no weights' >&2\nexit 1\n"), 0o755); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct{ path, want string }{
		{filepath.Join(t.TempDir(), "missing"), "missing"}, {broken, "no weights"}, {other, "0 tok/s"},
	} {
		code, _, stderr := b.run(t.Context(), "bench", "--against", c.path, "--reps", "1")
		if code == 0 || !strings.Contains(stderr, c.want) {
			t.Errorf("--against %s: exit %d, %q; expected an error about %q", c.path, code, stderr, c.want)
		}
	}
}
