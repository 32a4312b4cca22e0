package spec

import (
	"flag"
	"fmt"
	"math"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// resolved opens a tiny model.
func resolved(t *testing.T, dir string, opt Options) (*Model, *checkpoint.Set) {
	t.Helper()
	s, err := Load(dir, opt)
	if err != nil {
		t.Fatal(err)
	}
	set, err := s.OpenWeights()
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { set.Close() })
	m, err := Resolve(s, HeadersOf(set))
	if err != nil {
		t.Fatal(err)
	}
	return m, set
}

// TestAdapterNames checks the names of the matrices of tiny models in GGUF files.
func TestAdapterNames(t *testing.T) {
	t.Parallel()
	for family, want := range map[string]map[string]string{
		"llama": {
			"model.layers.1.self_attn.q_proj.weight": "blk.1.attn_q permuted",
			"model.layers.1.self_attn.k_proj.weight": "blk.1.attn_k permuted",
			"model.layers.0.self_attn.v_proj.weight": "blk.0.attn_v",
			"model.layers.0.self_attn.o_proj.weight": "blk.0.attn_output",
			"model.layers.0.mlp.gate_proj.weight":    "blk.0.ffn_gate",
			"model.layers.0.mlp.down_proj.weight":    "blk.0.ffn_down",
			"model.layers.0.input_layernorm.weight":  "",
			"model.embed_tokens.weight":              "",
			"lm_head.weight":                         "output",
		},
		"qwen2": {
			"model.layers.1.self_attn.q_proj.weight": "blk.1.attn_q",
			"model.layers.1.self_attn.k_proj.weight": "blk.1.attn_k",
		},
		"gpt2": {
			"transformer.h.0.attn.c_attn.weight": "blk.0.attn_qkv",
			"transformer.h.0.attn.c_proj.weight": "blk.0.attn_output",
			"transformer.h.0.mlp.c_fc.weight":    "blk.0.ffn_up",
			"transformer.h.0.mlp.c_proj.weight":  "blk.0.ffn_down",
		},
		"phi3": {
			"model.layers.0.self_attn.qkv_proj.weight": "blk.0.attn_qkv",
			"model.layers.0.mlp.gate_up_proj.weight":   "blk.0.ffn_up",
		},
		"bert": {
			"encoder.layer.0.attention.self.query.weight":   "blk.0.attn_q",
			"encoder.layer.1.attention.output.dense.weight": "blk.1.attn_output",
			"encoder.layer.1.output.dense.weight":           "blk.1.ffn_down",
		},
		"mixtral": {
			"model.layers.0.self_attn.k_proj.weight":              "blk.0.attn_k permuted",
			"model.layers.0.block_sparse_moe.gate.weight":         "blk.0.ffn_gate_inp",
			"model.layers.0.block_sparse_moe.experts.0.w1.weight": "",
		},
		"gpt_neox": {"gpt_neox.layers.0.attention.query_key_value.weight": ""}, // grouped by head, in GGUF not
	} {
		m, set := resolved(t, filepath.Join("testdata/families", family), Options{})
		names := m.AdapterNames()
		for name, text := range want {
			var got []string
			for _, a := range names[name] {
				if a.Row(1, set.Tensors()[0].Shape[0]) != 1 {
					a.Name += " permuted"
				}
				got = append(got, a.Name)
			}
			if _, ok := set.Lookup(name); !ok || strings.Join(got, ", ") != text {
				t.Errorf("%s: %s (stored: %v): %q, want %q", family, name, ok, got, text)
			}
		}
	}
}

// TestAliasRow compares the order of rows with the transform that inverts the permutation
// of GGUF files.
func TestAliasRow(t *testing.T) {
	t.Parallel()
	const heads, rows = 3, 24
	toHalves, toNeighbors := Alias{heads: heads, toHalves: true}, Alias{heads: heads}
	for halves := range rows {
		head, in := halves/8, halves%8
		neighbors := head*8 + in%4*2 + in/4
		if toHalves.Row(neighbors, rows) != halves || toNeighbors.Row(halves, rows) != neighbors || (Alias{}).Row(halves, rows) != halves {
			t.Errorf("row %d of halves is row %d of neighbors", halves, neighbors)
		}
	}
}

