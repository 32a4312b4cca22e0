package cost_test

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/passes/cost"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

func TestUnits(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]float64{"25Gbit": 3.125e9, "100Mbit": 12.5e6, "8kbit": 1000, "1Tbit/s": 1.25e11, "3.5 GB/s": 3.5e9, "2MB": 2e6, "1kB": 1000, "1TB": 1e12} {
		if got, err := cost.ParseBandwidth(text); err != nil || math.Abs(got/want-1) > 1e-12 {
			t.Errorf("%s: %v, %v; expected %v bytes per second", text, got, err, want)
		}
	}
	for text, want := range map[string]float64{"50us": 50e-6, "50µs": 50e-6, "1.5ms": 1.5e-3, "0ms": 0, "500ns": 5e-7, "10s": 10} {
		if got, err := cost.ParseDelay(text); err != nil || math.Abs(got-want) > 1e-15 {
			t.Errorf("%s: %v, %v; expected %v s", text, got, err, want)
		}
	}
	for _, text := range []string{"", "25", "Gbit", "25Gb", "25gbit", "-1Gbit", "1e3Gbit", "NaNGbit", "0Gbit", "999bit", "101TB", "25Gbit/h", "1.Gbit", strings.Repeat("9", 400) + "GB"} {
		if got, err := cost.ParseBandwidth(text); err == nil {
			t.Errorf("bandwidth %q is %v", text, got)
		}
	}
	for _, text := range []string{"", "50", "us", "50usec", "-1us", "11s", "1us/s", "1h", "0x1us"} {
		if got, err := cost.ParseDelay(text); err == nil {
			t.Errorf("delay %q is %v", text, got)
		}
	}
}

func TestParseSeveral(t *testing.T) {
	t.Parallel()
	for text, want := range map[string]cost.Several{
		"2xhost,25Gbit,50us":      {N: 2, Machine: "host", Network: cost.Network{Bandwidth: 3.125e9, Delay: 50e-6}},
		"3xgpu, 100Gbit, 0us":     {N: 3, Machine: "gpu", Network: cost.Network{Bandwidth: 12.5e9}},
		"4x8xh100,12.5GB/s,0.5ms": {N: 4, Machine: "8xh100", Network: cost.Network{Bandwidth: 12.5e9, Delay: 5e-4}},
	} {
		got, ok, err := cost.ParseSeveral(text)
		if err != nil || !ok || got.N != want.N || got.Machine != want.Machine || math.Abs(got.Bandwidth/want.Bandwidth-1) > 1e-12 || math.Abs(got.Delay-want.Delay) > 1e-12 {
			t.Errorf("%s: %+v, %v, %v", text, got, ok, err)
		}
	}
	for _, text := range []string{"", "gpu", "8xh100", "8xtpu"} {
		if _, ok, err := cost.ParseSeveral(text); ok || err != nil {
			t.Errorf("%q: several machines, %v", text, err)
		}
	}
	for text, want := range map[string]string{
		"2xhost": "bandwidth and delay must follow", "2x8xh100": "bandwidth and delay must follow", "2xhost,25Gbit": "must follow", "2xhost,25Gbit,50us,1": "nothing else",
		"1xhost,25Gbit,50us": "want 2 to 4096", "9999xhost,25Gbit,50us": "want 2 to 4096", "host,25Gbit,50us": `"host" is not`, "2xhost,50us,25Gbit": "bandwidth", "2xhost,25Gbit,1": "delay",
		",,": `"" is not`, "8xh100,25Gbit,50us": `"8xh100" is not`,
	} {
		if _, _, err := cost.ParseSeveral(text); err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "2xhost,25Gbit,50us") {
			t.Errorf("%q: %v; expected %s", text, err, want)
		}
	}
}

// machines is a file of three machines.
const machines = `transport: mpi
network: {bandwidth: 25Gbit, delay: 50us}
link: {bandwidth: 10GB, delay: 0us}
machines:
  - name: big
    devices:
      - {count: 2, memory_gb: 64, read_gb_s: 100, tflops: 2}
  - count: 2
    devices:
      - {memory_gb: 16, read_gb_s: 40, tflops: 0.5}
`

