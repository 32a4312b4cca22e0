//go:build unix

package engine_test

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
)

// TestPlanCells checks the memory of fixed-size states, with and without a KV cache.
func TestPlanCells(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opt   engine.Options
		cells int
	}{
		{engine.Options{}, 2},
		{engine.Options{MaxSeqs: 5}, 10},
		{engine.Options{MaxSeqs: 5, Draft: 8}, 15},
		{engine.Options{MaxSeqs: 5, Draft: 100}, 24},
		{engine.Options{MaxSeqs: 5, Prefix: true}, 20},
		{engine.Options{MaxSeqs: 5, Rewind: 15}, 15},
		{engine.Options{MaxSeqs: 5, Cells: 7}, 7},
	} {
		c.opt.Threads = 1
		for _, paged := range []bool{false, true} {
			mem, opt, err := engine.Plan(engine.Model{Manifest: recurrenceModel(paged), Device: &recurrence{paged: paged}}, c.opt)
			pages := int64(max(c.opt.MaxSeqs, 1)) * 10
			if !paged {
				pages = 0
			}
			if err != nil || opt.Cells != c.cells || mem.CellBytes != 3072 || mem.States != int64(c.cells)*3072 || mem.KVCache != 512*pages || mem.Total() < mem.States+mem.KVCache {
				t.Errorf("%+v, paged %v: %d cells, %+v, %v", c.opt, paged, opt.Cells, mem, err)
			}
		}
	}
	if _, _, err := engine.Plan(engine.Model{Manifest: recurrenceModel(true), Device: &recurrence{}}, engine.Options{Draft: 40, Cells: 4}); err == nil {
		t.Error("4 cells were accepted for drafts of 40 tokens")
	}
	mem, _, _ := engine.Plan(engine.Model{Manifest: recurrenceModel(true), Device: &recurrence{}}, engine.Options{})
	mem.Available = 1000
	if err := mem.Check(); err == nil || !strings.Contains(err.Error(), "fixed-size states 1,") {
		t.Errorf("more than available: %v", err)
	}
}

// TestCells runs random sequences of a model with fixed-size states: chunks, forks,
// shared prefixes, drafts, rewinds, preemption, suspension and steps that fail. Every
// row must be that of the sequence's own tokens, and no cell may be lost.
func TestCells(t *testing.T) {
	t.Parallel()
	for i, opt := range []engine.Options{
		{MaxSeqs: 4},
		{MaxSeqs: 4, MaxTokens: 50, Prefix: true},
		{MaxSeqs: 6, Draft: 9, MaxTokens: 64},
		{MaxSeqs: 6, Draft: 40, Prefix: true, MaxTokens: 300},
		{MaxSeqs: 8, Draft: 20, Cells: 5, Prefix: true},
		{MaxSeqs: 3, Draft: 5, Cells: 4, Pages: 11, Rewind: 7},
		{MaxSeqs: 8, Draft: 12, Pages: 12, Cells: 6, Prefix: true},
		{MaxSeqs: 8, MaxTokens: 37, Cells: 2},
	} {
		for seed := range uint64(6) {
			dev := &recurrence{paged: seed%2 == 0, inFlight: 1 + int(seed)/4, r: rand.New(rand.NewPCG(seed, 2))}
			if seed == 2 {
				dev.r = nil
			}
			c := &devicetest.Crowd{T: t, Engine: open(t, engine.Model{Manifest: recurrenceModel(dev.paged), Device: dev}, opt), Vocab: 90, Injected: errInjected}
			c.Check = func(tokens []int32, row []float32) bool { return isHash(row, hashOf(tokens)) }
			c.Start(rand.New(rand.NewPCG(seed, uint64(i))), 260)
			for range 400 {
				c.Round()
				if t.Failed() {
					t.Fatalf("options %d, seed %d", i, seed)
				}
			}
			stats := c.Engine.Stats()
			c.End()
			t.Logf("options %d, seed %d: %d steps, %d tokens, %d drafted, %d accepted, %d preempted, %d of %d prompt tokens reused, %d cells, %d kept, lists of up to %d", i, seed,
				stats.Steps, stats.Tokens, stats.Drafted, stats.Accepted, stats.Preempted, stats.PromptsReused, stats.Prompts, stats.Cells, stats.CellsKept, dev.most)
		}
	}
}
