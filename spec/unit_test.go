package spec

import (
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/models"
)

// TestInferflowLanguage parses the model specs of Inferflow.
func TestInferflowLanguage(t *testing.T) {
	files, err := filepath.Glob("testdata/inferflow/*.json")
	if err != nil || len(files) == 0 {
		t.Fatalf("no files: %v", err)
	}
	for _, f := range files {
		src, err := os.ReadFile(f)
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Parse(f, src, nil, Options{}); err != nil {
			t.Errorf("%v", err)
		}
	}
}

// TestLibrary parses every model spec of the library and every family, without files.
func TestLibrary(t *testing.T) {
	for _, name := range models.Names() {
		src, err := models.Lookup(name)
		if err != nil {
			t.Fatal(err)
		}
		s, err := Parse(name+".yaml", src, nil, Options{})
		if err != nil {
			t.Errorf("%v", err)
			continue
		}
		if s.Name != name {
			t.Errorf("%s.yaml: name is %q", name, s.Name)
		}
	}
	for name := range families() {
		if name == "generic" {
			continue
		}
		if _, err := Parse("f.yaml", []byte("iflow: 1\nfamily: "+name+"\n"), nil, Options{}); err != nil {
			t.Errorf("family %s: %v", name, err)
		}
	}
}

func TestDevices(t *testing.T) {
	for in, want := range map[string]string{"auto": "", " auto ": "", "auto: 8xh100": "8xh100"} {
		if machine, ok := AutoDevices(in); !ok || machine != want {
			t.Errorf("%q: machine %q, %v", in, machine, ok)
		}
	}
	if _, ok := AutoDevices("0;1"); ok {
		t.Error("0;1 is automatic")
	}
	for in, want := range map[string]string{
		"0": "0", "0;1": "0;1", "0,1": "0;1", "0&1;2&3": "0&1;2&3", "0|1": "0&1", "cpu; 0": "cpu;0", "0*2;1": "0*2;1",
	} {
		p, err := ParseDevices(in)
		if err != nil || p.String() != want {
			t.Errorf("%q: have %v, %v, want %s", in, p, err, want)
		}
	}
	for in, want := range map[string]string{
		"": "column 1", "0;": "column 3", "0 1": "column 3", "gpu0": "column 1", "0;1&0": "column 5: device 0 is listed twice", "0*0": "share 0",
	} {
		if _, err := ParseDevices(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have error %v, want %s", in, err, want)
		}
	}
}

func TestPattern(t *testing.T) {
	for _, c := range []struct {
		pattern, name string
		i, j          int
		ok            bool
	}{
		{"layers.{i}.mlp.experts.{j}.w1", "layers.12.mlp.experts.3.w1", 12, 3, true},
		{"layers.{i}.w", "layers.1.w2", -1, -1, false},
		{"layers.{i}.w", "layers.x.w", -1, -1, false},
		{"layers.{i}.w", "layers.01.w", -1, -1, false},
		{"layers.{i}.w", "layers.99999999999999.w", -1, -1, false},
		{"embed", "embed", -1, -1, true},
	} {
		p, err := ParsePattern(c.pattern)
		if err != nil {
			t.Fatal(err)
		}
		i, j, ok := p.Match(c.name)
		if ok != c.ok || ok && (i != c.i || j != c.j) {
			t.Errorf("%s on %s: have %d %d %v", c.pattern, c.name, i, j, ok)
		}
		if ok && p.Name(i, j) != c.name {
			t.Errorf("%s: name %s", c.pattern, p.Name(i, j))
		}
	}
	for in, want := range map[string]string{"": "", "a.{k}": "column 4", "a.{i": "column 5", "a}": "column 2", "a b": "column 2"} {
		if _, err := ParsePattern(in); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: have error %v, want %s", in, err, want)
		}
	}
}

func TestExpressions(t *testing.T) {
	c := map[string]any{"a": 4.0, "b": nil, "m": map[string]any{"x": 2}, "act": "gelu", "l": []any{"x"}}
	for src, want := range map[string]any{
		"$a": 4.0, "$b": nil, "$b | 7": 7.0, "$b | $m.x": 2.0, "= 1 / sqrt($a)": 0.5, "= ($a + 2) * 3 - 1": 17.0, "act($act)": "gelu_erf",
		"act($none | silu)": "silu", "$none.x": nil, "= 1 / $none": nil, "$l": []any{"x"}, "= int(7 / 2)": 3.0, "$none | true": true,
	} {
		x, err := evalExpr(src, c)
		if err != nil || !cmp.Equal(x, want) {
			t.Errorf("%s: have %v, %v, want %v", src, x, err, want)
		}
	}
	for _, src := range []string{"= 1 / 0", "act(strange)", "$l + 1", "f($a)", "$", "= 1 +"} {
		if x, err := evalExpr(src, c); err == nil {
			t.Errorf("%s: have %v, want an error", src, x)
		}
	}
}

