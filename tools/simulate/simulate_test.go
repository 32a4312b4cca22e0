//go:build unix

package main

import (
	"io"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/iflowc/iflowc/passes/cost"
)

const testLibrary = "../../" + libraryDir

// TestSchedules runs the three ways of Table 5 in a time that only waits pass:
// the engine on ranks gives what the cost model foretells, hybrid is ahead of
// layer in latency and of tensor in throughput, and every token is the one that
// the sequence gets alone.
func TestSchedules(t *testing.T) {
	t.Parallel()
	c, err := costsOf(testLibrary, "falcon-40b-instruct")
	if err != nil {
		t.Fatal(err)
	}
	c = c.ReportExchanges()
	synctest.Test(t, func(t *testing.T) {
		rows, err := schedules(t.Context(), c, cost.Report(), 24)
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range rows {
			p := c.Predict(cost.Report(), cost.Spread(len(c.Layers), r.Stages, r.TPSize), cost.Load{Sequences: r.Stages})
			t.Logf("%s: %.1f of one, %.1f of %d, bubble %.2f; estimated %.1f, %.1f", r.Name, r.One.Speed, r.All.Speed, r.Stages, r.All.Bubble, p.Decode.Mid, p.Throughput.Mid)
			if math.Abs(r.One.Speed/p.Decode.Mid-1) > 0.03 || math.Abs(r.All.Speed/p.Throughput.Mid-1) > 0.08 {
				t.Errorf("%s: not what was estimated", r.Name)
			}
			if want := 1 - 1/float64(r.Stages); math.Abs(r.One.Bubble-want) > 0.05 || r.All.Bubble > 0.12 {
				t.Errorf("%s: bubble %.2f with one sequence, expected %.2f; %.2f with %d", r.Name, r.One.Bubble, want, r.All.Bubble, r.Stages)
			}
		}
		layer, tensor, hybrid := rows[0], rows[1], rows[2]
		if hybrid.One.Speed < 1.3*layer.One.Speed || hybrid.All.Speed < 1.7*tensor.All.Speed || layer.All.Speed < 1.1*hybrid.All.Speed {
			t.Error("the order of the three ways is not the report's")
		}
	})
}

// TestStyles: what ranks exchange takes as long as the cost model says, in each
// of the ways.
func TestStyles(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Read: 1e6, MACs: 1, Gives: []int{1000, 1000}}
	c := &cost.Model{Name: "m", Layers: []cost.Part{layer, layer}, Hidden: 1000}
	for style, name := range map[cost.Style]string{cost.Direct: "direct", cost.Ring: "ring", cost.Hub: "hub"} {
		dev := cost.Device{Read: 1e9, Peak: 1e12, Reach: cost.Sure(1)}
		m := &cost.Machine{Devices: []cost.Device{dev, dev, dev}, Group: cost.Link{Latency: cost.Sure(1e-3), Bandwidth: 4e6, Style: style, Float: 4}}
		plan := cost.Spread(2, 1, 3)
		p := c.Predict(m, plan, cost.Load{Sequences: 1})
		synctest.Test(t, func(t *testing.T) {
			got, err := measure(t.Context(), &ranks{model: c, machine: m, plan: plan}, 1, 10)
			if err != nil {
				t.Fatal(err)
			}
			if math.Abs(got.Speed/p.Decode.Mid-1) > 0.02 {
				t.Errorf("%s: %.2f tokens a second, estimated %.2f", name, got.Speed, p.Decode.Mid)
			}
		})
	}
}

