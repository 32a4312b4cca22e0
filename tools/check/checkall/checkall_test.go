package checkall

import (
	"os/exec"
	"testing"
)

// TestCheckAll plants checks that fail, run nothing or are interrupted.
func TestCheckAll(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("python3"); err != nil {
		t.Skip(err)
	}
	if out, err := exec.CommandContext(t.Context(), "python3", "-B", "selftest.py").CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
}
