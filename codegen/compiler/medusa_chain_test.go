package compiler

import (
	"encoding/json"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// chainOf is a drafter that runs the chained head on given tokens, one behind
// the other, and keeps what it says.
type chainOf struct {
	tokens []int32
	rows   [][]float32
	width  int
	run    speculate.ChainRun
}

func (c *chainOf) Observe([]int32)              {}
func (c *chainOf) Chain(run speculate.ChainRun) { c.run = run }

func (c *chainOf) Propose([]int32, speculate.Room) speculate.Draft {
	c.rows = nil
	var state []float32
	for _, token := range c.tokens {
		row := c.run(nil, state, token)
		c.rows = append(c.rows, row)
		state = row[len(row)-c.width:]
	}
	return speculate.Draft{}
}

// chainPrompts are continued with and without the chained head.
var chainPrompts = [][]int32{{1, 2, 3}, {4, 5}, {9, 8, 7, 6}, {11}}

// TestCompiledChain: the compiled chained head gives what torch computes, and
// sequences that it drafts for, together or alone, go on as without.
func TestCompiledChain(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	m := loaded(t, medusaModel(t, headKinds["chain"], ""))
	chainLikeTorch(t, m)
	chainChangesNothing(t, m, chainPrompts, draftedTokens)
}

// TestChainTogether: one run of the head drafts for all sequences of a step.
func TestChainTogether(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	m := loaded(t, medusaModel(t, headKinds["chain"], ""))
	e, most := openMedusa(t, m, len(chainPrompts)), 0
	err := e.Trace(func(s device.StepTrace) {
		if m.Manifest.Graphs[s.Graph].Follows() {
			most = max(most, s.OutRows)
		}
	})
	if err != nil {
		t.Fatal(err)
	}
	if decodeAll(t, e, m, chainPrompts, draftedTokens, true); most != len(chainPrompts) {
		t.Errorf("a run drafted for %d sequences at most, want %d", most, len(chainPrompts))
	}
}

// TestEmulatedChain: so does the CUDA target's.
func TestEmulatedChain(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	m := emulatedModel(t, medusaModel(t, headKinds["chain"], "cuda-emu"))
	chainLikeTorch(t, m)
	chainChangesNothing(t, m, chainPrompts[:2], 6)
}

// chainLikeTorch compares the chained head's rows with torch's.
func chainLikeTorch(t *testing.T, m engine.Model) {
	t.Helper()
	raw, err := os.ReadFile("../../spec/testdata/medusa/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		IDs   []int
		Chain [][]float64
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	e := openMedusa(t, m, 1)
	id, err := e.AddQuery(engine.Query{Tokens: asInt32(want.IDs)})
	if err != nil {
		t.Fatal(err)
	}
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	c := &chainOf{tokens: []int32{7, 11}, width: len(want.Chain[0]) - m.Manifest.Medusa.Columns}
	for range 2 { // the second time on the model's own state again
		results[0].Draft(c, nil, []int32{0}, asInt32(want.IDs), 10)
		for i, row := range want.Chain {
			for k, x := range row {
				if got := float64(c.rows[i][k]); math.Abs(got-x) > 3e-4 {
					t.Fatalf("run %d, column %d: %g, want %g", i, k, got, x)
				}
			}
		}
		e.Remove(id)
		if id, err = e.AddQuery(engine.Query{Tokens: asInt32(want.IDs)}); err != nil {
			t.Fatal(err)
		}
		if results, err = e.Infer(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
}

// chainChangesNothing: sequences that the chained head drafts for, together or
// alone, are continued by n tokens as without it.
func chainChangesNothing(t *testing.T, m engine.Model, prompts [][]int32, n int) {
	t.Helper()
	plain := decodeAll(t, openMedusa(t, m, len(prompts)), m, prompts, n, false)
	if got := decodeAll(t, openMedusa(t, m, len(prompts)), m, prompts, n, true); !slices.EqualFunc(got, plain, slices.Equal) {
		t.Errorf("with the head %v, without %v", got, plain)
	}
	for i, prompt := range prompts {
		if got := decodeAll(t, openMedusa(t, m, 1), m, [][]int32{prompt}, n, true)[0]; !slices.Equal(got, plain[i]) {
			t.Errorf("prompt %d: alone %v, without the head %v", i, got, plain[i])
		}
	}
}
