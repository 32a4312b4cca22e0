package compiler

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// TestMemories reads the nodes of a machine with two sockets and a memory
// without processors.
func TestMemories(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for node, files := range map[string][2]string{
		"node0": {"Node 0 MemTotal:       1000 kB\nNode 0 MemFree: 10 kB\n", "0-7\n"},
		"node1": {"Node 1 MemTotal:       2000 kB\n", "8-15\n"},
		"node2": {"Node 2 MemTotal:       4000 kB\n", "\n"},
	} {
		if err := os.MkdirAll(filepath.Join(dir, node), 0o755); err != nil {
			t.Fatal(err)
		}
		for i, name := range []string{"meminfo", "cpulist"} {
			if err := os.WriteFile(filepath.Join(dir, node, name), []byte(files[i]), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	if got := memories(dir); !slices.Equal(got, []int64{1000 << 10, 2000 << 10}) {
		t.Errorf("memories of %v bytes", got)
	}
}

// TestPlace chooses devices for the model inside iflowc.
func TestPlace(t *testing.T) {
	t.Parallel()
	for _, x := range []struct{ devices, want, why string }{
		{"auto:2xl4", "", "chosen for the speed of one sequence"}, // a model that small is fastest whole
		{" auto:4xh100 ", "", "0&1;2&3"},
		{"0&1", "0&1", ""},
	} {
		m, err := Open(t.Context(), "demo", Options{Devices: x.devices})
		if err != nil {
			t.Fatal(err)
		}
		m.Close()
		if m.Spec.Devices != x.want || !strings.Contains(m.Placement, x.why) {
			t.Errorf("%s: devices %q, because\n%s", x.devices, m.Spec.Devices, m.Placement)
		}
	}
	if _, err := Open(t.Context(), "demo", Options{Devices: "auto:2xabacus"}); err == nil || !strings.Contains(err.Error(), "h100") {
		t.Errorf("an unknown machine: %v", err)
	}
}
