//go:build unix

package cli_test

import (
	"encoding/json"
	"os"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// TestVerify finds a damaged byte of the weights, beside the program and behind
// it.
func TestVerify(t *testing.T) {
	t.Parallel()
	type report struct {
		OK    bool
		Files []struct {
			File     string
			Expected string `json:"expected_sha256"`
			Found    string `json:"found_sha256"`
		}
	}
	b := newBinary(t, nil)
	path := b.program + ".weights"
	var r report
	b.must(t, &r, "verify", "--json")
	if !r.OK || len(r.Files) != 1 || r.Files[0].File != path || r.Files[0].Found != r.Files[0].Expected {
		t.Errorf("%+v", r)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	data[len(data)-100] ^= 1
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	check := func(file string) {
		t.Helper()
		code, stdout, stderr := b.run(t.Context(), "verify")
		if code != 1 || stdout != "" || !strings.Contains(stderr, file+": packed weights are damaged: sha256 is ") || !strings.Contains(stderr, "expected "+r.Files[0].Expected) {
			t.Errorf("exit %d, %q, %q", code, stdout, stderr)
		}
	}
	check(path)
	code, stdout, _ := b.run(t.Context(), "verify", "--json")
	if err := json.Unmarshal([]byte(stdout), &r); err != nil || code != 1 || r.OK || r.Files[0].Found == r.Files[0].Expected {
		t.Errorf("exit %d, %+v, %v", code, r, err)
	}
	if err := packed.Embed(b.program, path, b.program); err != nil {
		t.Fatal(err)
	}
	if err := os.Remove(path); err != nil {
		t.Fatal(err)
	}
	check(b.program)
	if err := os.Truncate(b.program, int64(len(data))); err != nil { // no tail, no weights
		t.Fatal(err)
	}
	if code, _, stderr := b.run(t.Context(), "verify"); code != 2 || !strings.Contains(stderr, "is missing") {
		t.Errorf("exit %d, %q", code, stderr)
	}
}
