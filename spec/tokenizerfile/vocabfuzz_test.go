package tokenizerfile

import (
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// FuzzVocabulary loads vocabularies with one token per line, with ids and merges,
// and llama2.c's; these formats have no checksums or trusted counts.
func FuzzVocabulary(f *testing.F) {
	read := func(path string) []byte {
		data, err := os.ReadFile(filepath.Join("testdata/models", path))
		if err != nil {
			f.Fatal(err)
		}
		return data
	}
	f.Add(read("wordpiece-files/vocab.txt"), read("wordpiece-files/tokenizer_config.json"))
	f.Add([]byte(`{"<unk>":0,"a":1,"b":2,"ab":3,"Ġa":4}`), []byte("#version: 0.2\na b\nĠ a\n"))
	f.Add([]byte(`{"</s>":0,"<unk>":1,"▁a":2}`), read("marian/source.spm"))
	f.Add(binary.LittleEndian.AppendUint32(nil, 3), []byte(`{"<s>": null}`))
	f.Add(append(binary.LittleEndian.AppendUint32(nil, 2), "\x00\x00\x80?\x02\x00\x00\x00ab\x00\x00\x00\x00\x01\x00\x00\x00c"...), []byte("{}"))
	f.Fuzz(func(t *testing.T, vocab, more []byte) {
		for _, files := range []Files{
			{"vocab.txt": vocab, "tokenizer_config.json": more},
			{"vocab.json": vocab, "merges.txt": more},
			{"vocab.json": vocab, "merges.txt": []byte("a b\n"), "special_tokens_map.json": more},
			{"vocab.json": vocab, "source.spm": more},
		} {
			loadHostile(t, files)
		}
		useHostile(t, len(vocab)+len(more), func() (*tokenizer.Tokenizer, error) { return FromLlama2C(vocab, len(more)) })
	})
}

// FuzzGGUFVocabulary loads the vocabulary of a GGUF file's metadata.
func FuzzGGUFVocabulary(f *testing.F) {
	for _, model := range []string{"gpt2", "llama", "bert", "t5"} {
		f.Add(model, "<unk>\n<s>\n▁a\nb\nab\n<0x41>", "a b\nĠ a", "\x02\x03\x01\x01\x01\x06", "default")
	}
	f.Fuzz(func(t *testing.T, model, tokens, merges, types, pre string) {
		list := strings.Split(tokens, "\n")
		kinds, scores := make([]int32, len(types)), make([]float32, len(types))
		for i := range types {
			kinds[i], scores[i] = int32(int8(types[i])), -float32(i)
		}
		meta := map[string]any{
			"tokenizer.ggml.model": model, "tokenizer.ggml.pre": pre, "tokenizer.ggml.tokens": list,
			"tokenizer.ggml.merges": strings.Split(merges, "\n"), "tokenizer.ggml.token_type": kinds, "tokenizer.ggml.scores": scores,
			"tokenizer.ggml.bos_token_id": uint32(len(merges)), "tokenizer.ggml.eos_token_id": uint32(1),
		}
		useHostile(t, len(model)+len(tokens)+len(merges)+len(types)+len(pre), func() (*tokenizer.Tokenizer, error) { return FromGGUF(meta) })
	})
}
