package compiler

import (
	"encoding/json"
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
)

// TestEmulatedWideRow: a model whose kernels need 48 KB of shared memory for a row, and
// some more for variables of fixed size. Neither is too much alone.
func TestEmulatedWideRow(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	likeInterpreter(t, wideLlama(t, 12288), Options{Quant: "q8_b32", Target: "cuda-emu"}, 4e-2, emulatedModel)
}

// wideLlama is a folder with a model that has rows of the given width and is otherwise
// as small as possible.
func wideLlama(t *testing.T, hidden int) string {
	t.Helper()
	const head, inner, layer = 16, 32, "model.layers.0."
	dir := t.TempDir()
	config, err := json.Marshal(map[string]any{
		"model_type": "llama", "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": 1, "num_attention_heads": 1,
		"num_key_value_heads": 1, "head_dim": head, "vocab_size": vocabulary, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
		"hidden_act": "silu", "rope_theta": 10000, "tie_word_embeddings": true,
	})
	if err != nil {
		t.Fatal(err)
	}
	tensors := randomTensors(t, map[string][]int{
		"model.embed_tokens.weight": {vocabulary, hidden}, "model.norm.weight": {hidden},
		layer + "input_layernorm.weight": {hidden}, layer + "post_attention_layernorm.weight": {hidden},
		layer + "self_attn.q_proj.weight": {head, hidden}, layer + "self_attn.k_proj.weight": {head, hidden},
		layer + "self_attn.v_proj.weight": {head, hidden}, layer + "self_attn.o_proj.weight": {hidden, head},
		layer + "mlp.gate_proj.weight": {inner, hidden}, layer + "mlp.up_proj.weight": {inner, hidden}, layer + "mlp.down_proj.weight": {hidden, inner},
	})
	for name, data := range map[string][]byte{"config.json": config, "model.safetensors": tensors, "expected.json": []byte(`{"ids": [1, 7, 3]}`)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
