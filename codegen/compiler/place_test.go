package compiler

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/spec"
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
		{"auto:2xhost,25Gbit,50us", "", "runs on one device of machine 0: start one process"},
		{"auto:2x2xh100,400Gbit,5us", "", "0&1;2&3"},
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
	for devices, want := range map[string]string{
		"auto:2xhost": "2xhost,25Gbit,50us", "auto:2x8xtpu,1Gbit,1us": "h100", "auto:none.yaml": "none.yaml", "auto:2xhost,25Gb,50us": "Gbit",
	} {
		if _, err := Open(t.Context(), "demo", Options{Devices: devices}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v; expected %s", devices, err, want)
		}
	}
	if _, err := Open(t.Context(), "demo", Options{Devices: "auto:2xabacus"}); err == nil || !strings.Contains(err.Error(), "h100") {
		t.Errorf("an unknown machine: %v", err)
	}
}

// TestPlaceFile: a model spec names a file beside it, of machines whose memory the
// model fills only together.
func TestPlaceFile(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	demo, err := filepath.Abs("../../models/demo")
	if err != nil {
		t.Fatal(err)
	}
	for name, text := range map[string]string{
		"m.yaml": "iflow: 1\nname: demo\nmodel_dir: " + demo + "\ndevices: auto:machines.yaml\n",
		"machines.yaml": "transport: mpi\nnetwork: {bandwidth: 1Gbit, delay: 1ms}\nmachines:\n" +
			"  - {name: a, devices: [{memory_gb: 0.5395, read_gb_s: 40, tflops: 1}]}\n  - {name: b, devices: [{memory_gb: 0.5395, read_gb_s: 40, tflops: 1}]}\n",
	} {
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	m, err := Open(t.Context(), filepath.Join(dir, "m.yaml"), Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	if plan, err := spec.ParseDevices(m.Spec.Devices); err != nil || len(plan) != 2 || len(plan[0].Devices) != 1 {
		t.Errorf("devices %q, %v; expected two stages, because a message takes 1 ms", m.Spec.Devices, err)
	}
	if err := os.WriteFile(filepath.Join(dir, "outside.yaml"), []byte("iflow: 1\nname: demo\nmodel_dir: "+demo+"\ndevices: auto:../machines.yaml\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	if _, err := Open(t.Context(), filepath.Join(dir, "outside.yaml"), Options{}); err == nil || !strings.Contains(err.Error(), "leads out") {
		t.Errorf("a file outside of the model spec's folder: %v", err)
	}
	for _, want := range []string{"GB missing", "a                  rank 0, weights BIN.weights.0of2", "b                  rank 1, weights BIN.weights.1of2"} {
		if !strings.Contains(m.Placement, want) {
			t.Errorf("the explanation lacks %q:\n%s", want, m.Placement)
		}
	}
}
