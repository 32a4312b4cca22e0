//go:build unix

package trace

import (
	"bytes"
	"encoding/json"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// model returns a manifest with two regions; only the second reads a matrix.
func model() *manifest.Manifest {
	return &manifest.Manifest{
		Name:    "m",
		Graphs:  []manifest.Graph{{Name: "decode"}},
		Weights: []manifest.Weight{{Name: "w", Index: []int{0}, Bytes: 1000}, {Name: "w", Index: []int{1}, Bytes: 1000}},
		Regions: []manifest.Region{{Graph: "decode", Name: "embed", Doc: "embed"}, {Graph: "decode", Name: "w", Doc: "matmul", Products: []manifest.Product{{Weight: "w", Rows: 1}}}},
	}
}

// step returns a trace of three threads. Thread 0: busy 10, wait 10, busy 40 and 60,
// wait 0. Thread 1: busy 20, 100. Thread 2 did not take part.
func step() device.StepTrace {
	return device.StepTrace{Tokens: 1, OutRows: 1, Seqs: 1, Threads: [][]device.Mark{
		{{NS: 1000, What: 0}, {NS: 1010, What: device.Wait}, {NS: 1020, What: 1}, {NS: 1060, What: 1, Layer: 1}, {NS: 1120, What: device.Wait}, {NS: 1120, What: device.Done}},
		{{NS: 1000, What: 0}, {NS: 1020, What: 1}, {NS: 1120, What: device.Done}},
		{},
	}}
}

func TestSummary(t *testing.T) {
	t.Parallel()
	m := model()
	s := NewSummary(m)
	s.Step(step())
	want := []Row{
		{Region: m.Regions[1], Calls: 2, BusyNS: 100, Bytes: 2000, GBS: 20, Share: 100.0 / 120},
		{Region: m.Regions[0], Calls: 1, BusyNS: 15, WaitNS: 5, Share: 20.0 / 120},
	}
	if d := cmp.Diff(want, s.Rows()); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if s.Steps != 1 || s.NS != 120 {
		t.Errorf("%d steps of %d ns", s.Steps, s.NS)
	}
	var out bytes.Buffer
	if err := s.Write(&out, 40); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "50 %") {
		t.Errorf("no fraction of the 40 GB/s limit in:\n%s", out.String())
	}
	s.Step(device.StepTrace{Threads: [][]device.Mark{{}}})
	if s.Steps != 1 {
		t.Error("a step without marks was counted")
	}
}

// TestWriter parses the file as a trace viewer would.
func TestWriter(t *testing.T) {
	t.Parallel()
	var file bytes.Buffer
	w := NewWriter(&file, model())
	w.origin = 1000
	w.Step(step())
	w.Decision("admitted", map[string]any{"request": 7})
	if err := w.Close(); err != nil {
		t.Fatal(err)
	}
	var doc struct {
		TraceEvents []event `json:"traceEvents"`
	}
	if err := json.Unmarshal(file.Bytes(), &doc); err != nil {
		t.Fatal(err)
	}
	type line struct {
		Name    string
		TID     int
		TS, Dur float64
	}
	var got []line
	decided := false
	for _, e := range doc.TraceEvents {
		if e.Phase == "X" {
			got = append(got, line{e.Name, e.TID, e.TS, e.Dur})
		}
		decided = decided || e.Name == "admitted" && e.Phase == "i"
	}
	want := []line{
		{"embed", 10, 0, 0.01}, {"wait", 10, 0.01, 0.01}, {"w", 10, 0.02, 0.04}, {"w", 10, 0.06, 0.06}, {"wait", 10, 0.12, 0},
		{"embed", 11, 0, 0.02}, {"w", 11, 0.02, 0.1}, {"decode, 1 tokens", 2, 0, 0.12},
	}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("(-want +got):\n%s", d)
	}
	if !decided {
		t.Error("the scheduler's decision is not in the file")
	}
}