func TestFile(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "machines.yaml")
	if err := os.WriteFile(path, []byte(machines), 0o644); err != nil {
		t.Fatal(err)
	}
	m, err := cost.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if len(m.Devices) != 4 || strings.Join(m.Hosts, ", ") != "big, machine 1, machine 2" {
		t.Fatalf("%d devices in %v", len(m.Devices), m.Hosts)
	}
	if d := m.Devices[1]; d.Host != 0 || d.Memory != 64e9 || d.Read != 100e9 || d.Peak != 2e12 {
		t.Errorf("device 1 is %+v", d)
	}
	if d := m.Devices[3]; d.Host != 2 || d.Memory != 16e9 || d.Read != 40e9 || d.Peak != 0.5e12 {
		t.Errorf("device 3 is %+v", d)
	}
	if m.Network.Style != cost.Direct || m.Network.Bandwidth != 3.125e9 || math.Abs(m.Network.Delay-50e-6) > 1e-12 || m.Network.Latency != cost.MPIMessage || m.Group.Bandwidth != 10e9 {
		t.Errorf("links %+v and %+v", m.Network, m.Group)
	}
	for _, x := range []struct{ old, text, want string }{
		{machines, "", "empty"},
		{machines, "[1]", ":1: expected the keys transport"},
		{"transport: mpi", "transport: tcp", ":1: transport: expected mpi"},
		{"transport: mpi\n", "", "transport is missing"},
		{"network: ", "networks: ", `:2: unknown key "networks"`},
		{"network: {bandwidth: 25Gbit, delay: 50us}\n", "", "network is missing: there are 3 machines"},
		{"link: {bandwidth: 10GB, delay: 0us}\n", "", "link is missing: a machine has 2"},
		{"delay: 50us", "bandwidth: 1GB", ":2: duplicate key"},
		{", delay: 50us", "", ":2: the key delay is missing"},
		{"25Gbit", "25", ":2: bandwidth"},
		{"memory_gb: 16", "memory_gb: -16", ":10: memory_gb: expected"},
		{"memory_gb: 16", "memory_gb: .inf", ":10: memory_gb: expected"},
		{"tflops: 0.5", "tflops: 1e300", ":10: tflops: expected"},
		{"count: 2\n", "count: 0\n", ":8: count: expected"},
		{"count: 2\n", "count: 4096\n", "more than 4096 devices"},
		{"machines:\n", "machines:\n" + strings.Repeat("  - {devices: [{memory_gb: 1, read_gb_s: 1, tflops: 1}]}\n", 4096), ":4101: machines: more than 4096"},
		{"count: 2,", "count: 1.5,", ":7: count: expected"},
		{"name: big", "name: 'a b'", ":5: name"},
		{"  - count: 2", "  - name: big", ":8: name: big is another machine"},
		{"machines:\n", "machines: []\nmore:\n", ":4: machines: expected a list"},
		{"name: big", "name: &a [*a]", ":5: name"},
	} {
		text := strings.Replace(machines, x.old, x.text, 1)
		if _, err := cost.ParseFile("m.yaml", []byte(text)); err == nil || !strings.Contains(err.Error(), "m.yaml") || !strings.Contains(err.Error(), x.want) {
			t.Errorf("%q for %q: %v; expected %s", x.text, x.old, err, x.want)
		}
	}
	if _, err := cost.ReadFile(filepath.Join(t.TempDir(), "none.yaml")); err == nil {
		t.Error("a file that is not there was read")
	}
}

// FuzzMachines parses any text as several machines and as a file of machines.
// What is accepted has sizes in their bounds, and its estimates are numbers.
func FuzzMachines(f *testing.F) {
	for _, text := range []string{machines, strings.Replace(machines, "mpi", "nccl", 1), "2xhost,25Gbit,50us", "2x8xh100,400Gbit,5us", "transport: mpi\nmachines: &a [*a]\n", "2x"} {
		f.Add(text)
	}
	layer := cost.Part{Bytes: 1e9, Read: 1e9, MACs: 1e9, Gives: []int{100}}
	c := &cost.Model{Layers: []cost.Part{layer, layer}, Hidden: 100}
	f.Add("transport: mpi\nnetwork: &l {bandwidth: 1Gbit, delay: 1us}\nlink: *l\nmachines: [{count: 3, devices: &d [{count: 2, memory_gb: 1, read_gb_s: 1, tflops: 1}]}, {devices: *d}]\n")
	f.Fuzz(func(t *testing.T, text string) {
		if s, ok, err := cost.ParseSeveral(text); ok && err == nil {
			if s.N < 2 || s.N > 4096 || !(s.Bandwidth >= 1e3 && s.Bandwidth <= 1e14) || !(s.Delay >= 0 && s.Delay <= 10) {
				t.Fatalf("%q is %+v", text, s)
			}
		}
		path := hostiletest.File(t, "f.yaml", []byte(text))
		var m *cost.Machine
		if hostiletest.Read(t, len(text), func() (err error) { m, err = cost.ReadFile(path); return err }) != nil {
			return
		}
		if len(m.Devices) < 1 || len(m.Devices) > 4096 {
			t.Fatalf("%d devices", len(m.Devices))
		}
		for _, p := range []cost.Plan{cost.Spread(2, 1, min(2, len(m.Devices))), cost.Spread(2, min(2, len(m.Devices)), 1)} {
			r := c.Predict(m, p, cost.Load{Sequences: 3, Context: 100})
			if !(r.Decode.Low > 0 && r.Throughput.High < math.Inf(1)) {
				t.Fatalf("%s: %v, %v tok/s", p, r.Decode, r.Throughput)
			}
		}
	})
}

// TestDocumentedFile reads the file that the guide shows.
func TestDocumentedFile(t *testing.T) {
	t.Parallel()
	page, err := os.ReadFile("../../docs/scale.md")
	if err != nil {
		t.Fatal(err)
	}
	_, text, _ := strings.Cut(string(page), "```yaml\n")
	text, _, _ = strings.Cut(text, "```")
	if m, err := cost.ParseFile("docs/scale.md", []byte(text)); err != nil || len(m.Devices) != 4 || len(m.Hosts) != 3 {
		t.Errorf("%v in\n%s", err, text)
	}
}
