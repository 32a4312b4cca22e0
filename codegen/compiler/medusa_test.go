package compiler

import (
	"encoding/json"
	"errors"
	"math"
	"os"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// medusaModel compiles the tiny Llama with heads.
func medusaModel(t *testing.T, section, target string) *Program {
	t.Helper()
	p, err := generate(tinyMedusa(t, section), Options{Quant: "f32", Target: target})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.set.Close() })
	return p
}

// TestEmulatedMedusa: the CUDA target's heads give what torch computes, also those
// that share the vocabulary's matrix.
func TestEmulatedMedusa(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	raw, err := os.ReadFile("../../spec/testdata/medusa/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		IDs    []int
		Shared [][][]float64
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	m := emulatedModel(t, medusaModel(t, "shared.safetensors\n  vocab: 32\n  choices: [1, 4, 3, 2]", "cuda-emu"))
	likeTorch(t, openMedusa(t, m, 1), m, want.IDs, want.Shared)
	prompts := [][]int32{{1, 2, 3}, {9, 8, 7, 6}}
	plain := decodeAll(t, openMedusa(t, m, 3), m, prompts, 6, false)
	watch := &watchedDevice{Device: m.Device, copied: map[string]int{}}
	m.Device, watch.graphs = watch, m.Manifest.Graphs
	if got := decodeAll(t, openMedusa(t, m, 3), m, prompts, 6, true); !slices.EqualFunc(got, plain, slices.Equal) {
		t.Errorf("with heads %v, without %v", got, plain)
	}
	if watch.copied["logits"] > 0 || watch.copied["hidden"] > 0 || watch.copied["medusa"] == 0 {
		t.Errorf("rows that were copied to the host: %v", watch.copied)
	}
}

// TestCompiledMedusa: the compiled heads give what torch computes, of matrices of
// their own and of slices behind the model's; several sequences with trees of
// guesses, together in a step, go on as each does alone and without.
func TestCompiledMedusa(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	raw, err := os.ReadFile("../../spec/testdata/medusa/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		IDs         []int
		Own, Shared [][][]float64
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	for section, heads := range map[string][][][]float64{"own.pt\n  choices: [1, 4, 3]": want.Own, "shared.safetensors\n  vocab: 32\n  choices: [1, 4, 3, 2]": want.Shared} {
		p := medusaModel(t, section, "")
		m := loaded(t, p)
		t.Run(section[:3], func(t *testing.T) {
			t.Parallel()
			e := openMedusa(t, m, 1)
			likeTorch(t, e, m, want.IDs, heads)
			prompts := [][]int32{{1, 2, 3}, {4, 5}, {9, 8, 7, 6}, {11}}
			plain := decodeAll(t, openMedusa(t, m, 4), m, prompts, draftedTokens, false)
			if got := decodeAll(t, openMedusa(t, m, 4), m, prompts, draftedTokens, true); !slices.EqualFunc(got, plain, slices.Equal) {
				t.Errorf("with heads %v, without %v", got, plain)
			}
			for i, prompt := range prompts {
				if got := decodeAll(t, openMedusa(t, m, 1), m, [][]int32{prompt}, draftedTokens, true)[0]; !slices.Equal(got, plain[i]) {
					t.Errorf("prompt %d: alone %v, without heads %v", i, got, plain[i])
				}
			}
		})
	}
}

func openMedusa(t *testing.T, m engine.Model, seqs int) *engine.Engine {
	t.Helper()
	e, err := engine.Open(m, engine.Options{MaxSeqs: seqs, MaxOutRows: 128, MaxTokens: 128, Context: 64, Threads: 1, Draft: 40})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// rowsOf is a drafter that keeps the heads' rows.
type rowsOf struct {
	output int
	row    []float32
}

func (r *rowsOf) Propose([]int32, speculate.Room) speculate.Draft { return speculate.Draft{} }
func (r *rowsOf) Observe([]int32)                                 {}
func (r *rowsOf) Reads() bool                                     { return true }
func (r *rowsOf) ReadRows(row func(int) []float32)                { r.row = slices.Clone(row(r.output)) }

// likeTorch computes a prompt's heads, one token a step, and compares the last two.
func likeTorch(t *testing.T, e *engine.Engine, m engine.Model, ids []int, want [][][]float64) {
	t.Helper()
	keep := &rowsOf{output: m.Manifest.MedusaOutput()}
	id, err := e.AddQuery(engine.Query{Tokens: asInt32(ids[:1])})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Remove(id)
	for i := range ids {
		results, err := e.Infer(t.Context())
		if err != nil || len(results) != 1 {
			t.Fatal(results, err)
		}
		keep.row = nil
		results[0].Draft(keep, nil, []int32{0}, asInt32(ids[:i+1]), 10)
		if at := i - (len(ids) - 2); at >= 0 {
			columns := m.Manifest.Medusa.Columns
			for h, rows := range want {
				for k := range columns {
					if got := float64(keep.row[h*columns+k]); math.Abs(got-rows[at][k]) > 3e-4 {
						t.Fatalf("head %d, token %d: %g, want %g", h, k, got, rows[at][k])
					}
				}
			}
		}
		if i+1 < len(ids) {
			if err := e.Commit(id, int32(ids[i+1])); err != nil {
				t.Fatal(err)
			}
		}
	}
}

// draftedTokens is how many tokens most tests continue a prompt by.
const draftedTokens = 40

// decodeAll continues prompts by n tokens greedily, all in one engine, with
// drafts of the heads or without.
func decodeAll(t *testing.T, e *engine.Engine, m engine.Model, prompts [][]int32, n int, draft bool) [][]int32 {
	t.Helper()
	index := map[engine.ID]int{}
	histories := make([][]int32, len(prompts))
	drafters := make([]speculate.Drafter, len(prompts))
	trees := make([]speculate.Tree, len(prompts))
	drafted := 0
	for i, p := range prompts {
		id, err := e.AddQuery(engine.Query{Tokens: p, TopK: 1})
		if err != nil {
			t.Fatal(err)
		}
		index[id], histories[i] = i, slices.Clone(p)
		drafters[i] = speculate.NewHeads(m.Manifest.Medusa, m.Manifest.MedusaOutput())
	}
	for e.Len() > 0 {
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		var drafts, after []func()
		for _, r := range results {
			i := index[r.ID]
			if !r.Ready {
				continue
			}
			drafted += r.Drafted
			var step []int32
			var path []int
			for node := -1; len(histories[i]) < len(prompts[i])+n; path = append(path, node) {
				best := bestOf(r, node, m.Manifest.Vocab)
				histories[i], step = append(histories[i], best), append(step, best)
				if node = trees[i].Cut(r.Drafted).Child(node, best); node < 0 {
					break
				}
			}
			if len(histories[i]) >= len(prompts[i])+n {
				e.Remove(r.ID)
				continue
			}
			if draft {
				drafts = append(drafts, func() { trees[i] = r.Draft(&unpriced{drafters[i]}, path, step, histories[i], 60).Tree })
			}
			after = append(after, func() {
				if err := errors.Join(e.Advance(r.ID, path, step[len(step)-1]), e.Propose(r.ID, trees[i])); err != nil {
					t.Fatal(err)
				}
			})
		}
		e.DraftBatch(drafts)
		for _, f := range after {
			f()
		}
	}
	if draft && drafted < n {
		t.Errorf("only %d nodes were drafted", drafted)
	}
	return histories
}

// bestOf is the argmax of a node's logits, also where the step did not find it.
func bestOf(r engine.Result, node, vocab int) int32 {
	if top := r.AppendTop(nil, node, vocab); len(top) > 0 {
		return top[0].ID
	}
	return argmax(r.Node(0, node)[:vocab])
}

func argmax(row []float32) int32 {
	best := 0
	for k, x := range row {
		if x > row[best] {
			best = k
		}
	}
	return int32(best)
}

// heldOut begin texts of the demo's kind that its heads were not trained on.
var heldOut = []string{
	"Once upon a time, in a warm", "It was a windy evening", "Long ago, beside a small river,", "A kind old", "One day a brave",
	"In the middle of the forest there", "The shy little mouse", "Early in the morning",
}

// demoMedusa is the demo model with its heads and a tree of five nodes.
func demoMedusa(t *testing.T) string {
	return medusaFile(t, "../../models/demo", "../../models/testdata/demo_medusa/medusa_lm_head.safetensors\n  choices: [[0], [0, 0], [0, 0, 0], [1], [0, 1]]")
}

// TestDemoMedusa: with its heads the demo model writes the
// same, and at least 1.8 tokens a step.
func TestDemoMedusa(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	p, err := generate(demoMedusa(t), Options{Quant: "q8_b32t2"})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.set.Close() })
	tok, _, err := p.Model.tokenizer()
	if err != nil {
		t.Fatal(err)
	}
	m := loaded(t, p)
	var prompts [][]int32
	for _, text := range heldOut {
		prompts = append(prompts, tok.Encode(text, true))
	}
	open := func() *engine.Engine {
		e, err := engine.Open(m, engine.Options{MaxSeqs: len(prompts), MaxTokens: 128, MaxOutRows: 128, Context: 128, Draft: 15})
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(e.Close)
		return e
	}
	want, with := decodeAll(t, open(), m, prompts, draftedTokens, false), open()
	if got := decodeAll(t, with, m, prompts, draftedTokens, true); !slices.EqualFunc(got, want, slices.Equal) {
		t.Errorf("with heads %v, without %v", got, want)
	}
	tokens := int64(len(prompts) * (draftedTokens - 1)) // behind the first, which the prompt's step gives
	if per := float64(tokens) / float64(tokens-with.Stats().Accepted); per < 1.8 {
		t.Errorf("%.2f tokens a step of a sequence", per)
	}
}

// unpriced drafts as if steps cost nothing, so that trees are always tried.
type unpriced struct{ speculate.Drafter }

func (u *unpriced) Propose(history []int32, room speculate.Room) speculate.Draft {
	room.Time, room.HeadTime, room.Paused = nil, 0, false
	return u.Drafter.Propose(history, room)
}

func (u *unpriced) Reads() bool {
	r, ok := u.Drafter.(speculate.RowReader)
	return ok && r.Reads()
}

func (u *unpriced) ReadRows(row func(int) []float32) {
	if r, ok := u.Drafter.(speculate.RowReader); ok {
		r.ReadRows(row)
	}
}

func (u *unpriced) Chain(run speculate.ChainRun) {
	if c, ok := u.Drafter.(speculate.Chainer); ok {
		c.Chain(run)
	}
}
