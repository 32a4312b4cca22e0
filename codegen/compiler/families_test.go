package compiler

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/spec"
)

// TestCompiledFamilies: what is compiled computes what the interpreter does,
// for the tiny models of spec/testdata, whose results its tests compare with
// transformers, and for their variants.
func TestCompiledFamilies(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	models := familyModels(t)
	for _, name := range irtest.Sample(t, 2, slices.Sorted(maps.Keys(models))) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			likeInterpreter(t, models[name], Options{Quant: "f32"}, 1e-4, loaded)
		})
	}
}

// familyModels are the paths of the tiny models of spec/testdata and of their
// variants, by name.
func familyModels(t *testing.T) map[string]string {
	t.Helper()
	folders, err := filepath.Glob("../../spec/testdata/families/*/expected.json")
	if err != nil || len(folders) == 0 {
		t.Fatalf("no models: %v", err)
	}
	variants, err := filepath.Glob("../../spec/testdata/variants/*.yaml")
	if err != nil || len(variants) == 0 {
		t.Fatalf("no variants: %v", err)
	}
	models := map[string]string{}
	for _, file := range folders {
		models[filepath.Base(filepath.Dir(file))] = filepath.Dir(file)
	}
	for _, file := range variants {
		name := filepath.Base(file)
		models[name[:len(name)-len(".yaml")]] = file
	}
	return models
}

// inputs are what expected.json gives a model to read.
type inputs struct {
	IDs        []int
	Types      []int
	DecoderIDs []int `json:"decoder_ids"`
}

// likeInterpreter compares a model's results with the interpreter's, to a
// tolerance relative to 1 and the largest; load makes it ready to run on a target.
func likeInterpreter(t *testing.T, path string, opt Options, tolerance float64, load func(*testing.T, *Program) engine.Model) {
	t.Helper()
	p, err := generate(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	data, err := os.ReadFile(filepath.Join(p.Model.Spec.ModelDir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var in inputs
	if err := json.Unmarshal(data, &in); err != nil {
		t.Fatal(err)
	}
	ids, source := in.IDs, []int(nil)
	if in.DecoderIDs != nil {
		ids, source = in.DecoderIDs, in.IDs
	}
	mod := p.Module
	if opt.Quant == "f32" {
		mod = lowered(t, p.Model)
	}
	want := interpreted(t, mod, p.Model, ids, source, in.Types)
	e, err := engine.Open(load(t, p), engine.Options{MaxOutRows: 64, Context: 64, MaxTokens: 64, Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	q := engine.Query{Tokens: asInt32(ids), Source: asInt32(source), Types: asInt32(in.Types), Last: -1}
	if in.DecoderIDs != nil {
		q.Types = nil
	}
	if _, err := e.AddQuery(q); err != nil {
		t.Fatal(err)
	}
	for source != nil { // the source first
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(results) > 0 && results[0].Rows > 0 {
			sameResults(t, e, results[0], want, len(ids), tolerance)
			return
		}
	}
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != 1 {
		t.Fatal(results, err)
	}
	sameResults(t, e, results[0], want, len(ids), tolerance)
}

// lowered is the module before all passes, of weights in float32.
func lowered(t *testing.T, m *Model) *ir.Module {
	t.Helper()
	mod, err := spec.Lower(m.Model)
	if err != nil {
		t.Fatal(err)
	}
	for _, w := range mod.Weights {
		w.Type.Elem = tensor.F32 // as --quant f32 has it: what a transform computes is not rounded to the stored type
	}
	return mod
}

// interpreted gives the results of a model's module with every token an output
// row.
func interpreted(t *testing.T, mod *ir.Module, m *Model, ids, source, types []int) map[string][]float64 {
	t.Helper()
	values, states := interp.NewWeights(mod, valuesOf(m.set)), interp.NewStates()
	out := map[string][]float64{}
	for _, g := range mod.Graphs {
		step := &interp.Step{IDs: ids, Types: types}
		if g.Name == "encode" && source != nil {
			step.IDs = source
		} else if source != nil {
			step.Types = nil
		}
		for i := range step.IDs {
			step.OutRows = append(step.OutRows, i)
		}
		results, err := interp.Run(mod, g.Name, step, values, states)
		if err != nil {
			t.Fatal(err)
		}
		for i, v := range g.Body.Yield {
			out[v.OutputName()] = results[i].F
		}
	}
	return out
}

// sameResults compares each output of the graph, all of a token's rows.
func sameResults(t *testing.T, e *engine.Engine, r engine.Result, want map[string][]float64, tokens int, tolerance float64) {
	t.Helper()
	for o, out := range e.Graph().Outputs {
		expected, ok := want[out.Name]
		if !ok || len(expected)%out.Used != 0 {
			t.Fatalf("output %s: the interpreter gives %d values, rows have %d", out.Name, len(expected), out.Used)
		}
		rows := len(expected) / out.Used
		if out.Rows == "tokens" && rows != tokens {
			t.Fatalf("output %s: %d rows of %d tokens", out.Name, rows, tokens)
		}
		worst, largest := 0.0, 0.0
		for i := range rows {
			for j, x := range r.Row(o, i) {
				w := expected[i*out.Used+j]
				worst, largest = math.Max(worst, math.Abs(float64(x)-w)), math.Max(largest, math.Abs(w))
			}
		}
		if limit := tolerance * (1 + largest); !(worst <= limit) {
			t.Errorf("output %s: differs by %.2e from the interpreter, want at most %.2e", out.Name, worst, limit)
		}
	}
}

func asInt32(ids []int) []int32 {
	if ids == nil {
		return nil
	}
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = int32(id)
	}
	return out
}
