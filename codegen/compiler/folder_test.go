package compiler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// sideFiles are the files of a model folder that say how to use the model, each with a
// content that makes sense.
var sideFiles = [][2]string{
	{"generation_config.json", `{"eos_token_id": [1, 2], "temperature": 0.7, "top_k": 40, "suppress_tokens": [3]}`},
	{"tokenizer.json", `{"model": {"type": "BPE", "vocab": {"a": 0, "b": 1, "ab": 2}, "merges": ["a b"]}}`},
	{"tokenizer_config.json", `{"chat_template": [{"name": "default", "template": "{{ messages }}"}, {"name": "tool_use", "template": "x"}], "tokenizer_class": "GPT2Tokenizer"}`},
	{"chat_template.jinja", `{% for m in messages %}{{ m.content }}{% endfor %}`},
	{"special_tokens_map.json", `{"bos_token": "a", "eos_token": {"content": "b"}}`},
	{"added_tokens.json", `{"c": 3}`},
	{"vocab.json", `{"a": 0, "b": 1}`},
	{"vocab.txt", "a\nb\n"},
	{"tokenizer.model", "\n\x08\n\x01a\x15\x00\x00\x00\x00"},
	{"modules.json", `[{"idx": 0, "path": "1_Pooling", "type": "sentence_transformers.models.Pooling"}]`},
	{"config_sentence_transformers.json", `{"prompts": {"query": "q: "}, "default_prompt_name": "query"}`},
	{"sentence_bert_config.json", `{"max_seq_length": 9, "do_lower_case": true}`},
	{"1_Pooling/config.json", `{"pooling_mode_cls_token": true}`},
	{"additional_chat_templates/tool_use.jinja", `{{ tools }}`},
	{"imatrix.gguf", "GGUF"},
}

// FuzzModelFolder opens model folders as compile does, with any config.json and any contents
// of one other file, and describes the model.
func FuzzModelFolder(f *testing.F) {
	families := []string{"llama", "bert", "t5"}
	for i, name := range families {
		config, err := os.ReadFile(filepath.Join("../../spec/testdata/families", name, "config.json"))
		if err != nil {
			f.Fatal(err)
		}
		for kind, side := range sideFiles {
			f.Add(uint8(i), config, uint8(kind), []byte(side[1]))
		}
	}
	f.Fuzz(func(t *testing.T, family uint8, config []byte, kind uint8, data []byte) {
		files := map[string][]byte{"config.json": config, "modules.json": []byte(sideFiles[9][1])}
		side := sideFiles[int(kind)%len(sideFiles)][0]
		files[side] = data
		dir := hostiletest.Folder(t, files)
		weights, err := filepath.Abs(filepath.Join("../../spec/testdata/families", families[int(family)%len(families)], "model.safetensors"))
		if err == nil {
			err = os.Symlink(weights, filepath.Join(dir, "model.safetensors"))
		}
		if err != nil {
			t.Fatal(err)
		}
		opt := Options{}
		if side == "imatrix.gguf" {
			opt.Importance = filepath.Join(dir, side)
		}
		_ = hostiletest.Read(t, len(config)+len(data), func() error { return describe(t, dir, opt) })
	})
}

// describe opens a model folder, reads its weights, and describes the model, as a binary's manifest has it.
func describe(t *testing.T, dir string, opt Options) error {
	m, err := Open(t.Context(), dir, opt)
	if err != nil {
		return err
	}
	defer m.Close()
	for _, i := range m.set.Tensors() { // merged with an adapter
		if _, err := m.set.Float32(i.Name); err != nil {
			return err
		}
	}
	tok, _, err := m.tokenizer()
	if err == nil {
		m.identify(&manifest.Manifest{}, tok)
	}
	return err
}

// FuzzAddition opens models with an addition: an EAGLE-3 head, a LoRA adapter to merge, or
// Medusa heads, of any configuration and weights.
func FuzzAddition(f *testing.F) {
	read := func(path string) []byte {
		data, err := os.ReadFile(filepath.Join("../../spec/testdata", path))
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	bases := []string{"draft/eagle3", "families/llama", "families/llama"}
	f.Add(uint8(0), read("draft/eagle3/head/config.json"), read("draft/eagle3/head/model.safetensors"))
	f.Add(uint8(1), read("lora/llama/layer/adapter_config.json"), read("lora/llama/layer/adapter_model.safetensors"))
	f.Add(uint8(2), []byte(`{"medusa_accuracy": [[0.5, 0.2], [0.3, 0.1]], "medusa_tokens": [1, 2, 3]}`), read("medusa/square.safetensors"))
	f.Add(uint8(2), []byte(`{}`), read("medusa/own.pt"))
	f.Fuzz(func(t *testing.T, kind uint8, config, weights []byte) {
		base := bases[int(kind)%len(bases)]
		ground, err := os.ReadFile(filepath.Join("../../spec/testdata", base, "config.json"))
		if err != nil {
			t.Fatal(err)
		}
		dir := hostiletest.Folder(t, map[string][]byte{"config.json": ground, "m.yaml": []byte("model_dir: .\nmedusa: {file: more/heads}\n"),
			"more/config.json": config, "more/model.safetensors": weights, "more/heads": weights, "more/adapter_config.json": config, "more/adapter_model.safetensors": weights})
		stored, err := filepath.Abs(filepath.Join("../../spec/testdata", base, "model.safetensors"))
		if err == nil {
			err = os.Symlink(stored, filepath.Join(dir, "model.safetensors"))
		}
		if err != nil {
			t.Fatal(err)
		}
		path, opt := dir, Options{}
		switch int(kind) % len(bases) {
		case 0:
			opt.DraftHead = filepath.Join(dir, "more")
		case 1:
			opt.MergeLoRA = filepath.Join(dir, "more")
		case 2:
			path = filepath.Join(dir, "m.yaml")
		}
		_ = hostiletest.Read(t, len(config)+4*len(weights), func() error { return describe(t, path, opt) })
	})
}
