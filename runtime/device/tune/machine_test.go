package tune

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

const zen4 = `processor	: 0
vendor_id	: AuthenticAMD
cpu family	: 25
model		: 17
model name	: AMD EPYC
stepping	: 1

processor	: 1
vendor_id	: Other
`

const neoverse = `processor	: 0
BogoMIPS	: 50.00
CPU implementer	: 0x41
CPU architecture: 8
CPU variant	: 0x3
CPU part	: 0xd0c
`

func TestIdentify(t *testing.T) {
	t.Parallel()
	var m dispatch.Machine
	identify(&m, zen4)
	if m.Vendor != "AuthenticAMD" || m.Family != 25 || m.Model != 17 || m.CPU != "AMD EPYC" {
		t.Errorf("%+v", m)
	}
	m = dispatch.Machine{}
	identify(&m, neoverse)
	if m.Vendor != "0x41" || m.Family != 8 || m.Model != 0xd0c {
		t.Errorf("%+v", m)
	}
	identify(&m, "nothing: here")
}

func TestCaches(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	for i, c := range [][3]string{{"1", "Data", "32K"}, {"1", "Instruction", "64K"}, {"3", "Unified", "32768K"}, {"x", "Data", "?"}} {
		index := filepath.Join(dir, "index"+string(rune('0'+i)))
		if err := os.Mkdir(index, 0o755); err != nil {
			t.Fatal(err)
		}
		for j, name := range []string{"level", "type", "size"} {
			if err := os.WriteFile(filepath.Join(index, name), []byte(c[j]+"\n"), 0o644); err != nil {
				t.Fatal(err)
			}
		}
	}
	m := dispatch.Machine{Caches: caches(dir)}
	if last, err := llc(m); len(m.Caches) != 2 || last != 32<<20 || err != nil || m.Caches[0].Bytes != 32<<10 {
		t.Errorf("%+v, the last %d, %v", m.Caches, last, err)
	}
}

func TestLLCSet(t *testing.T) {
	t.Setenv("IFLOWC_LLC", "2097152")
	if last, err := llc(dispatch.Machine{}); last != 2<<20 || err != nil {
		t.Errorf("%d, %v", last, err)
	}
	for _, wrong := range []string{"2M", "-1", "0", "99999999999999999999"} {
		t.Setenv("IFLOWC_LLC", wrong)
		if _, err := llc(dispatch.Machine{}); err == nil || !strings.Contains(err.Error(), wrong) {
			t.Errorf("%s: %v", wrong, err)
		}
	}
}

func TestMatches(t *testing.T) {
	t.Parallel()
	made := dispatch.Machine{Arch: "amd64", Vendor: "AuthenticAMD", Family: 25, Model: 17, Threads: 2, ISA: "avx512", CC: "gcc 12", Cores: 2}
	for _, c := range []struct {
		name   string
		change func(*dispatch.Machine)
		want   bool
	}{
		{"itself", func(*dispatch.Machine) {}, true},
		{"another compiler", func(m *dispatch.Machine) { m.CC = "clang 19" }, true},
		{"more cores, as many threads", func(m *dispatch.Machine) { m.Cores = 64 }, true},
		{"another model", func(m *dispatch.Machine) { m.Model = 18 }, false},
		{"another family", func(m *dispatch.Machine) { m.Family = 26 }, false},
		{"another vendor", func(m *dispatch.Machine) { m.Vendor = "GenuineIntel" }, false},
		{"more threads", func(m *dispatch.Machine) { m.Threads = 4 }, false},
		{"another variant", func(m *dispatch.Machine) { m.ISA = "portable" }, false},
	} {
		here := made
		if c.change(&here); Matches(made, here) != c.want {
			t.Errorf("%s: matches is not %v", c.name, c.want)
		}
	}
	if Matches(dispatch.Machine{}, dispatch.Machine{}) {
		t.Error("an unknown machine matches another")
	}
	gpu := dispatch.Machine{GPU: &dispatch.GPU{Name: "NVIDIA H100", Compute: 90, Processors: 132}}
	other := dispatch.Machine{GPU: &dispatch.GPU{Name: "NVIDIA H100", Compute: 90, Processors: 114}}
	if !Matches(gpu, gpu) || Matches(gpu, other) || Matches(gpu, made) || Matches(made, gpu) {
		t.Error("a GPU must match only the same GPU model")
	}
}

func TestThisMachine(t *testing.T) {
	t.Parallel()
	if m := ThisMachine(); m.Arch == "" || m.Cores < 1 {
		t.Errorf("%+v", m)
	}
}

// TestFileAndPlot checks that a measured profile is unchanged after writing and
// reading, that each list of numbers stays on one line, and that the plot is
// well-formed and marks the crossings.
func TestFileAndPlot(t *testing.T) {
	t.Parallel()
	cells := timings(DefaultRows(), 9, 0.01, model)
	p := &dispatch.Profile{Device: "a <device>", Order: "class", Machine: &dispatch.Machine{Arch: "amd64", Threads: 2, ReadGBs: []float64{34.5, 35}},
		Shapes: []dispatch.Shape{Summarize(simulatedShape, cells)}}
	path := filepath.Join(t.TempDir(), "a.profile")
	if err := p.Write(path); err != nil {
		t.Fatal(err)
	}
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if lines := bytes.Count(data, []byte("\n")); lines > 80 {
		t.Errorf("%d lines", lines)
	}
	read, err := dispatch.Read(path)
	if err != nil {
		t.Fatal(err)
	}
	again := filepath.Join(t.TempDir(), "b.profile")
	if err := read.Write(again); err != nil {
		t.Fatal(err)
	}
	if second, err := os.ReadFile(again); err != nil || !bytes.Equal(data, second) {
		t.Errorf("the second write differs: %v", err)
	}
}
