package tokenizerfile

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

type slowFile struct {
	Texts   []string
	Models  map[string][]byte
	Folders []slowFolder
}

type slowFolder struct {
	Name, Model, File string
	Files             map[string]string
	Size              int
	IDs               [][]int32
	Decoded, Skipped  []string
	Pair, Types       []int32
}

// TestSlow checks folders without tokenizer.json that state only a class against
// the results of transformers (generate_slow.py).
func TestSlow(t *testing.T) { checkSlow(t, "testdata/slow.json") }

// TestTiktoken does the same for files of tiktoken and tekken, with the results of
// tiktoken and mistral-common (generate_tiktoken.py).
func TestTiktoken(t *testing.T) { checkSlow(t, "testdata/tiktoken.json") }

func checkSlow(t *testing.T, path string) {
	t.Parallel()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var golden slowFile
	if err := json.Unmarshal(data, &golden); err != nil || len(golden.Folders) == 0 {
		t.Fatalf("%d folders: %v", len(golden.Folders), err)
	}
	for _, f := range golden.Folders {
		t.Run(f.Name, func(t *testing.T) {
			t.Parallel()
			files := Files{f.File: golden.Models[f.Model]}
			for name, text := range f.Files {
				files[name] = []byte(text)
			}
			tok, err := Load(files)
			if err != nil {
				t.Fatal(err)
			}
			f.check(t, tok, golden.Texts)
			stored, err := tok.Marshal()
			if err != nil {
				t.Fatal(err)
			}
			if tok, err = tokenizer.Unmarshal(string(stored)); err != nil {
				t.Fatal(err)
			}
			f.check(t, tok, golden.Texts)
		})
	}
}

func (f *slowFolder) check(t *testing.T, tok *tokenizer.Tokenizer, texts []string) {
	t.Helper()
	if tok.Size() != f.Size {
		t.Errorf("Size() = %d, want %d", tok.Size(), f.Size)
	}
	for i, text := range texts {
		if f.IDs[i] == nil {
			continue
		}
		if got := tok.Encode(text, true); !slices.Equal(got, f.IDs[i]) {
			t.Errorf("Encode(%q) = %v, want %v", text, got, f.IDs[i])
		}
		if got := tok.Decode(f.IDs[i], false); got != f.Decoded[i] {
			t.Errorf("Decode(%v, false) = %q, want %q", f.IDs[i], got, f.Decoded[i])
		}
		if got := tok.Decode(f.IDs[i], true); got != f.Skipped[i] {
			t.Errorf("Decode(%v, true) = %q, want %q", f.IDs[i], got, f.Skipped[i])
		}
	}
	if f.Pair == nil {
		return
	}
	ids, types, err := tok.EncodePair(texts[1], texts[2], tokenizer.PairLimit{})
	if err != nil || !slices.Equal(ids, f.Pair) || f.Types != nil && !slices.Equal(types, f.Types) {
		t.Errorf("EncodePair = %v %v (%v), want %v %v", ids, types, err, f.Pair, f.Types)
	}
}

// TestRefusedClasses checks that unsupported SentencePiece models are errors that
// name the class and the fix.
func TestRefusedClasses(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/models/m2m100/sentencepiece.bpe.model")
	if err != nil {
		t.Fatal(err)
	}
	cases := []struct{ name, file, config, want string }{
		{"class named", "spiece.model", `{"tokenizer_class":"XLNetTokenizerFast"}`, "XLNetTokenizer cannot be read"},
		{"model type", "sentencepiece.bpe.model", `{"model_type":"xglm"}`, "XGLMTokenizer cannot be read"},
		{"nothing said", "sentencepiece.bpe.model", `{}`, "tokenizer_class"},
		{"no language", "sentencepiece.bpe.model", `{"model_type":"mbart"}`, `"qq_QQ" (lang) is not in the vocabulary`},
	}
	for _, c := range cases {
		files := Files{c.file: data, "config.json": []byte(c.config)}
		if strings.Contains(c.config, "mbart") {
			files["tokenizer_config.json"] = []byte(`{"src_lang":"qq_QQ"}`)
		}
		_, err := Load(files)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s: %v, want an error with %q", c.name, err, c.want)
		}
	}
}

// TestNamedByModel checks that vocab.json and merges.txt with only a config.json
// result in the same tokenizer as the full configuration.
func TestNamedByModel(t *testing.T) {
	t.Parallel()
	for folder, model := range map[string]string{"gpt2-files": "gpt2", "roberta-files": "roberta"} {
		files := readFolder(t, "testdata/models/"+folder)
		tok, err := Load(Files{
			"vocab.json": files["vocab.json"], "merges.txt": files["merges.txt"],
			"config.json": []byte(`{"model_type":"` + model + `"}`),
		})
		if err != nil {
			t.Fatal(err)
		}
		checkCases(t, tok, readExpected(t, "testdata/models/"+folder).Tokenizer.Cases)
	}
}

// TestSpecialTokensMap checks that special_tokens_map.json takes precedence over a
// tokenizer_config.json without added_tokens_decoder.
func TestSpecialTokensMap(t *testing.T) {
	t.Parallel()
	const vocab = "[UNK]\n[CLS]\n[SEP]\n<cls>\na\n"
	tok, err := Load(Files{
		"vocab.txt":               []byte(vocab),
		"tokenizer_config.json":   []byte(`{"tokenizer_class":"BertTokenizer","cls_token":"[CLS]","unk_token":"[UNK]"}`),
		"special_tokens_map.json": []byte(`{"cls_token":"<cls>"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := tok.Encode("a", true), []int32{3, 4, 2}; !slices.Equal(got, want) {
		t.Errorf("got %v, want %v", got, want)
	}
}
