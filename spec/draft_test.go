package spec

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// draftCases are the folders of testdata/draft, with the section draft of each.
var draftCases = map[string]string{
	"deepseek_v3": "{kind: mtp}", "deepseek_v32": "{kind: mtp}", "glm4_moe": "{}", "glm4_moe_gguf": "{kind: mtp}", "qwen3_next": "{kind: mtp}", "qwen3_5": "{kind: mtp}",
	"eagle3": "{file: head}", "eagle3_wide": "{kind: eagle3, file: head}",
}

// A draftReference is an expected.json of testdata/draft. A row holds the logits and the
// state of a draft layer: those of token 0, of the token in the middle, then those of the
// last token and of each drafted one but the last.
type draftReference struct {
	IDs    []int
	Tokens []int // drafted in a row after IDs
	Rows   [][]float64
}

// TestDraftLayers compares draft layers with a float64 reference: on all tokens at once,
// and applied to their own states.
func TestDraftLayers(t *testing.T) {
	for name, section := range draftCases {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			dir, err := filepath.Abs("testdata/draft/" + name)
			if err != nil {
				t.Fatal(err)
			}
			checkDraftLayer(t, dir, section)
		})
	}
	variants, err := filepath.Glob(os.Getenv("IFLOWC_DRAFTS") + "/*/section") // of tools/gen/reference/draft_variants.py
	if err != nil {
		t.Fatal(err)
	}
	for _, file := range variants {
		t.Run(filepath.Base(filepath.Dir(file)), func(t *testing.T) {
			t.Parallel()
			section, err := os.ReadFile(file)
			if err != nil {
				t.Fatal(err)
			}
			checkDraftLayer(t, filepath.Dir(file), string(section))
		})
	}
}

// TestDraftFamily lowers a model with the head of another family: its layer has the modules of its own.
func TestDraftFamily(t *testing.T) {
	t.Parallel()
	dir, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	if err := lowers(draftSpec(t, dir+"/families/diffllama", "{file: "+dir+"/draft/eagle3/head}")); err != nil {
		t.Error(err)
	}
}

// draftSpec writes a model spec of a folder with a section draft.
func draftSpec(t *testing.T, dir, section string) string {
	t.Helper()
	file := filepath.Join(t.TempDir(), "m.yaml")
	if err := os.WriteFile(file, []byte("iflow: 1\nmodel_dir: "+dir+"\nquant: f32\ndraft: "+section+"\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	return file
}

func checkDraftLayer(t *testing.T, dir, section string) {
	t.Helper()
	raw, err := os.ReadFile(filepath.Join(dir, "expected.json"))
	if err != nil {
		t.Fatal(err)
	}
	var want draftReference
	if err := json.Unmarshal(raw, &want); err != nil {
		t.Fatal(err)
	}
	mod, set, err := draftModule(t, draftSpec(t, dir, section))
	if err != nil {
		t.Fatal(err)
	}
	w, states := interp.NewWeights(mod, storedTensors(set)), interp.NewStates()
	decode := mod.Graph("decode")
	out, err := interp.Run(mod, "decode", &interp.Step{IDs: want.IDs}, w, nil)
	if err != nil {
		t.Fatal(err)
	}
	features, n := out[decode.Output("features")], len(want.IDs)
	follow := append(append([]int(nil), want.IDs[1:]...), want.Tokens[0])
	rows, err := interp.Run(mod, "medusa", &interp.Step{IDs: follow, OutRows: []int{0, n / 2, n - 1}, Extra: map[string]*tensor.Tensor{"features": features}}, w, states)
	if err != nil {
		t.Fatal(err)
	}
	cols, width := rows[0].Shape[1], features.Shape[1]
	got := rows[0].F
	for i, token := range want.Tokens[1:] {
		state := tensor.New(tensor.F32, 1, width)
		copy(state.F, got[len(got)-width:])
		rows, err = interp.Run(mod, "medusa", &interp.Step{IDs: []int{token}, Pos: []int{n + i}, OutRows: []int{0}, Extra: map[string]*tensor.Tensor{"features": state}}, w, states)
		if err != nil {
			t.Fatal(err)
		}
		got = append(got, rows[0].F...)
	}
	if len(got) != cols*len(want.Rows) {
		t.Fatalf("%d rows of %d columns, want %d rows", len(got)/cols, cols, len(want.Rows))
	}
	for i, row := range want.Rows {
		for k, x := range row {
			if math.Abs(got[i*cols+k]-x) > 2e-4 {
				t.Fatalf("row %d, column %d of %d: %g, want %g", i, k, cols, got[i*cols+k], x)
			}
		}
	}
}

func draftModule(t *testing.T, file string) (*ir.Module, *checkpoint.Set, error) {
	t.Helper()
	s, err := Load(file, Options{})
	if err != nil {
		return nil, nil, err
	}
	set, err := s.OpenWeights()
	if err != nil {
		return nil, nil, err
	}
	t.Cleanup(func() { set.Close() })
	m, err := Resolve(s, HeadersOf(set))
	if err != nil {
		return nil, nil, err
	}
	mod, err := Lower(m)
	if err != nil {
		return nil, nil, err
	}
	return mod, set, ir.Verify(mod)
}

// TestDraftRefuses checks the errors for sections that do not fit the files.
func TestDraftRefuses(t *testing.T) {
	for _, c := range []struct{ dir, section, want string }{
		{"draft/deepseek_v3", "{kind: mtp, file: head}", "draft.file: a layer for multi-token prediction is in the model's own files"},
		{"draft/deepseek_v3", "{tokens: 99}", "draft.tokens: want a number from 1 to 64"},
		{"draft/eagle3", "{kind: eagle3}", "want file"},
		{"draft/eagle3", "{kind: mtp}", "no tensor model.layers.7.eh_proj.weight, and no mtp.fc.weight"},
		{"draft/eagle3", "{file: elsewhere}", "draft.file: "},
		{"draft/eagle3", "{file: head, layers: [1, 2]}", "want [24, 48] (features_width 24)"},
		{"draft/eagle3", "{file: head, layers: [1, 2, 8]}", "want layers from 0 to 7"},
		{"draft/eagle3", "{file: head}\nmedusa: {file: x.pt}", "the model spec has a section draft too"},
		{"families/qwen3_next", "{}", "the files have no layer for multi-token prediction"},
		{"families/t5", "{}", "a draft layer needs a decoder-only model"},
	} {
		dir, err := filepath.Abs("testdata/" + c.dir)
		if err != nil {
			t.Fatal(err)
		}
		if _, _, err := draftModule(t, draftSpec(t, dir, c.section)); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s %s: %v, want %q", c.dir, c.section, err, c.want)
		}
	}
}
