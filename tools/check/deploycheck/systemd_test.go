package deploycheck

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"
)

// TestUnit lets systemd check the unit, without starting it: it knows all settings, and
// its rating of the unit's exposure (0 to 10) is at most 3.
func TestUnit(t *testing.T) {
	t.Parallel()
	analyze, err := exec.LookPath("systemd-analyze")
	if err != nil {
		t.Skip("no systemd-analyze on this machine")
	}
	self, err := os.Executable() // stands in for the model: systemd wants a program
	if err != nil {
		t.Fatal(err)
	}
	text := read(t, "systemd/iflowc@.service")
	path := filepath.Join(t.TempDir(), "iflowc@.service")
	if err := os.WriteFile(path, []byte(strings.Replace(text, "ExecStart=/opt/%i/%i ", "ExecStart="+self+" ", 1)), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, args := range [][]string{{"verify", path}, {"security", "--offline=true", "--threshold=30", path}} {
		out, err := exec.Command(analyze, args...).CombinedOutput()
		if err != nil || args[0] == "verify" && strings.Contains(string(out), path) {
			t.Errorf("systemd-analyze %s: %v\n%s", args[0], err, out)
		}
	}
}
