package main

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
)

// stepPages is how many pages of state a checked step has to choose from.
const stepPages = 4

// badSteps are what makes a good step one that reads or writes out of bounds.
var badSteps = []struct {
	name string
	edit func(c *device.Context)
}{
	{"a token id below 0", func(c *device.Context) { c.ID[1] = -1 }},
	{"a token id behind the table", func(c *device.Context) { c.ID[1] = 1 << 20 }},
	{"a position below 0", func(c *device.Context) { c.Pos[0] = -1 }},
	{"a row below 0", func(c *device.Context) { c.Slot[2] = -1 }},
	{"a row behind the sequence's pages", func(c *device.Context) { c.Slot[2] = 2 * device.PageRows }},
	{"a sequence below 0", func(c *device.Context) { c.Seq[0] = -1 }},
	{"a sequence that is not there", func(c *device.Context) { c.Seq[2] = 2 }},
	{"a token of another sequence", func(c *device.Context) { c.Seq[0] = 1 }},
	{"a first token below 0", func(c *device.Context) { c.First[0] = -1 }},
	{"first tokens out of order", func(c *device.Context) { c.First[1] = 4 }},
	{"rows before the step below 0", func(c *device.Context) { c.Past[1] = -1 }},
	{"more rows before the step than pages", func(c *device.Context) { c.Past[1] = 2*device.PageRows + 1 }},
	{"most rows before the step", func(c *device.Context) { c.Past[1] = 1<<31 - 1 }},
	{"pages that begin below 0", func(c *device.Context) { c.PageAt[0] = -1 }},
	{"pages out of order", func(c *device.Context) { c.PageAt[1] = 4 }},
	{"a page below 0", func(c *device.Context) { c.Page[1] = -1 }},
	{"a page that is not there", func(c *device.Context) { c.Page[2] = stepPages }},
	{"an output row below 0", func(c *device.Context) { c.Want[0] = -1 }},
	{"an output row that is no token", func(c *device.Context) { c.Want[0] = 3 }},
	{"a position in a tree behind the pages", func(c *device.Context) { c.Masked(true); c.Pos[2] = 2 * device.PageRows }},
}

// goodStep fills a step of two sequences: two tokens from the beginning, and
// one behind 64 rows.
func goodStep(c *device.Context) {
	copy(c.ID, []int32{1, 2, 3})
	copy(c.Pos, []int32{0, 1, 64})
	copy(c.Slot, []int32{0, 1, 64})
	copy(c.Seq, []int32{0, 0, 1})
	copy(c.First, []int32{0, 2, 3})
	copy(c.Past, []int32{0, 64})
	copy(c.PageAt, []int32{0, 1, 3})
	copy(c.Page, []int32{2, 0, 1})
	c.Want[0] = 2
	for i := range c.Mask {
		c.Mask[i] = 0
	}
	c.Masked(false)
}

// TestBadSteps: the check of a step in C and its twin in Go, for GPUs, refuse
// the same steps.
func TestBadSteps(t *testing.T) {
	t.Parallel()
	needEmulation(t)
	p, err := (&compileFlags{modelFlags: modelFlags{Spec: demoSpec, Quant: "q8_b32t2"}, Target: "cuda-emu"}).generate()
	if err != nil {
		t.Fatal(err)
	}
	defer p.m.set.Close()
	for name, m := range map[string]engine.Model{"cpu": loaded(t, p), "cuda": emulatedModel(t, p)} {
		var outputs []device.Array
		for _, o := range m.Manifest.Graphs[0].Outputs {
			outputs = append(outputs, device.Array{Rows: 8, Cols: o.Cols})
		}
		c, err := m.Library.Start(device.Config{
			Threads: 1, Weights: m.Weights, Dispatch: m.Dispatch, Pages: stepPages, MaxTokens: 8, MaxWanted: 4, MaxSeqs: 2, MaskWords: 1,
			Outputs: outputs,
		})
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		// Other tests compute good steps on the emulation, whose stacks stay mapped for the life of the process.
		if name == "cpu" {
			goodStep(c)
			if err := c.Run(0, 3, 1, 2, false); err != nil {
				t.Fatalf("refuses a good step: %v", err)
			}
		}
		for _, bad := range badSteps {
			goodStep(c)
			bad.edit(c)
			if err := c.Run(0, 3, 1, 2, false); err == nil || !strings.Contains(err.Error(), "out of range") {
				t.Errorf("%s with %s: error %v", name, bad.name, err)
			}
		}
		for _, n := range [][4]int{{-1, 3, 1, 2}, {len(m.Manifest.Graphs), 3, 1, 2}, {0, 9, 1, 2}, {0, -1, 1, 2}, {0, 3, 5, 2}, {0, 3, -1, 2}, {0, 3, 1, 3}, {0, 3, 1, -1}} {
			goodStep(c)
			if c.Run(n[0], n[1], n[2], n[3], false) == nil {
				t.Errorf("%s takes a step of entry %d, %d tokens, %d output rows and %d sequences", name, n[0], n[1], n[2], n[3])
			}
		}
	}
}
