package compiler

import (
	"encoding/json"
	"errors"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// draftLayers are the models of spec/testdata/draft with their sections draft.
var draftLayers = map[string]string{
	"deepseek_v3": "kind: mtp", "deepseek_v32": "kind: mtp", "glm4_moe": "kind: mtp", "qwen3_next": "kind: mtp", "qwen3_5": "kind: mtp", "eagle3": "file: head", "eagle3_wide": "file: head",
}

var draftNames = slices.Sorted(maps.Keys(draftLayers))

// draftQuants are weight types of draft layers. The seed draws the same one in every test.
var draftQuants = []string{"q8_b32t2", "f16", "q4_b64"}

// draftReference is the part of an expected.json that a drafter sees: the last tokens' rows.
type draftReference struct {
	IDs    []int
	Tokens []int32
	Rows   [][]float64
}

// draftFile writes a spec of a model with a draft layer.
func draftFile(t *testing.T, name string) string {
	t.Helper()
	dir, err := filepath.Abs(draftFolder(name))
	if err != nil {
		t.Fatal(err)
	}
	section := "{" + draftLayers[name] + "}"
	if filepath.IsAbs(name) {
		raw, err := os.ReadFile(filepath.Join(dir, "section"))
		if err != nil {
			t.Fatal(err)
		}
		section = string(raw)
	}
	file := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(file, []byte("iflow: 1\nmodel_dir: "+dir+"\ndraft: "+section+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

// draftFolder is the folder of a model: of the test data, or the name itself.
func draftFolder(name string) string {
	if filepath.IsAbs(name) {
		return name
	}
	return "../../spec/testdata/draft/" + name
}

// draftModel compiles a model with a draft layer.
func draftModel(t *testing.T, name string, opt Options) *Program {
	t.Helper()
	p, err := generate(draftFile(t, name), opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { p.set.Close() })
	return p
}

// TestCompiledDraftLayer: a compiled draft layer computes what the reference does,
// whatever the chunks of the prompt, and changes no token.
func TestCompiledDraftLayer(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	names := irtest.Sample(t, 1, draftNames)
	variants, err := filepath.Glob(os.Getenv("IFLOWC_DRAFTS") + "/*/section") // of tools/gen/reference/draft_variants.py
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range variants {
		names = append(names, filepath.Dir(file))
	}
	for _, name := range names {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := loaded(t, draftModel(t, name, Options{Quant: "f32"}))
			for _, most := range []int{128, 5, 1} {
				draftsLikeReference(t, m, name, most)
			}
			chainChangesNothing(t, m, chainPrompts, draftedTokens)
		})
	}
}

// TestEmulatedDraftLayer: so does the CUDA target's.
func TestEmulatedDraftLayer(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, name := range irtest.Sample(t, 1, draftNames) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			m := emulatedModel(t, draftModel(t, name, Options{Quant: "f32", Target: "cuda-emu"}))
			draftsLikeReference(t, m, name, 8)
			chainChangesNothing(t, m, chainPrompts[:2], 4)
		})
	}
}

// TestSpreadDraftLayer: rank 0 of several drafts as one device does.
func TestSpreadDraftLayer(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, name := range irtest.Sample(t, 1, draftNames) {
		for _, devices := range irtest.Sample(t, 1, []string{"0;1", "0&1", "0&1;2&3"}) {
			t.Run(name+" "+devices, func(t *testing.T) {
				t.Parallel()
				m := loaded(t, draftModel(t, name, Options{Quant: "f32", Devices: devices}))
				draftsLikeReference(t, m, name, 8)
				chainChangesNothing(t, m, chainPrompts, draftedTokens)
			})
		}
	}
}

// TestQuantizedDraftLayer: drafts of layers with quantized weights change no token.
func TestQuantizedDraftLayer(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, name := range irtest.Sample(t, 1, draftNames) {
		for _, quant := range irtest.Sample(t, 1, draftQuants) {
			t.Run(name+" "+quant, func(t *testing.T) {
				t.Parallel()
				chainChangesNothing(t, loaded(t, draftModel(t, name, Options{Quant: quant})), chainPrompts, draftedTokens)
			})
		}
	}
}