var pairsDir = flag.String("pairs", "", "folder with NAME.gguf for folders NAME of testdata/families")

// TestAdapterNamesAgree compares matrices of models that are stored in both formats.
func TestAdapterNamesAgree(t *testing.T) {
	t.Parallel()
	files, err := filepath.Glob("testdata/gguf/*/model.gguf")
	if *pairsDir != "" {
		files, err = filepath.Glob(filepath.Join(*pairsDir, "*.gguf"))
	}
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	compared := 0
	for _, file := range files {
		name := strings.TrimSuffix(filepath.Base(file), ".gguf")
		if name == "model" {
			name = filepath.Base(filepath.Dir(file))
		}
		if dir := filepath.Join("testdata/families", name); isDir(dir) {
			compared += compareFormats(t, dir, file)
			compared += compareFormats(t, file, dir)
		}
	}
	if compared < 100 {
		t.Errorf("%d matrices of %d files compared", compared, len(files))
	}
}

func isDir(dir string) bool {
	found, _ := filepath.Glob(filepath.Join(dir, "model*.safetensors"))
	return len(found) > 0
}

// compareFormats compares the matrices of a model with those under their other names in
// another, and returns how many are equal.
func compareFormats(t *testing.T, from, to string) (equal int) {
	m, own := resolved(t, from, Options{})
	_, other := resolved(t, to, Options{})
	var names []string
	for _, info := range other.Tensors() {
		names = append(names, strings.TrimSuffix(info.Name, ".weight"))
	}
	find := lora.NewNames(names)
	for stored, aliases := range m.AdapterNames() {
		for _, a := range aliases {
			name, err := find.Find(a.Name)
			if err != nil {
				continue
			}
			info, _ := other.Lookup(name + ".weight")
			x, y := rowsOf(t, own, stored, false), rowsOf(t, other, info.Name, false)
			if len(x) != len(y) {
				x = rowsOf(t, own, stored, true)
			}
			if err := sameRows(x, y, a); err != nil {
				t.Errorf("%s %s and %s %s: %v", from, stored, to, info.Name, err)
			}
			equal++
		}
	}
	none := []string{
		"falcon_h1",        // its factors are in the GGUF file's matrices
		"mamba2_biased",    // has no attention
		"deepseek_v4_yarn", // has other projections
	}
	if equal == 0 && !slices.ContainsFunc(none, func(s string) bool { return strings.Contains(from, s) }) {
		t.Errorf("%s: none of its matrices is found in %s", from, to)
	}
	return equal
}

func sameRows(x, y [][]float32, a Alias) error {
	if len(x) != len(y) {
		return fmt.Errorf("%d and %d rows", len(x), len(y))
	}
	for r := range x {
		for c, v := range y[a.Row(r, len(x))] {
			if math.Abs(float64(v-x[r][c])) > 0.02 {
				return fmt.Errorf("row %d differs", r)
			}
		}
	}
	return nil
}

func rowsOf(t *testing.T, set *checkpoint.Set, name string, transposed bool) [][]float32 {
	t.Helper()
	info, _ := set.Lookup(name)
	all, err := set.Float32(name)
	if err != nil || len(info.Shape) != 2 || info.DType == tensor.Invalid {
		t.Fatalf("%s: %v %v", name, info, err)
	}
	rows := slices.Collect(slices.Chunk(all, info.Shape[1]))
	if !transposed {
		return rows
	}
	out := make([][]float32, info.Shape[1])
	for _, r := range rows {
		for c, v := range r {
			out[c] = append(out[c], v)
		}
	}
	return out
}
