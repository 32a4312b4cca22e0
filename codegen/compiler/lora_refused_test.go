package compiler

import (
	"os"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
)

// refusedAdapters are adapters of spec/testdata/lora/refused, and words of the reasons
// why they cannot be used.
var refusedAdapters = map[string]string{
	// By adapter_config.json.
	"activated":       "alora_invocation_tokens",
	"dora":            "use_dora",
	"experts":         "target_parameters",
	"lora_bias":       "lora_bias",
	"modules_to_save": "modules_to_save",
	"new_tokens":      "trainable_token_indices",
	"olora":           `init_lora_weights is "olora"`,
	"pissa":           `init_lora_weights is "pissa"`,
	"qalora":          "use_qalora",
	"replicated":      "layer_replication",
	"ia3":             `peft_type is "IA3"`,
	"loha":            `peft_type is "LOHA"`,
	"vera":            `peft_type is "VERA"`,
	"no_type":         `peft_type is ""`,
	"text_rank":       "r of type int",
	"negative_rank":   "rank is -2",
	"rank_of_config":  "rank is 4",
	"config_cut":      "unexpected end of JSON",
	"no_config":       "no adapter_config.json",

	// By adapter_model.safetensors.
	"bias":           ".bias",
	"embedding":      "embed_tokens",
	"magnitude":      "DoRA",
	"stranger":       "model.norm.weight",
	"rank_300":       "at most 256",
	"ranks_differ":   "different ranks",
	"vector":         "shape [32]",
	"only_a":         "only one of the matrices",
	"only_b":         "only one of the matrices",
	"empty":          "no LoRA matrices",
	"integers":       "is i8",
	"infinite":       "is not finite",
	"infinite_alpha": "is not finite",
	"nan":            "is not finite",
	"model_cut":      "truncated",
	"no_model":       "no adapter_model.safetensors",

	// By the model.
	"inputs":         "17 inputs",
	"outputs":        "24 outputs",
	"no_such_layer":  `"model.layers.2.self_attn.q_proj"`,
	"no_such_module": `"model.layers.0.self_attn.query"`,
	"norm":           `"model.layers.0.input_layernorm"`,
}

// TestRefusedAdapters: every adapter of the folder is refused, for the right reason.
func TestRefusedAdapters(t *testing.T) {
	t.Parallel()
	p, err := generate(loraModels+"llama", Options{Quant: "f32"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	man := &p.whole.CPU.Manifest
	folders, err := os.ReadDir(loraData + "refused")
	if err != nil || len(folders) != len(refusedAdapters) {
		t.Fatalf("%d folders, want %d: %v", len(folders), len(refusedAdapters), err)
	}
	for name, want := range refusedAdapters {
		a, err := lora.Open(loraData + "refused/" + name)
		if err == nil {
			_, err = a.Pack(man.Sites, man.RowOrders)
		}
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), name) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}
