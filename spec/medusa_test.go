package spec

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

// medusaSpec loads a model spec of the tiny Llama with Medusa heads.
func medusaSpec(t *testing.T, section string) (*Spec, error) {
	t.Helper()
	dir, err := filepath.Abs("testdata/medusa")
	if err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "m.yaml")
	text := "iflow: 1\nmodel_dir: " + filepath.Join(dir, "../families/llama") + "\nmedusa:\n" + strings.ReplaceAll(section, "DIR", dir)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return Load(file, Options{Quant: "f32"})
}

// medusaModule resolves and lowers the model spec of medusaSpec.
func medusaModule(t *testing.T, section string) (*Model, *ir.Module, interp.Source, error) {
	t.Helper()
	s, err := medusaSpec(t, section)
	if err != nil {
		return nil, nil, nil, err
	}
	set, err := s.OpenWeights()
	if err != nil {
		return nil, nil, nil, err
	}
	t.Cleanup(func() { set.Close() })
	m, err := Resolve(s, HeadersOf(set))
	if err != nil {
		return nil, nil, nil, err
	}
	mod, err := Lower(m)
	if err != nil {
		return nil, nil, nil, err
	}
	return m, mod, storedTensors(set), ir.Verify(mod)
}

// TestMedusaHeads compares the logits of the heads with those of torch, for own
// output matrices from a pickle and for the model's matrix, whole and cut.
func TestMedusaHeads(t *testing.T) {
	raw, err := os.ReadFile("testdata/medusa/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var want struct {
		IDs                 []int
		Own, Shared, Square [][][]float64 // [head][row][token]
	}
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	for _, c := range []struct {
		name, section  string
		want           [][][]float64
		heads, columns int
		slices         bool
	}{
		{"own", "  file: DIR/own.pt\n", want.Own, 2, 40, false},
		{"own, the first head", "  {file: DIR/own.pt, heads: 1}\n", want.Own, 1, 40, false},
		{"shared", "  file: DIR/shared.safetensors\n", want.Shared, 3, 40, false},
		{"square", "  {file: DIR/square.safetensors, vocab: 32}\n", want.Square, 2, 32, true},
		{"shared, 32 tokens", "  {file: DIR/shared.safetensors, vocab: 30}\n", want.Shared, 3, 32, true},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, mod, src, err := medusaModule(t, c.section)
			if err != nil {
				t.Fatal(err)
			}
			if m.Medusa.Heads != c.heads || m.Medusa.Columns != c.columns {
				t.Fatalf("%d heads of %d tokens, want %d of %d", m.Medusa.Heads, m.Medusa.Columns, c.heads, c.columns)
			}
			if y := mod.Graph("medusa").Body.Yield[0].Op; c.slices != (y.Def.Name == "matmul" && y.Int("slices") > 1) {
				t.Errorf("op %s; a matmul of slices: want %v", y.Def.Name, c.slices)
			}
			last := mod.Graphs[len(mod.Graphs)-1]
			if last.Name != "decode" {
				t.Errorf("the last graph is %s", last.Name)
			}
			w := interp.NewWeights(mod, src)
			n := len(want.IDs)
			decoded, err := interp.Run(mod, "decode", &interp.Step{IDs: want.IDs}, w, nil)
			if err != nil {
				t.Fatal(err)
			}
			step := &interp.Step{Pos: make([]int, n), OutRows: []int{n - 2, n - 1}, Extra: map[string]*tensor.Tensor{"hidden": decoded[1]}}
			out, err := interp.Run(mod, "medusa", step, w, nil)
			if err != nil {
				t.Fatal(err)
			}
			checkHeads(t, out[0], c.want[:c.heads], c.columns)
		})
	}
}

// TestMedusaGolden compares the printed module of a model with heads with a golden file.
func TestMedusaGolden(t *testing.T) {
	_, mod, _, err := medusaModule(t, "  {file: DIR/square.safetensors, vocab: 32}\n")
	if err != nil {
		t.Fatal(err)
	}
	const file = "testdata/medusa/square.ir"
	if *update {
		if err := os.WriteFile(file, []byte(mod.String()), 0o600); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), mod.String()); diff != "" {
		t.Error(diff)
	}
}

func checkHeads(t *testing.T, got *tensor.Tensor, want [][][]float64, columns int) {
	t.Helper()
	if got.Shape[1] != len(want)*columns {
		t.Fatalf("%v for %d heads of %d", got.Shape, len(want), columns)
	}
	for i, rows := range want {
		for r, row := range rows {
			for k := range columns {
				if x := got.F[(r*len(want)+i)*columns+k]; math.Abs(x-row[k]) > 2e-4 {
					t.Fatalf("head %d, row %d, token %d: %g, want %g", i, r, k, x, row[k])
				}
			}
		}
	}
}

// TestMedusaRefuses checks that each mistake is reported in one line with its fix.
func TestMedusaRefuses(t *testing.T) {
	for section, want := range map[string]string{
		"  file: DIR/none.pt\n":                             "medusa.file: no ",
		"  file: DIR/make.py\n":                             "medusa.file: ",
		"  {file: DIR/own.pt, heads: 3}\n":                  "medusa.heads: have 3, but the checkpoint has 2",
		"  {file: DIR/own.pt, heads: 99}\n":                 "medusa.heads: want a number from 1 to 16",
		"  {file: DIR/own.pt, vocab: 16}\n":                 "medusa.vocab: the checkpoint has matrices of its own",
		"  {file: DIR/shared.safetensors, lm_head: own}\n":  "medusa.lm_head: have own, but the checkpoint has no tensor 0.2.weight",
		"  {heads: 2}\n":                                    "no tensor 0.0.linear.weight",
		"  {file: DIR/../families/opt/model.safetensors}\n": "no tensor 0.0.linear.weight",
		"  {file: DIR/own.pt, posterior_threshold: 2}\n":    "medusa.posterior_threshold: want a probability",
		"  {file: DIR/own.pt, choices: [1, 7, 6, 5]}\n":     "medusa.choices: ",
		"  {file: DIR/own.pt, choices: vicuna}\n":           "medusa.choices: ",
		"  {file: DIR/own.pt, choices: [[0], [0, 0, 0]]}\n": "medusa.choices: ",
		"  {file: DIR/own.pt, choices: [[0], [0, 0], [0]]}": "medusa.choices: ",
	} {
		_, _, _, err := medusaModule(t, section)
		if err == nil || !strings.Contains(err.Error(), want) || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: have %v, want %s", section, err, want)
		}
	}
}

// A lacking is headers in which one tensor has another type, or is missing.
type lacking struct {
	Headers
	name string
	typ  tensor.DType // tensor.Invalid: missing
}

func (h lacking) Lookup(name string) (tensor.DType, []int, bool) {
	dt, shape, ok := h.Headers.Lookup(name)
	if name == h.name {
		return h.typ, shape, h.typ != tensor.Invalid
	}
	return dt, shape, ok
}

// TestMedusaLacks checks that a bias that is missing, and a matrix of integers, are errors.
func TestMedusaLacks(t *testing.T) {
	s, err := medusaSpec(t, "  file: DIR/own.pt\n")
	if err != nil {
		t.Fatal(err)
	}
	set, err := s.OpenWeights()
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	for name, typ := range map[string]tensor.DType{"0.0.linear.bias": tensor.Invalid, "0.0.linear.weight": tensor.I32} {
		err := resolvedAndLowered(s, lacking{HeadersOf(set), joinedHeads + name, typ})
		if want := "no tensor " + strconv.Quote(name) + " of numbers"; err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
