package lora

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// TestPEFT reads names, ranks and scales: PEFT's defaults, rsLoRA and patterns.
func TestPEFT(t *testing.T) {
	t.Parallel()
	all := slices.Concat(peft("model.layers.0.self_attn.q_proj", 2, 8, 8), peft("model.layers.1.self_attn.q_proj", 2, 8, 8), peft("model.layers.10.mlp.up_proj", 2, 8, 24))
	for config, want := range map[string][3]float64{
		`{"peft_type":"LORA","r":2,"lora_alpha":3}`: {1.5, 1.5, 1.5},
		`{"peft_type":"LORA","r":2}`:                {4, 4, 4},
		`{"peft_type":"LORA","r":2,"lora_alpha":3,"use_rslora":true,"lora_dropout":0.1,"bias":"none"}`:                         {3 / math.Sqrt2, 3 / math.Sqrt2, 3 / math.Sqrt2},
		`{"peft_type":"LORA","r":2,"lora_alpha":3,"alpha_pattern":{"q_proj":8,"layers.0.self_attn.q_proj":6}}`:                 {4, 4, 1.5},
		`{"peft_type":"LORA","r":2,"lora_alpha":3,"alpha_pattern":{"layers.0.self_attn.q_proj":6,"q_proj":8}}`:                 {3, 4, 1.5},
		`{"peft_type":"LORA","r":2,"lora_alpha":3,"alpha_pattern":{"^model.layers.1..*":8,"proj":6,"layers.1.*":6}}`:           {1.5, 4, 4},
		`{"peft_type":"LORA","r":9,"lora_alpha":3,"rank_pattern":{"(q|up)_proj":2},"layer_replication":null,"use_dora":false}`: {1.5, 1.5, 1.5},
		`{"peft_type":"LORA","r":2,"lora_alpha":3,"init_lora_weights":"loftq","modules_to_save":[],"megatron_config":null}`:    {1.5, 1.5, 1.5},
	} {
		a := open(t, folder(t, config, all...))
		var got [3]float64
		for i, m := range a.Matrices() {
			got[i] = m.Scale
			if m.Rank != 2 || m.In != 8 {
				t.Errorf("%s: %+v", config, m)
			}
		}
		if got != want || a.Rank() != 2 {
			t.Errorf("%s: scales %v, want %v", config, got, want)
		}
	}
}

// TestCopyOfBase ignores the copy of a model's matrix beside its adapter only.
func TestCopyOfBase(t *testing.T) {
	t.Parallel()
	pair, base := peft("lm_head", 2, 8, 8), matrix("base_model.model.lm_head.base_layer.weight", tensor.F32, 8, 8)
	if a := open(t, folder(t, plainConfig, append(pair, base)...)); len(a.Matrices()) != 1 {
		t.Errorf("%+v", a.Matrices())
	}
	wantErrors(t, map[string]string{`lm_head.base_layer.weight": not a LoRA matrix`: folder(t, plainConfig, append(peft("x.0.q", 2, 8, 8), base)...)})
}

// TestPEFTNames reads names as other versions and programs write them.
func TestPEFTNames(t *testing.T) {
	t.Parallel()
	for tensorName, want := range map[string]string{
		"base_model.model.model.layers.0.q_proj.lora_A.weight":         "model.layers.0.q_proj",
		"base_model.model.model.layers.0.q_proj.lora_B.default.weight": "model.layers.0.q_proj",
		"model.layers.0.q_proj.lora_A.weight":                          "model.layers.0.q_proj",
		"lm_head.lora_A.weight":                                        "lm_head",
		"lora_A.weight":                                                "",
		"x.lora_A.a.b.weight":                                          "",
		"x.lora_A":                                                     "",
		"":                                                             "",
		"weight":                                                       "",
	} {
		if name, isB, ok := peftName(tensorName); name != want || ok != (want != "") || isB != strings.Contains(tensorName, "lora_B") {
			t.Errorf("%q: %q, B %v, %v", tensorName, name, isB, ok)
		}
	}
}