// TestRopeScaling compares frequencies with the formulas of transformers, computed
// by hand for exact values.
func TestRopeScaling(t *testing.T) {
	m := newModel(&Spec{Config: map[string]any{}})
	m.sizes["dec"] = map[string]any{"max_context": 256}
	set := func(scaling map[string]any) *ir.Op {
		t.Helper()
		m.Net.Params, m.Spec.Config["rope_scaling"] = map[string]any{}, scaling
		for key, v := range scaling {
			m.Net.Params["rope_scaling."+key] = v
		}
		l := newLowerer(m)
		h, tokens := moduleHost{l}, &ir.Dim{Name: "T", Role: "tokens"}
		if err := h.Graph("decode", []*ir.Dim{tokens}); err != nil {
			t.Fatal(err)
		}
		pos, err := h.Input("pos", ir.Type{Elem: tensor.I32, Shape: []ir.Size{{Dim: tokens}}})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := l.call("rotations", "dec", []any{pos, []any{false, 8}}); err != nil {
			t.Fatal(err)
		}
		return l.t.Body.Ops[0]
	}
	near := func(name string, got []float64, want ...float64) {
		t.Helper()
		for i := range want {
			if i >= len(got) || math.Abs(got[i]/want[i]-1) > 1e-6 {
				t.Errorf("%s: have %v, want %v", name, got, want)
				return
			}
		}
	}
	near("base", []float64{set(nil).Float("theta")}, 10000)
	near("linear", set(map[string]any{"type": "linear", "factor": 4}).Floats("freqs"), 0.25, 0.025, 0.0025, 0.00025)
	// Wavelengths 6.28, 62.8, 628, 6283 against 256/4 = 64 and 256/1: the
	// first two are kept, the last two are divided.
	near("llama3", set(map[string]any{"rope_type": "llama3", "factor": 8, "low_freq_factor": 1, "high_freq_factor": 4, "original_max_position_embeddings": 256}).Floats("freqs"), 1, 0.1, 0.00125, 0.000125)
	long := set(map[string]any{"rope_type": "longrope", "short_factor": []float64{1, 1, 1, 2}, "long_factor": []float64{2, 2, 2, 4}, "original_max_position_embeddings": 64})
	near("longrope short", long.Floats("freqs"), 1, 0.1, 0.01, 0.0005)
	near("longrope long", long.Floats("long_freqs"), 0.5, 0.05, 0.005, 0.00025)
	near("longrope scale", []float64{long.Float("scale"), float64(long.Int("long_from"))}, math.Sqrt(1+math.Log(4)/math.Log(64)), 64)
	yarn := set(map[string]any{"rope_type": "yarn", "factor": 4, "original_max_position_embeddings": 64})
	near("yarn scale", []float64{yarn.Float("scale")}, 0.1*math.Log(4)+1)
	near("yarn", []float64{yarn.Floats("freqs")[0], yarn.Floats("freqs")[3]}, 1, 0.00025) // the first kept, the last divided by 4
	m.headers = fixedValues{nil, []float32{1, 2, 4, 8}}
	m.tensors["rope_divisors.weight"] = Tensor{File: "rope_freqs.weight", Shape: []int{4}}
	near("factors", set(nil).Floats("freqs"), 1, 0.05, 0.0025, 0.000125)
}

// fixedValues are headers of tensors with the same values.
type fixedValues struct {
	Headers
	values []float32
}

func (v fixedValues) Float32(string) ([]float32, error) { return v.values, nil }

