package compiler

import (
	"encoding/json"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/engine"
)

const (
	loraData   = "../../spec/testdata/lora/"
	loraModels = "../../spec/testdata/families/"
)

// adaptedOutputs are what transformers computes with each adapter of a model, and
// under "" without one; spec/testdata/lora/adapters.py writes them.
type adaptedOutputs struct {
	inputs
	Wanted  []int
	Outputs map[string]map[string]json.RawMessage
}

func adaptedExpected(t *testing.T, name string) *adaptedOutputs {
	t.Helper()
	text, err := os.ReadFile(loraData + name + "/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want adaptedOutputs
	if err := json.Unmarshal(text, &want); err != nil {
		t.Fatal(err)
	}
	return &want
}

// adapters are the names of a model's adapters.
func (o *adaptedOutputs) adapters() []string {
	return slices.DeleteFunc(slices.Sorted(maps.Keys(o.Outputs)), func(name string) bool { return name == "" })
}

// query is the query whose outputs are expected.
func (o *adaptedOutputs) query(t *testing.T) engine.Query {
	t.Helper()
	q := engine.Query{Tokens: asInt32(o.IDs), Types: asInt32(o.Types), Last: max(1, len(o.rows(t, "", "logits")))}
	if o.DecoderIDs != nil {
		q.Tokens, q.Source, q.Types = asInt32(o.DecoderIDs), asInt32(o.IDs), nil
	} else if o.Wanted != nil {
		q.Last, q.Rows = 0, o.Wanted
	}
	return q
}

// rows are the expected rows of an output; nil: there are none.
func (o *adaptedOutputs) rows(t *testing.T, adapter, output string) (rows [][]float64) {
	t.Helper()
	raw, ok := o.Outputs[adapter][output]
	if !ok {
		return nil
	}
	if err := json.Unmarshal(raw, &rows); err != nil {
		t.Fatal(err)
	}
	return rows
}

// openAdapted opens an engine of a model, to be closed, and loads adapters.
func openAdapted(t *testing.T, m engine.Model, opt engine.Options, paths ...string) (*engine.Engine, []*engine.Adapter) {
	t.Helper()
	opt.AdapterBytes = 1 << 30
	e, err := engine.Open(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	var list []*engine.Adapter
	for _, path := range paths {
		a, err := lora.Open(path)
		if err != nil {
			t.Fatal(err)
		}
		x, err := e.LoadAdapter(a, 1000)
		a.Close()
		if err != nil {
			t.Fatal(err)
		}
		list = append(list, x)
	}
	return e, list
}

var loraOptions = engine.Options{MaxOutRows: 64, Context: 64, MaxTokens: 64, MaxSeqs: 8, Threads: 2}

// TestAdapters: with the adapters that PEFT saved, compiled models compute what
// transformers does.
func TestAdapters(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, name := range irtest.Sample(t, 2, adaptedModels(t)) {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			likeTransformers(t, name, loraModels+name, Options{Quant: "f32"}, loaded)
		})
	}
}

// TestAdaptersOfGGUF: the same adapters fit a GGUF file of the same model, which has
// other names and another order of rows.
func TestAdaptersOfGGUF(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	likeTransformers(t, "llama", loraData+"llama/model.gguf", Options{Quant: "f32"}, loaded)
}

// TestAdaptersOnRanks: the same on several devices, which have parts of the layers or of
// their matrices.
func TestAdaptersOnRanks(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	for _, c := range irtest.Sample(t, 1, []struct{ name, devices string }{
		{"llama", "0&1"}, {"llama", "0;1"}, {"gpt2", "0&1"}, {"qwen2", "0;1;2"}, {"phi3", "0;1"}, {"gpt_neox", "0&1"}, {"mixtral", "0&1"}, {"bert", "0&1"}, {"t5", "0&1"}, {"gemma3", "0;1"},
		{"llama", "0&1;2&3"}, {"bloom", "0&1&2&3"},
	}) {
		t.Run(c.name+" "+c.devices, func(t *testing.T) {
			t.Parallel()
			likeTransformers(t, c.name, loraModels+c.name, Options{Quant: "f32", Devices: c.devices}, loaded)
		})
	}
}

// adaptedModels are the names of the models with adapters.
func adaptedModels(t *testing.T) (names []string) {
	t.Helper()
	files, err := filepath.Glob(loraData + "*/expected.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no models: %v", err)
	}
	for _, f := range files {
		names = append(names, filepath.Base(filepath.Dir(f)))
	}
	return names
}

// likeTransformers compares a model's outputs with every adapter, and without one.
func likeTransformers(t *testing.T, name, path string, opt Options, load func(*testing.T, *Program) engine.Model) {
	t.Helper()
	p, err := generate(path, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	want := adaptedExpected(t, name)
	var paths []string
	for _, a := range want.adapters() {
		paths = append(paths, loraData+name+"/"+a)
	}
	gguf, err := filepath.Glob(loraData + name + "/*.gguf")
	if err != nil {
		t.Fatal(err)
	}
	paths = append(paths, slices.DeleteFunc(gguf, func(file string) bool { return filepath.Base(file) == "model.gguf" })...)
	e, list := openAdapted(t, load(t, p), loraOptions, paths...)
	defer e.Close()
	compareAdapted(t, e, want, "", nil)
	for i, path := range paths {
		compareAdapted(t, e, want, strings.TrimSuffix(filepath.Base(path), ".gguf"), list[i])
	}
	compareAdapted(t, e, want, "", nil)
}

// compareAdapted runs the query and compares the outputs with those of an adapter.
func compareAdapted(t *testing.T, e *engine.Engine, want *adaptedOutputs, adapter string, x *engine.Adapter) {
	t.Helper()
	q := want.query(t)
	q.Adapter = x
	r := oneResult(t, e, q)
	compared := 0
	for o, out := range e.Graph().Outputs {
		rows := want.rows(t, adapter, out.Name)
		if rows == nil || len(rows[0]) != out.Used {
			continue
		}
		at := 0
		if out.Rows == "tokens" {
			at = len(want.IDs) - len(rows)
		}
		worst, largest := 0.0, 0.0
		for i, row := range rows {
			for j, x := range r.Row(o, at+i) {
				worst, largest = math.Max(worst, math.Abs(float64(x)-row[j])), math.Max(largest, math.Abs(row[j]))
			}
		}
		if compared++; !(worst <= 1e-4*(1+largest)) {
			t.Errorf("adapter %q: %s differ by %.2e from transformers, of at most %.2f", adapter, out.Name, worst, largest)
		}
	}
	if compared == 0 {
		t.Errorf("adapter %q: no output is expected", adapter)
	}
	e.Remove(r.ID)
}

// oneResult runs one query to its result.
func oneResult(t *testing.T, e *engine.Engine, q engine.Query) engine.Result {
	t.Helper()
	if _, err := e.AddQuery(q); err != nil {
		t.Fatal(err)
	}
	for {
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(results) > 0 && results[0].Rows > 0 {
			return results[0]
		}
	}
}
