package compiler

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
)

// stepPages is how many pages of state a checked step has to choose from.
const stepPages = 4

// badSteps are what makes a good step one that reads or writes out of bounds.
var badSteps = []struct {
	name string
	edit func(s *device.Step)
}{
	{"a token id below 0", func(s *device.Step) { s.ID[1] = -1 }},
	{"a token id behind the table", func(s *device.Step) { s.ID[1] = 1 << 20 }},
	{"a position below 0", func(s *device.Step) { s.Pos[0] = -1 }},
	{"a row below 0", func(s *device.Step) { s.Slot[2] = -1 }},
	{"a row behind the sequence's pages", func(s *device.Step) { s.Slot[2] = 2 * device.PageRows }},
	{"a sequence below 0", func(s *device.Step) { s.Seq[0] = -1 }},
	{"a sequence that is not there", func(s *device.Step) { s.Seq[2] = 2 }},
	{"a token of another sequence", func(s *device.Step) { s.Seq[0] = 1 }},
	{"a first token below 0", func(s *device.Step) { s.First[0] = -1 }},
	{"first tokens out of order", func(s *device.Step) { s.First[1] = 4 }},
	{"rows before the step below 0", func(s *device.Step) { s.Past[1] = -1 }},
	{"more rows before the step than pages", func(s *device.Step) { s.Past[1] = 2*device.PageRows + 1 }},
	{"most rows before the step", func(s *device.Step) { s.Past[1] = 1<<31 - 1 }},
	{"pages that begin below 0", func(s *device.Step) { s.PageAt[0] = -1 }},
	{"pages out of order", func(s *device.Step) { s.PageAt[1] = 4 }},
	{"a page below 0", func(s *device.Step) { s.Page[1] = -1 }},
	{"a page that is not there", func(s *device.Step) { s.Page[2] = stepPages }},
	{"an output row below 0", func(s *device.Step) { s.OutRow[0] = -1 }},
	{"an output row that is no token", func(s *device.Step) { s.OutRow[0] = 3 }},
	{"an adapter that is not loaded", func(s *device.Step) { s.Adapted = true; s.Adapter[1] = 1 }},
	{"an adapter below -1", func(s *device.Step) { s.Adapted = true; s.Adapter[1] = -2 }},
	{"an adapter behind the last", func(s *device.Step) { s.Adapted = true; s.Adapter[0] = device.MaxAdapters }},
	{"a position in a tree behind the pages", func(s *device.Step) { s.Masked = true; s.Pos[2] = 2 * device.PageRows }},
}

// goodStep fills a step of two sequences: two tokens from the beginning, and
// one behind 64 rows.
func goodStep(s *device.Step) {
	copy(s.ID, []int32{1, 2, 3})
	copy(s.Pos, []int32{0, 1, 64})
	copy(s.Slot, []int32{0, 1, 64})
	copy(s.Seq, []int32{0, 0, 1})
	copy(s.First, []int32{0, 2, 3})
	copy(s.Past, []int32{0, 64})
	copy(s.PageAt, []int32{0, 1, 3})
	copy(s.Page, []int32{2, 0, 1})
	s.OutRow[0] = 2
	for i := range s.Mask {
		s.Mask[i] = 0
	}
	s.Masked, s.Adapted = false, false
	copy(s.Adapter, []int32{0, -1})
}

// TestBadSteps: the check of a step in C and its twin in Go, for GPUs, refuse
// the same steps.
func TestBadSteps(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	p, err := generate("../../spec/testdata/families/qwen2", Options{Quant: "f32", KV: "f16", Target: "cuda-emu"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	for name, m := range map[string]engine.Model{"cpu": loaded(t, p), "cuda": emulatedModel(t, p)} {
		var outputs []device.Array
		for _, o := range m.Manifest.Graphs[0].Outputs {
			outputs = append(outputs, device.Array{Rows: 8, Cols: o.Cols})
		}
		cfg := device.Config{
			Threads: 1, Weights: m.Weights, Dispatch: m.Dispatch, Pages: stepPages, MaxTokens: 8, MaxOutRows: 4, MaxSeqs: 2, MaskWords: 1,
			Outputs: outputs,
		}
		c, err := m.Device.Start(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		s, err := device.NewStep(&cfg)
		if err != nil {
			t.Fatal(err)
		}
		defer s.Free()
		run := func(graph, tokens, rows, seqs int) error {
			s.Graph, s.Tokens, s.OutRows, s.Seqs = graph, tokens, rows, seqs
			return c.Submit(s)()
		}
		// Other tests compute good steps on the emulation, whose stacks stay mapped for the life of the process.
		if name == "cpu" {
			goodStep(s)
			if err := run(0, 3, 1, 2); err != nil {
				t.Fatalf("refuses a good step: %v", err)
			}
		}
		for _, bad := range badSteps {
			goodStep(s)
			bad.edit(s)
			if err := run(0, 3, 1, 2); err == nil || !strings.Contains(err.Error(), "out of range") {
				t.Errorf("%s with %s: error %v", name, bad.name, err)
			}
		}
		for _, n := range [][4]int{{-1, 3, 1, 2}, {len(m.Manifest.Graphs), 3, 1, 2}, {0, 9, 1, 2}, {0, -1, 1, 2}, {0, 3, 5, 2}, {0, 3, -1, 2}, {0, 3, 1, 3}, {0, 3, 1, -1}} {
			goodStep(s)
			if run(n[0], n[1], n[2], n[3]) == nil {
				t.Errorf("%s takes a step of graph %d, %d tokens, %d output rows and %d sequences", name, n[0], n[1], n[2], n[3])
			}
		}
	}
}
