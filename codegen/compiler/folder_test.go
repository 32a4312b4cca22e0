package compiler

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/kit/hostiletest"
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

// describe opens a model folder and describes the model, as a binary's manifest has it.
func describe(t *testing.T, dir string, opt Options) error {
	m, err := Open(t.Context(), dir, opt)
	if err != nil {
		return err
	}
	defer m.Close()
	tok, _, err := m.tokenizer()
	if err == nil {
		m.identify(&manifest.Manifest{}, tok)
	}
	return err
}