// TestRefusedConfigs checks that settings that change the computation are refused.
func TestRefusedConfigs(t *testing.T) {
	t.Parallel()
	good := peft("model.layers.0.self_attn.q_proj", 2, 8, 8)
	dirs := map[string]string{}
	for setting, want := range map[string]string{
		`"use_dora":true`:                       "use_dora is set: DoRA",
		`"use_qalora":true`:                     "use_qalora is set",
		`"lora_bias":true`:                      "lora_bias is set",
		`"modules_to_save":["classifier"]`:      "modules_to_save is set",
		`"layer_replication":[[0,4],[2,5]]`:     "layer_replication is set",
		`"trainable_token_indices":[1,2]`:       "trainable_token_indices is set",
		`"trainable_token_indices":{"wte":[1]}`: "trainable_token_indices is set: trained",
		`"target_parameters":["experts.down"]`:  "target_parameters is set",
		`"alora_invocation_tokens":[5]`:         "alora_invocation_tokens is set",
		`"megatron_config":{"a":1}`:             "megatron_config is set",
		`"init_lora_weights":"pissa_niter_16"`:  `init_lora_weights is "pissa_niter_16"`,
		`"init_lora_weights":"OLoRA"`:           `init_lora_weights is "OLoRA"`,
		`"init_lora_weights":"corda"`:           `init_lora_weights is "corda"`,
		`"r":4`:                                 "its rank is 4",
		`"r":"2"`:                               "cannot unmarshal string",
		`"rank_pattern":{"q_proj":"2"}`:         `pattern "q_proj": want a number`,
		`"rank_pattern":{"(?=q)x":2}`:           "write the layers' names",
		`"alpha_pattern":{"(a{99}){99}":2}`:     "counted repetition",
		`"alpha_pattern":{"a":1e999}`:           "want a number",
		`"alpha_pattern":[[[[1]]]]`:             "nested",
		fmt.Sprintf(`"alpha_pattern":{"(%s)":2}`, strings.Repeat("a", 17_000)): "of more than 16 KB",
		`"rank_pattern":{"[\\pL]q":2}`:                                         "classes of Unicode",
		strings.Repeat(`"x":"`+strings.Repeat("a", 1<<20)+`",`, 5) + `"y":1`:   "larger than 4194304 bytes",
	} {
		dirs[want] = folder(t, `{"peft_type":"LORA","r":2,`+setting+`}`, good...)
	}
	dirs[`peft_type is "IA3"`] = folder(t, `{"peft_type":"IA3"}`, good...)
	dirs[`peft_type is ""`] = folder(t, `{}`, good...)
	dirs["invalid character"] = folder(t, `<html>`, good...)
	wantErrors(t, dirs)
}

// TestManyPatterns checks that the work of matching is bounded.
func TestManyPatterns(t *testing.T) {
	t.Parallel()
	var all []checkpointtest.Fixture
	for i := range 260 {
		all = append(all, peft(fmt.Sprintf("model.layers.%d.self_attn.q_proj", i), 1, 1, 1)...)
	}
	config := fmt.Sprintf(`{"peft_type":"LORA","r":1,"rank_pattern":{"(%s)":2}}`, strings.Repeat("a", 16_000))
	wantErrors(t, map[string]string{"1 patterns for 260 matrices are too many": folder(t, config, all...)})
}