// TestNetwork: two ranks on two machines take as long as the cost model says, for
// each delay and bandwidth, and so do two sequences in a pipeline.
func TestNetwork(t *testing.T) {
	t.Parallel()
	c, err := costsOf(testLibrary, "smollm2-135m-instruct")
	if err != nil {
		t.Fatal(err)
	}
	one := measuredAs(c, 12.3e-3, 0)
	for _, delay := range []string{"0ms", "1ms", "20ms"} {
		for _, bandwidth := range []string{"100Mbit", "10Gbit"} {
			m, err := between(one, delay, bandwidth)
			if err != nil {
				t.Fatal(err)
			}
			for _, x := range []struct{ stages, tpSize, sequences int }{{2, 1, 1}, {2, 1, 2}, {1, 2, 1}, {1, 2, 4}} {
				plan := cost.Spread(len(c.Layers), x.stages, x.tpSize)
				want := c.Predict(m, plan, cost.Load{Sequences: x.sequences}).Throughput.Mid
				synctest.Test(t, func(t *testing.T) {
					got, err := measure(t.Context(), &ranks{model: c, machine: m, plan: plan}, x.sequences, 24)
					if err != nil {
						t.Fatal(err)
					}
					t.Logf("%s %s, %s, %d sequences: %.2f tok/s, estimated %.2f", delay, bandwidth, plan, x.sequences, got.Speed, want)
					if math.Abs(got.Speed/want-1) > 0.03 { // a run's start and end
						t.Errorf("%s %s, %s, %d sequences: %.2f tok/s, estimated %.2f", delay, bandwidth, plan, x.sequences, got.Speed, want)
					}
				})
			}
		}
	}
}

// TestHosts: exchanges between machines of two devices and along a ring take as
// long as the cost model says.
func TestHosts(t *testing.T) {
	t.Parallel()
	layer := cost.Part{Read: 1e6, MACs: 1, Gives: []int{1000, 1000}, Gathers: []int{500}}
	c := &cost.Model{Name: "m", Layers: []cost.Part{layer, layer}, Hidden: 1000, Head: cost.Part{Gathers: []int{4000}}}
	dev := cost.Device{Read: 1e9, Peak: 1e12, Reach: cost.Sure(1)}
	for style, name := range map[cost.Style]string{cost.Direct: "direct", cost.Ring: "ring", cost.Hub: "hub"} {
		host := &cost.Machine{Devices: []cost.Device{dev, dev}, Group: cost.Link{Latency: cost.Sure(1e-3), Bandwidth: 4e6, Style: style, Float: 4}}
		host.Border = host.Group
		m, err := host.Times(2, cost.Network{Bandwidth: 2e6, Delay: 2e-3})
		if err != nil {
			t.Fatal(err)
		}
		for _, plan := range []cost.Plan{cost.Spread(2, 1, 4), cost.Spread(2, 2, 2), cost.Spread(2, 1, 2)} {
			p := c.Predict(m, plan, cost.Load{Sequences: 1})
			synctest.Test(t, func(t *testing.T) {
				got, err := measure(t.Context(), &ranks{model: c, machine: m, plan: plan}, 1, 10)
				if err != nil {
					t.Fatal(err)
				}
				if math.Abs(got.Speed/p.Decode.Mid-1) > 0.02 {
					t.Errorf("%s, %s: %.2f tokens a second, estimated %.2f", name, plan, got.Speed, p.Decode.Mid)
				}
			})
		}
	}
}

// TestNetworkTable is arithmetic by hand for SmolLM2-135M: in a pipeline, two messages
// besides the measured time, of 2304 and of 4 bytes; tensor parallel, a message of 96
// bytes, 60 exchanges of 2304 bytes and one of 98304, which is announced and
// confirmed, and the ranks' parts.
func TestNetworkTable(t *testing.T) {
	t.Parallel()
	c, err := costsOf(testLibrary, "smollm2-135m-instruct")
	if err != nil {
		t.Fatal(err)
	}
	const token, message = 12.3e-3, 10e-6
	m, err := between(measuredAs(c, token, 0), "5ms", "1Gbit")
	if err != nil {
		t.Fatal(err)
	}
	on := func(bytes float64) float64 { return message + 5e-3 + bytes*8/1e9 }
	// weights in bytes of f16: a layer's, its busiest rank's, the head's
	const all, busiest, head = 2 * 3540096, 2 * (2*576*384 + 2*576*128 + 3*576*768 + 2*576), 2 * (49152*576 + 576)
	byLayer := token + on(2304) + on(4)
	byTensor := on(96) + token*(30*busiest+head/2)/(30*all+head) + 60*on(2304) + on(98304) + 2*5e-3
	layer, tensor := predicted(c, m, 0)
	if math.Abs(layer.Mid*byLayer-1) > 1e-3 || math.Abs(tensor.Mid*byTensor-1) > 1e-3 {
		t.Errorf("%.3f and %.3f ms by layer and by tensor; expected %.3f and %.3f", 1e3/layer.Mid, 1e3/tensor.Mid, 1e3*byLayer, 1e3*byTensor)
	}
}