// someDraftLayers runs a check on compiled models with draft layers.
func someDraftLayers(t *testing.T, quant string, check func(*testing.T, engine.Model)) {
	t.Helper()
	devicetest.NeedCompiler(t)
	for _, name := range irtest.Sample(t, 1, draftNames) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			check(t, loaded(t, draftModel(t, name, Options{Quant: quant})))
		})
	}
}

// TestDraftLayerUnderPressure: with few pages, preemption, a prefix cache and prompts in
// small chunks, sequences across pages go on as without drafts.
func TestDraftLayerUnderPressure(t *testing.T) {
	t.Parallel()
	someDraftLayers(t, "f32", func(t *testing.T, m engine.Model) {
		var prompts [][]int32
		for _, n := range []int{70, 58, 3, 66} {
			prompt := make([]int32, n)
			for i := range prompt {
				prompt[i] = int32(7*i*i+3*i+5) % 40
			}
			prompt[n-1] = int32(n % 40)
			prompts = append(prompts, prompt)
		}
		for _, o := range []engine.Options{{MaxTokens: 128}, {MaxTokens: 12, Prefix: true}, {MaxTokens: 24, Pages: 4, Prefix: true}, {MaxTokens: 24, Pages: 4}} {
			o.MaxSeqs, o.MaxOutRows, o.Context, o.Threads, o.Draft = len(prompts), 64, 128, 1, 12
			run := func(draft bool) [][]int32 {
				e, err := engine.Open(m, o)
				if err != nil {
					t.Fatal(err)
				}
				t.Cleanup(e.Close)
				first := decodeAll(t, e, m, prompts, draftedTokens, draft)
				return append(first, decodeAll(t, e, m, prompts[:2], draftedTokens, draft)...) // from the prefix cache
			}
			if got, want := run(true), run(false); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%+v: with the draft layer %v, without %v", o, got, want)
			}
		}
	})
}

// TestDraftLayerRows: after a prompt from the prefix cache, in chunks or with accepted
// drafts before, the layer says the same bits as after the prompt alone.
func TestDraftLayerRows(t *testing.T) {
	t.Parallel()
	someDraftLayers(t, irtest.Sample(t, 1, draftQuants)[0], func(t *testing.T, m engine.Model) {
		text := decodeAll(t, openMedusa(t, m, 1), m, [][]int32{{3, 1, 4, 1, 5}}, 30, false)[0]
		for len(text) < 90 {
			text = append(text, int32(len(text)*len(text)+3*len(text))%40)
		}
		want := rowsAfter(t, m, text, engine.Options{MaxTokens: 128}, 1, 7, 11, 3)
		for _, o := range []engine.Options{{MaxTokens: 7}, {MaxTokens: 128, Prefix: true}, {MaxTokens: 16, Prefix: true}} {
			if got := rowsAfter(t, m, text, o, 3, 7, 11, 3); !slices.EqualFunc(got, want, slices.Equal) {
				t.Errorf("%+v: %v, want %v", o, got, want)
			}
		}
	})
}

// TestDraftLayerAfterDrafts: after drafts of which the model accepted some, as paths of
// trees, the layer says the same bits as after the text alone.
func TestDraftLayerAfterDrafts(t *testing.T) {
	t.Parallel()
	someDraftLayers(t, irtest.Sample(t, 1, draftQuants)[0], func(t *testing.T, m engine.Model) {
		accepted := int64(0)
		for _, prompt := range [][]int32{{1, 2, 3}, {4, 5}, {9, 8, 7, 6}, {11}, {13, 21}} {
			text, rows, n := draftedRows(t, m, prompt, 70)
			accepted += n
			if want := rowsAfter(t, m, text[:len(text)-1], engine.Options{MaxTokens: 128}, 1, text[len(text)-1], 11, 3); !slices.EqualFunc(rows, want, slices.Equal) {
				t.Errorf("prompt %v: %v, want %v", prompt, rows, want)
			}
		}
		if accepted == 0 {
			t.Error("nothing was accepted")
		}
	})
}

