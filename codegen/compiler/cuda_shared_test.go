package compiler

import (
	"encoding/binary"
	"encoding/json"
	"math"
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
	likeInterpreter(t, oneLayer(t, 12288, vocabulary, nil), Options{Quant: "q8_b32", Target: "cuda-emu"}, 4e-2, emulatedModel)
}

// oneLayer is a folder with a model of one layer that is otherwise as small as possible.
// If head is not nil, the matrix of the logits has its weights.
func oneLayer(t *testing.T, hidden, vocab int, head func(row, col int) float32) string {
	t.Helper()
	const width, inner, layer = 16, 32, "model.layers.0."
	config, err := json.Marshal(map[string]any{
		"model_type": "llama", "hidden_size": hidden, "intermediate_size": inner, "num_hidden_layers": 1, "num_attention_heads": 1,
		"num_key_value_heads": 1, "head_dim": width, "vocab_size": vocab, "max_position_embeddings": 64, "rms_norm_eps": 1e-5,
		"hidden_act": "silu", "rope_theta": 10000, "tie_word_embeddings": head == nil,
	})
	if err != nil {
		t.Fatal(err)
	}
	shapes := map[string][]int{
		"model.embed_tokens.weight": {vocab, hidden}, "model.norm.weight": {hidden},
		layer + "input_layernorm.weight": {hidden}, layer + "post_attention_layernorm.weight": {hidden},
		layer + "self_attn.q_proj.weight": {width, hidden}, layer + "self_attn.k_proj.weight": {width, hidden},
		layer + "self_attn.v_proj.weight": {width, hidden}, layer + "self_attn.o_proj.weight": {hidden, width},
		layer + "mlp.gate_proj.weight": {inner, hidden}, layer + "mlp.up_proj.weight": {inner, hidden}, layer + "mlp.down_proj.weight": {hidden, inner},
	}
	if head != nil {
		shapes["lm_head.weight"] = []int{vocab, hidden}
	}
	tensors := randomTensors(t, shapes)
	if head != nil { // the first tensor by name, behind the header and its length
		data := tensors[8+binary.LittleEndian.Uint64(tensors):]
		for i := range vocab * hidden {
			binary.LittleEndian.PutUint32(data[4*i:], math.Float32bits(head(i/hidden, i%hidden)))
		}
	}
	dir := t.TempDir()
	for name, data := range map[string][]byte{"config.json": config, "model.safetensors": tensors, "expected.json": []byte(`{"ids": [1, 7, 3]}`)} {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}
