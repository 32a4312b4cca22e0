// Command shapemodel writes a model folder of a given shape with weights that
// are all zero: config.json and a sparse model.safetensors, which takes no room
// on disk. Speed does not depend on what the weights are, so benchmarks of
// large models need no download.
//
//	go run ./tools/gen/shapemodel -shape 1b OUT
//	iflowc compile OUT --quant q4_b64 --context 8192 -o shaped
package main

import (
	"encoding/binary"
	"encoding/json"
	"flag"
	"fmt"
	"log"
	"os"
	"path/filepath"
)

// A shape is a Llama-like decoder's sizes.
type shape struct{ layers, width, heads, kvHeads, ffn, vocab int }

// shapes are those of published models.
var shapes = map[string]shape{
	"tiny": {2, 128, 4, 2, 384, 1024},        // for tests
	"135m": {30, 576, 9, 3, 1536, 49152},     // SmolLM2-135M
	"180m": {14, 1024, 16, 8, 2816, 16384},   // more than the caches hold, for blocks of 256 columns
	"1b":   {16, 2048, 32, 8, 8192, 128256},  // Llama-3.2-1B
	"7b":   {32, 4096, 32, 32, 11008, 32000}, // Llama-2-7B
}

func main() {
	log.SetFlags(0)
	name := flag.String("shape", "1b", "tiny, 135m, 180m, 1b, 7b, qwen3.5-0.8b or mamba2-780m")
	layers := flag.Int("layers", 0, "layers instead of the shape's")
	flag.Parse()
	h, ok := hybrids[*name]
	if s, llama := shapes[*name]; llama {
		if *layers > 0 {
			s.layers = *layers
		}
		h, ok = s.hybrid(), true
	} else if *layers > 0 && ok {
		h.config["num_hidden_layers"] = *layers
	}
	if !ok || flag.NArg() != 1 {
		log.Fatal("usage: shapemodel -shape NAME [-layers N] OUT")
	}
	if err := h.write(flag.Arg(0)); err != nil {
		log.Fatal(err)
	}
}

// hybrid returns the shape's config.json and tensors.
func (s shape) hybrid() hybrid {
	return hybrid{map[string]any{
		"architectures": []string{"LlamaForCausalLM"}, "model_type": "llama", "hidden_act": "silu", "hidden_size": s.width,
		"num_hidden_layers": s.layers, "num_attention_heads": s.heads, "num_key_value_heads": s.kvHeads,
		"intermediate_size": s.ffn, "vocab_size": s.vocab, "max_position_embeddings": 16384, "rms_norm_eps": 1e-5,
		"rope_theta": 500000.0, "tie_word_embeddings": true, "bos_token_id": 1, "eos_token_id": 2,
	}, s.tensors}
}

func (h hybrid) write(dir string) error {
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	config, err := json.MarshalIndent(h.config, "", " ")
	if err != nil {
		return err
	}
	if err := os.WriteFile(filepath.Join(dir, "config.json"), config, 0o644); err != nil {
		return err
	}
	return h.writeTensors(filepath.Join(dir, "model.safetensors"))
}

// tensors adds the names and shapes of the tensors, as in transformers.
func (s shape) tensors(_ int, add func(name string, d ...int)) {
	head := s.width / s.heads
	add("model.embed_tokens.weight", s.vocab, s.width)
	for i := range s.layers {
		p := fmt.Sprintf("model.layers.%d.", i)
		add(p+"input_layernorm.weight", s.width)
		add(p+"self_attn.q_proj.weight", s.heads*head, s.width)
		add(p+"self_attn.k_proj.weight", s.kvHeads*head, s.width)
		add(p+"self_attn.v_proj.weight", s.kvHeads*head, s.width)
		add(p+"self_attn.o_proj.weight", s.width, s.heads*head)
		add(p+"post_attention_layernorm.weight", s.width)
		add(p+"mlp.gate_proj.weight", s.ffn, s.width)
		add(p+"mlp.up_proj.weight", s.ffn, s.width)
		add(p+"mlp.down_proj.weight", s.width, s.ffn)
	}
	add("model.norm.weight", s.width)
}

// writeTensors writes the header and leaves the rest as a hole in the file.
func (h hybrid) writeTensors(path string) error {
	header := map[string]any{}
	at := 0
	h.tensors(h.config["num_hidden_layers"].(int), func(name string, dims ...int) {
		size := 2
		for _, d := range dims {
			size *= d
		}
		header[name] = map[string]any{"dtype": "F16", "shape": dims, "data_offsets": []int{at, at + size}}
		at += size
	})
	text, err := json.Marshal(header)
	if err != nil {
		return err
	}
	data := binary.LittleEndian.AppendUint64(nil, uint64(len(text)))
	if err := os.WriteFile(path, append(data, text...), 0o644); err != nil {
		return err
	}
	return os.Truncate(path, int64(len(data)+len(text)+at))
}
