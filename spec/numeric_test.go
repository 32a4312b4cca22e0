package spec

import (
	"encoding/json"
	"flag"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

var familyDir = flag.String("families", "testdata/families", "folder of model folders with an expected.json, as made by testdata/families/make.py")

// An expected.json holds the inputs of a run and the results of transformers.
type expected struct {
	IDs        []int       // token ids; the source tokens of an encoder-decoder
	Types      []int       // token types
	Wanted     []int       // output rows of an encoder: tokens with logits, pooled and classes
	DecoderIDs []int       `json:"decoder_ids"`
	Logits     [][]float64 // of the last tokens; for an encoder, of its output rows
	Hidden     [][]float64 // last hidden states of an encoder's last tokens
	Pooled     [][]float64
	Classes    [][]float64
	Embedding  [][]float64 // pooled and transformed by dense layers
	Greedy     []int       // greedy continuation of the ids
	Whole      bool        // prefill the ids in one step
	Attention  string      // attention implementation of transformers: sdpa or eager
}

// TestFamilies lowers tiny models of each family and compares the
// interpreter's results with those of Hugging Face transformers.
func TestFamilies(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(*familyDir, "*", "expected.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no models in %s: %v", *familyDir, err)
	}
	for _, file := range dirs {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			newRunner(t, dir).graphs(readExpected(t, dir))
		})
	}
}

// TestGraphs does the same for models with a graph in their model spec.
func TestGraphs(t *testing.T) {
	t.Parallel()
	testSpecs(t, "testdata/graphs/*.yaml")
}

// TestCombinations does the same for combinations of modules that no published model
// has. The expected results are those of testdata/combinations/make.py.
func TestCombinations(t *testing.T) {
	t.Parallel()
	testSpecs(t, "testdata/combinations/*.yaml")
}