func TestGGUFConfig(t *testing.T) {
	c := ggufConfig(map[string]any{
		"general.architecture": "llama", "llama.embedding_length": uint32(64), "llama.attention.layer_norm_rms_epsilon": float32(1e-5),
		"llama.rope.scaling.type": "yarn", "llama.rope.scaling.factor": float32(4), "tokenizer.ggml.tokens": []string{"a", "b"},
		"tokenizer.ggml.eos_token_id": uint32(2),
	})
	want := map[string]any{
		"model_file_format": "gguf", "tie_word_embeddings": false, "model_type": "llama", "hidden_size": 64.0, "rms_norm_eps": 1e-5, "vocab_size": 2.0, "eos_token_id": 2.0,
		"rope_scaling": map[string]any{"rope_type": "yarn", "factor": 4.0},
	}
	if d := cmp.Diff(want, c); d != "" {
		t.Error(d)
	}
}

// TestWeightTypes checks that exceptions match weights by each of their names.
func TestWeightTypes(t *testing.T) {
	get := func(types string) ([]WeightType, error) {
		t.Helper()
		s, err := Parse("spec.yaml", []byte(small+"types: "+types+"\n"), nil, Options{})
		if err != nil {
			t.Fatal(err)
		}
		m, err := Resolve(s, parseHeaders(t, smallHeaders+"lm_head.weight f32 100 64\n"))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := Lower(m); err != nil {
			t.Fatal(err)
		}
		return m.WeightTypes()
	}
	got, err := get(`{"dec.{i}.self_attn.wv": q8, output.weight: f16, ffn_w2: q4, "w[qk]": q6}`)
	if err != nil {
		t.Fatal(err)
	}
	want := []WeightType{{"wv", tensor.Q8B32T2}, {"head", tensor.F16}, {"w_down", tensor.Q4TB32}, {"wk", tensor.Q6TB32}, {"wq", tensor.Q6TB32}}
	if d := cmp.Diff(want, got); d != "" {
		t.Errorf("-want +got:\n%s", d)
	}
	if _, err := get(`{w_dwon: q8}`); err == nil || !strings.Contains(err.Error(), `spec.yaml:6:9: types: no weight matches "w_dwon"; did you mean "w_down"?`) {
		t.Errorf("have error %v", err)
	}
}

// TestLoadForms loads a model spec in each supported form.
func TestLoadForms(t *testing.T) {
	dir := t.TempDir()
	write := func(name, text string) {
		t.Helper()
		if err := os.WriteFile(filepath.Join(dir, name), []byte(text), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), "not a model folder") {
		t.Errorf("empty folder: %v", err)
	}
	write("config.json", `{"model_type": "llama", "hidden_size": 64, "num_hidden_layers": 2, "num_attention_heads": 4, "vocab_size": 10}`)
	write("spec.yaml", "iflow: 1\nnetwork_structure: {rope_theta: 5}\n")
	s, err := Load(dir, Options{Quant: "q8", KV: "f32", MaxContext: 77})
	if err != nil || s.Network.word("normalization_function") != "rms" || s.Quant != tensor.Q8B32T2 || s.KVType != tensor.F32 || s.MaxContextLen != 77 {
		t.Errorf("folder: %v %+v", err, s)
	}
	s, err = Load(filepath.Join(dir, "spec.yaml"), Options{})
	if err != nil || s.Network.Params["rope_theta"] != 5.0 || s.ModelDir != dir || s.Network.Type != "decoder_only" {
		t.Errorf("model spec beside config.json: %v %+v", err, s)
	}
	if _, err = Load(dir, Options{Quant: "q9"}); err == nil || !strings.Contains(err.Error(), `--quant: have "q9"`) {
		t.Errorf("--quant: %v", err)
	}
	if _, err = Load(filepath.Join(dir, "gone.yaml"), Options{}); err == nil || !strings.Contains(err.Error(), "no such file") {
		t.Errorf("missing: %v", err)
	}
	for name, pull := range map[string]bool{"acme/tiny": true, "acme/Tiny-0.6B": true, "gone/model.safetensors": false, "gone/spec.yml": false, "gone/model.GGUF": false} {
		if _, err := Load(name, Options{}); err == nil || strings.Contains(err.Error(), "iflowc pull") != pull {
			t.Errorf("missing %s: %v", name, err)
		}
	}
	write("config.json", `{"model_type": "lama"}`)
	if _, err = Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), `unknown architecture "lama"; did you mean "llama"?`) {
		t.Errorf("architecture: %v", err)
	}
	write("config.json", `{`)
	if _, err = Load(dir, Options{}); err == nil || !strings.Contains(err.Error(), "not a JSON object") {
		t.Errorf("broken config.json: %v", err)
	}
}