// draftedRows continues a prompt with drafts to at least n tokens. It returns the text,
// what the layer says in three runs after it, and how many drafted tokens were accepted.
func draftedRows(t *testing.T, m engine.Model, prompt []int32, n int) ([]int32, [][]float32, int64) {
	t.Helper()
	e, err := engine.Open(m, engine.Options{MaxSeqs: 1, MaxOutRows: 64, MaxTokens: 128, Context: 128, Threads: 1, Draft: 12})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	id, err := e.AddQuery(engine.Query{Tokens: prompt, TopK: 1})
	if err != nil {
		t.Fatal(err)
	}
	history, drafter, tree := slices.Clone(prompt), speculate.NewHeads(m.Manifest.Medusa, m.Manifest.MedusaOutput()), speculate.Tree{}
	for {
		results, err := e.Infer(t.Context())
		if err != nil || len(results) != 1 {
			t.Fatal(results, err)
		}
		r := results[0]
		var step []int32
		var path []int
		for node := -1; ; path = append(path, node) {
			best := bestOf(r, node, m.Manifest.Vocab)
			history, step = append(history, best), append(step, best)
			if node = tree.Cut(r.Drafted).Child(node, best); node < 0 {
				break
			}
		}
		if len(history) >= n {
			c := &chainOf{tokens: []int32{step[len(step)-1], 11, 3}, width: e.Graph().Outputs[e.Output("medusa")].Used - m.Manifest.Medusa.Columns}
			r.Draft(c, path, step, history, 8)
			return history, c.rows, e.Stats().Accepted
		}
		tree = r.Draft(&unpriced{drafter}, path, step, history, 60).Tree
		if err := errors.Join(e.Advance(id, path, step[len(step)-1]), e.Propose(id, tree)); err != nil {
			t.Fatal(err)
		}
	}
}

// rowsAfter returns what the draft layer says of given tokens in a row after a text,
// which is computed so many times.
func rowsAfter(t *testing.T, m engine.Model, text []int32, o engine.Options, times int, tokens ...int32) [][]float32 {
	t.Helper()
	o.MaxSeqs, o.MaxOutRows, o.Context, o.Threads, o.Draft = 1, 16, 128, 1, 8
	e, err := engine.Open(m, o)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	c := &chainOf{tokens: tokens, width: e.Graph().Outputs[e.Output("medusa")].Used - m.Manifest.Medusa.Columns}
	for range times {
		id, err := e.AddQuery(engine.Query{Tokens: text})
		if err != nil {
			t.Fatal(err)
		}
		for ready := false; !ready; {
			results, err := e.Infer(t.Context())
			if err != nil || len(results) != 1 {
				t.Fatal(results, err)
			}
			if ready = results[0].Ready; ready {
				results[0].Draft(c, nil, c.tokens[:1], append(slices.Clone(text), c.tokens[0]), 8)
			}
		}
		e.Remove(id)
	}
	return c.rows
}

// draftsLikeReference computes a prompt, at most so many tokens a step, and compares
// what the draft layer says after it with the reference.
func draftsLikeReference(t *testing.T, m engine.Model, name string, most int) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(draftFolder(name), "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want draftReference
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	e, err := engine.Open(m, engine.Options{MaxSeqs: 1, MaxOutRows: 16, MaxTokens: most, Context: 64, Threads: 2, Draft: 8})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	if _, err := e.AddQuery(engine.Query{Tokens: asInt32(want.IDs)}); err != nil {
		t.Fatal(err)
	}
	rows := want.Rows[len(want.Rows)-len(want.Tokens):]
	for {
		results, err := e.Infer(t.Context())
		if err != nil || len(results) != 1 {
			t.Fatal(results, err)
		}
		if !results[0].Ready {
			continue
		}
		c := &chainOf{tokens: want.Tokens, width: len(rows[0]) - m.Manifest.Medusa.Columns}
		results[0].Draft(c, nil, want.Tokens[:1], append(asInt32(want.IDs), want.Tokens[0]), 10)
		for i, row := range rows {
			for k, x := range row {
				if got := float64(c.rows[i][k]); math.Abs(got-x) > 3e-3 {
					t.Fatalf("%d tokens a step, run %d, column %d: %g, want %g", most, i, k, got, x)
				}
			}
		}
		return
	}
}