// TestGGUF does the same for GGUF files that llama.cpp's converter made of some of these
// models, or with its names and keys; see tools/gen/reference/hybrid_gguf.py,
// shared_state_gguf.py and encoder_gguf.py.
func TestGGUF(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/gguf/*/model.gguf")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, file := range files {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			newRunner(t, dir).graphs(readExpected(t, dir))
		})
	}
}

// testSpecs compares the models of the model specs that match.
func testSpecs(t *testing.T, specs string) {
	t.Helper()
	files, err := filepath.Glob(specs)
	if err != nil || len(files) == 0 {
		t.Fatalf("no model specs: %v", err)
	}
	for _, file := range files {
		t.Run(filepath.Base(file), func(t *testing.T) {
			t.Parallel()
			want := readExpected(t, strings.TrimSuffix(file, ".yaml"))
			newRunner(t, file).decoder(want.IDs, want)
		})
	}
}

func readExpected(t testing.TB, dir string) expected {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want expected
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	return want
}

// A runner interprets the model of a folder.
type runner struct {
	t      *testing.T
	dir    string // of the model
	mod    *ir.Module
	stored interp.Source
	values interp.Weights
	states *interp.States
}

func newRunner(t *testing.T, dir string) *runner {
	t.Helper()
	m, set := resolved(t, dir, Options{Quant: "f32"})
	mod, err := Lower(m)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(mod); err != nil {
		t.Fatal(err)
	}
	stored := storedTensors(set)
	return &runner{t, dir, mod, stored, interp.NewWeights(mod, stored), interp.NewStates()}
}

func (r *runner) run(graph string, s *interp.Step) map[string][]float64 {
	r.t.Helper()
	named, err := runGraph(r.mod, graph, s, r.values, r.states)
	if err != nil {
		r.t.Fatal(err)
	}
	return named
}

// runGraph returns a graph's results by name.
func runGraph(m *ir.Module, graph string, s *interp.Step, w interp.Weights, states *interp.States) (map[string][]float64, error) {
	out, err := interp.Run(m, graph, s, w, states)
	if err != nil {
		return nil, err
	}
	named := map[string][]float64{}
	for i, v := range m.Graph(graph).Body.Yield {
		named[v.Name] = out[i].F
	}
	return named, nil
}

// graphs runs an encoder, a decoder, or both.
func (r *runner) graphs(want expected) {
	r.t.Helper()
	if r.mod.Graph("encode") == nil {
		r.decoder(want.IDs, want)
		return
	}
	r.encoder(want)
	if want.DecoderIDs != nil {
		r.decoder(want.DecoderIDs, want)
	}
}

// decoder prefills the ids in two halves and compares the logits of the last
// positions, then the greedy continuation.
func (r *runner) decoder(ids []int, want expected) {
	r.t.Helper()
	half, last := len(ids)/2, max(1, len(want.Logits))
	if want.Whole {
		half = 0
	}
	outRows := make([]int, last)
	for i := range outRows {
		outRows[i] = len(ids) - half - last + i
	}
	if half > 0 {
		r.run("decode", &interp.Step{IDs: ids[:half]})
	}
	all := r.run("decode", &interp.Step{IDs: ids[half:], OutRows: outRows})
	for name, rows := range map[string][][]float64{"classes": want.Classes, "embedding": want.Embedding} {
		if rows != nil && want.DecoderIDs == nil {
			compare(r.t, name, all[name], rows)
		}
	}
	out := all["logits"]
	if want.Logits != nil {
		compare(r.t, "logits", out, want.Logits)
	}
	if len(want.Greedy) == 0 || len(want.Logits) == 0 {
		return
	}
	vocab := len(want.Logits[0])
	out = append(out[(last-1)*vocab:], r.run("decode", &interp.Step{IDs: want.Greedy[:len(want.Greedy)-1]})["logits"]...)
	for i, id := range want.Greedy {
		row := out[i*vocab : (i+1)*vocab]
		if best := slices.Index(row, slices.Max(row)); best != id {
			r.t.Errorf("token %d: have %d, want %d", i, best, id)
		}
	}
}

func (r *runner) encoder(want expected) {
	r.t.Helper()
	out := r.run("encode", &interp.Step{IDs: want.IDs, Types: want.Types, OutRows: want.Wanted})
	if want.Hidden != nil {
		n := len(want.Hidden) * len(want.Hidden[0])
		compare(r.t, "hidden", out["hidden"][max(0, len(out["hidden"])-n):], want.Hidden)
	}
	for name, rows := range map[string][][]float64{"logits": want.Logits, "pooled": want.Pooled, "classes": want.Classes, "embedding": want.Embedding} {
		if rows != nil && (want.DecoderIDs == nil || name != "logits") {
			compare(r.t, name, out[name], rows)
		}
	}
}

func storedTensors(set *checkpoint.Set) interp.Source {
	return func(name string) (*tensor.Tensor, error) {
		values, err := set.Float32(name)
		if err != nil {
			return nil, err
		}
		info, _ := set.Lookup(name)
		out := tensor.New(info.DType, info.Shape...)
		for i, x := range values {
			out.F[i] = float64(x)
		}
		return out, nil
	}
}

func compare(t *testing.T, name string, got []float64, want [][]float64) {
	t.Helper()
	worst, largest, n := 0.0, 0.0, 0
	for _, row := range want {
		for _, w := range row {
			if n >= len(got) {
				t.Fatalf("%s: have %d values, want more", name, len(got))
			}
			worst, largest = math.Max(worst, math.Abs(got[n]-w)), math.Max(largest, math.Abs(w))
			n++
		}
	}
	if n != len(got) {
		t.Fatalf("%s: have %d values, want %d", name, len(got), n)
	}
	if limit := 1e-4 + 1e-4*largest; !(worst <= limit) {
		t.Errorf("%s: differ by %.2e from transformers, want at most %.2e", name, worst, limit)
	}
}

// TestRoundTrip prints the model spec derived from each model's folder, parses it
// and checks that the lowered module is the same.
func TestRoundTrip(t *testing.T) {
	dirs, err := filepath.Glob(filepath.Join(*familyDir, "*", "config.json"))
	if err != nil || len(dirs) == 0 {
		t.Fatalf("no models in %s: %v", *familyDir, err)
	}
	lower := func(t *testing.T, s *Spec) string {
		t.Helper()
		set, err := s.OpenWeights()
		if err != nil {
			t.Fatal(err)
		}
		defer set.Close()
		m, err := Resolve(s, HeadersOf(set))
		if err != nil {
			t.Fatal(err)
		}
		mod, err := Lower(m)
		if err != nil {
			t.Fatal(err)
		}
		return mod.String()
	}
	for _, file := range irtest.Sample(t, 70, dirs) {
		dir := filepath.Dir(file)
		t.Run(filepath.Base(dir), func(t *testing.T) {
			t.Parallel()
			s, err := Load(dir, Options{})
			if err != nil {
				t.Fatal(err)
			}
			y, err := s.YAML()
			if err != nil {
				t.Fatal(err)
			}
			printed := filepath.Join(t.TempDir(), "printed.yaml")
			if err := os.WriteFile(printed, y, 0o600); err != nil {
				t.Fatal(err)
			}
			back, err := Load(printed, Options{ModelDir: dir})
			if err != nil {
				t.Fatalf("%v\n%s", err, y)
			}
			if d := cmp.Diff(lower(t, s), lower(t, back)); d != "" {
				t.Errorf("the printed model spec lowers to something else:\n%s\n%s", d, y)
			}
		})
	}
}