// TestNetworkCommand prints one line for each delay and bandwidth, also for a file
// of IR, and refuses what it does not understand.
func TestNetworkCommand(t *testing.T) {
	t.Parallel()
	_, text, err := irOf(testLibrary, "smollm2-135m-instruct")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "model.ir")
	if err := os.WriteFile(file, text, 0o644); err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	if err := network(&out, []string{"--model", file, "--measured", "81.3tok/s", "--delays", "5ms,20ms", "--bandwidths", "1Gbit"}); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"12.30 ms a token, 81.3 tok/s", " 5ms 1Gbit 44.8 (44.7 to 44.8) 3.04 (3.03 to 3.04) 20ms 1Gbit 19.1 "} {
		if !strings.Contains(strings.Join(strings.Fields(out.String()), " "), want) {
			t.Errorf("%s\nlacks %q", out.String(), want)
		}
	}
	out.Reset() // 12.3 + 2·(5 + 0.5) ms and 18 µs
	if err := network(&out, []string{"--model", file, "--measured", "12.3ms", "--message", "0.5ms", "--delays", "5ms", "--bandwidths", "1Gbit"}); err != nil || !strings.Contains(out.String(), "42.9 (42.9 to 42.9)") {
		t.Errorf("%v\n%s", err, out.String())
	}
	for _, bad := range [][]string{{}, {"--measured", "12"}, {"--measured", "0tok/s"}, {"--measured", "12ms", "--delays", "1"}, {"--measured", "12ms", "--bandwidths", "1"},
		{"--measured", "12ms", "--message", "1"}, {"--measured", "12ms", "--context", "-1"}, {"--measured", "12ms", "--model", "none.ir"}} {
		if err := network(io.Discard, append([]string{"--model", file}, bad...)); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

// TestAgainst compares predictions with files of measurements: of 44.8 and 3.04 tok/s, see
// TestNetworkCommand.
func TestAgainst(t *testing.T) {
	t.Parallel()
	c, err := costsOf(testLibrary, "smollm2-135m-instruct")
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	write := func(name, text string) string {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
		return file
	}
	one := write("one.json", `[{"devices": "", "tok_s": [70, 81.3, 90]}]`)
	two := write("two.json", `[{"devices": "0;1", "link": "5ms,1Gbit", "delay_s": 0.005, "bytes_per_s": 125e6, "tok_s": [40]},
		{"devices": "0&1", "link": "5ms,1Gbit", "delay_s": 0.005, "bytes_per_s": 125e6, "tok_s": [3.04, 3, 3.1]}]`)
	var out strings.Builder
	if err := against(&out, c, []string{one, two}, cost.MPIMessage); err != nil {
		t.Fatal(err)
	}
	text := strings.Join(strings.Fields(out.String()), " ")
	for _, want := range []string{"one process 81.3 tok/s", "0;1 5ms,1Gbit 5.000 44.77 40.00 1.12", "0&1 5ms,1Gbit 5.000 3.04 3.04 1.00", "largest deviation 12 %"} {
		if !strings.Contains(text, want) {
			t.Errorf("%s\nlacks %q", out.String(), want)
		}
	}
	for _, bad := range [][]string{{one}, {two}, {"none.json"}, {one, write("zero.json", `[{"devices": "0;1", "tok_s": [0]}]`)}, {one, write("bad.json", "{")},
		{one, write("link.json", `[{"devices": "0;1", "delay_s": 1, "tok_s": [1]}]`)}} {
		if err := against(io.Discard, c, bad, cost.MPIMessage); err == nil {
			t.Errorf("%v was accepted", bad)
		}
	}
}

func TestLibraryErrors(t *testing.T) {
	t.Parallel()
	if _, err := costsOf(testLibrary, "none"); err == nil || !strings.Contains(err.Error(), "repository's root") {
		t.Errorf("a model that is not there: %v", err)
	}
	for _, machine := range []string{"8xnothing", "2x8xnothing,1Gbit,1us", "2xhost,1Gbit,1us", "none.yaml"} {
		if err := size("demo", machine, "1", 10); err == nil || strings.Contains(err.Error(), "library") {
			t.Errorf("machine %s: %v", machine, err)
		}
	}
}