// TestRefusedTensors checks that tensors that are no LoRA matrices are refused.
func TestRefusedTensors(t *testing.T) {
	t.Parallel()
	const q = "model.layers.0.self_attn.q_proj"
	good := peft(q, 2, 8, 8)
	dirs := map[string]string{}
	for want, more := range map[string][]checkpointtest.Fixture{
		"DoRA, which":                  {checkpointtest.Ramp("base_model.model."+q+".lora_magnitude_vector", 1, 8)},
		"adapters of embeddings are":   {matrix("base_model.model.model.embed_tokens.lora_embedding_A", tensor.F32, 2, 8)},
		"biases in adapters":           {checkpointtest.Ramp("base_model.model."+q+".bias", 1, 8)},
		"want names that end":          {matrix("base_model.model.score.weight", tensor.F32, 2, 8)},
		"are for the same matrix":      {matrix(q+".lora_A.other.weight", tensor.F32, 2, 8)},
		"has only one of the matrices": {matrix("lm_head.lora_A.weight", tensor.F32, 2, 8)},
		"want f32, f16, bf16, f64":     {checkpointtest.New("lm_head.lora_A.weight", tensor.I8, []int{2, 8}, make([]byte, 16)), matrix("lm_head.lora_B.weight", tensor.F32, 8, 2)},
		"want a matrix":                {checkpointtest.Ramp("conv.lora_A.weight", 1, 2, 8, 1, 1), checkpointtest.Ramp("conv.lora_B.weight", 1, 8, 2, 1, 1)},
		"want a matrix: only":          {checkpointtest.Ramp("conv.lora_A.weight", 1, 2, 0), checkpointtest.Ramp("conv.lora_B.weight", 1, 8, 2)},
		"have different ranks":         {matrix("lm_head.lora_A.weight", tensor.F32, 2, 8), matrix("lm_head.lora_B.weight", tensor.F32, 8, 3)},
	} {
		dirs[want] = folder(t, plainConfig, slices.Concat(good, more)...)
	}
	dirs["has rank 257; want at most 256"] = folder(t, `{"peft_type":"LORA","r":257}`, peft(q, 257, 1, 1)...)
	dirs["no LoRA matrices"] = folder(t, plainConfig)
	pickle := folder(t, plainConfig)
	write(t, filepath.Join(pickle, "adapter_model.bin"), []byte("PK"))
	if err := os.Remove(filepath.Join(pickle, peftWeights)); err != nil {
		t.Fatal(err)
	}
	dirs["save the adapter again with PEFT"] = pickle
	dirs["no adapter_config.json"] = t.TempDir()
	dirs["give the folder"] = filepath.Join(folder(t, plainConfig, good...), peftWeights)
	dirs["no such file"] = filepath.Join(t.TempDir(), "none")
	wantErrors(t, dirs)
}

// TestNotFinite checks that numbers that are not finite are refused, also with the scale.
func TestNotFinite(t *testing.T) {
	t.Parallel()
	for _, v := range []float32{float32(math.NaN()), float32(math.Inf(-1)), math.MaxFloat32} {
		f := checkpointtest.Ramp("x.0.q.lora_B.weight", v, 8, 2)
		a := open(t, folder(t, plainConfig, matrix("x.0.q.lora_A.weight", tensor.F32, 2, 8), f))
		if _, _, err := a.Read(0); err == nil || !strings.Contains(err.Error(), `tensor "x.0.q.lora_B.weight" has the number`) {
			t.Errorf("%v: %v", v, err)
		}
	}
}

// TestTruncated checks that a file that shrinks after Open is an error.
func TestTruncated(t *testing.T) {
	t.Parallel()
	dir := folder(t, plainConfig, peft("x.0.q", 2, 8, 8)...)
	a := open(t, dir)
	if err := os.Truncate(filepath.Join(dir, peftWeights), 300); err != nil {
		t.Fatal(err)
	}
	if _, _, err := a.Read(0); err == nil || !strings.Contains(err.Error(), "the file changed while it was read") {
		t.Errorf("error %v", err)
	}
}

// FuzzOpenPEFT opens folders with any configuration and weights.
func FuzzOpenPEFT(f *testing.F) {
	f.Add([]byte(plainConfig), checkpointtest.Safetensors(peft("model.layers.0.q_proj", 2, 8, 8)...))
	f.Add([]byte(`{"peft_type":"LORA","r":1,"rank_pattern":{"q.*":2,"k":3},"use_rslora":true}`), checkpointtest.Safetensors(matrix("a.0.q.lora_A.x.weight", tensor.F16, 2, 8), matrix("a.0.q.lora_B.x.weight", tensor.BF16, 4, 2)))
	f.Add([]byte(`{"peft_type":"LORA","init_lora_weights":"pissa","alpha_pattern":{"":1e30}}`), checkpointtest.Safetensors(peft("", 1, 1, 1)...))
	f.Add([]byte(`{"peft_type":"LORA","r":2}`), []byte{})
	f.Fuzz(func(t *testing.T, config, weights []byte) {
		fuzzAdapter(t, len(config)+len(weights), hostiletest.Folder(t, map[string][]byte{peftConfigFile: config, peftWeights: weights}))
	})
}
