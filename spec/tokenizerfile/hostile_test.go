package tokenizerfile

import (
	"encoding/json"
	"maps"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// loadTestdata loads a folder of testdata/models.
func loadTestdata(t testing.TB, name string) *tokenizer.Tokenizer {
	t.Helper()
	files := Files{}
	paths, _ := filepath.Glob(filepath.Join("testdata/models", name, "*"))
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		files[filepath.Base(path)] = data
	}
	tok, err := Load(files)
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

func TestLoadErrors(t *testing.T) {
	t.Parallel()
	cases := map[string]string{
		`{`:                                 "unexpected end",
		`[]`:                                "cannot unmarshal",
		`{"model":null}`:                    `"model" is missing`,
		`{"model":{"type":"X","vocab":{}}}`: `"X" is not known`,
		`{"model":{"type":"BPE","vocab":{"a":-1}}}`:                                                                          "id -1",
		`{"model":{"type":"BPE","vocab":{"a":2000000000}}}`:                                                                  "id 2000000000",
		`{"model":{"type":"BPE","vocab":{"a":99999999999}}}`:                                                                 "cannot unmarshal",
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a b"]}}`:                                                          "not in the vocabulary",
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":["a"]}}`:                                                            "two pieces",
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":[["a"]]}}`:                                                          "two pieces",
		`{"model":{"type":"BPE","vocab":{"a":0},"merges":7}}`:                                                                "merges",
		`{"model":{"type":"WordPiece","vocab":{"a":0},"unk_token":"u"}}`:                                                     `"u" is not in`,
		`{"model":{"type":"WordPiece","vocab":{"a":0}}}`:                                                                     "unk_token is missing",
		`{"model":{"type":"Unigram","vocab":[["a"]]}}`:                                                                       "vocab[0]",
		`{"model":{"type":"Unigram","vocab":[["a","b"]]}}`:                                                                   "vocab[0]",
		`{"model":{"type":"Unigram","vocab":[["a",1]],"unk_id":7}}`:                                                          "unk_id 7",
		`{"normalizer":{"type":"N"},"model":{"type":"BPE","vocab":{}}}`:                                                      `"N" is not known`,
		`{"normalizer":{"type":"Replace"},"model":{"type":"BPE","vocab":{}}}`:                                                "pattern",
		`{"normalizer":{"type":"Precompiled","precompiled_charsmap":"/////w=="},"model":{"type":"BPE","vocab":{}}}`:          "precompiled_charsmap",
		`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"},"model":{"type":"BPE","vocab":{}}}`: "not closed",
		`{"pre_tokenizer":{"type":"Split","pattern":{"Regex":"a"},"behavior":"B"},"model":{"type":"BPE","vocab":{}}}`:        `"B" is not known`,
		`{"post_processor":{"type":"TemplateProcessing","single":[]},"model":{"type":"BPE","vocab":{}}}`:                     "no sequence",
		`{"post_processor":{"type":"BertProcessing"},"model":{"type":"BPE","vocab":{}}}`:                                     "sep and cls",
		`{"post_processor":{"type":"BertProcessing","sep":[1,2],"cls":["a",1]},"model":{"type":"BPE","vocab":{}}}`:           "cannot unmarshal",
		`{"decoder":{"type":"Strip","content":"ab"},"model":{"type":"BPE","vocab":{}}}`:                                      "one character",
	}
	for text, want := range cases {
		_, err := Load(Files{"tokenizer.json": []byte(text)})
		if err == nil || !strings.Contains(err.Error(), want) || !strings.Contains(err.Error(), "tokenizer.json") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v, want one line with %q", text, err, want)
		}
	}
	deep := strings.Repeat(`{"type":"Sequence","normalizers":[`, 50) + strings.Repeat("]}", 50)
	if _, err := Load(Files{"tokenizer.json": []byte(`{"normalizer":` + deep + `,"model":{"type":"BPE","vocab":{}}}`)}); err == nil {
		t.Error("deeply nested normalizer: want an error")
	}
	if _, err := Load(Files{"config.json": []byte("{}")}); err == nil || !strings.Contains(err.Error(), "config.json") {
		t.Errorf("no tokenizer file: error %v should list the files", err)
	}
}

func TestGGUFErrors(t *testing.T) {
	t.Parallel()
	good := map[string]any{
		"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2",
		"tokenizer.ggml.tokens": []string{"a", "b", "ab"}, "tokenizer.ggml.merges": []string{"a b"},
	}
	if tok, err := FromGGUF(good); err != nil || !slices.Equal(tok.Encode("abb", true), []int32{2, 1}) {
		t.Fatalf("small vocabulary: %v", err)
	}
	for key, value := range map[string]any{
		"tokenizer.ggml.model": "x", "tokenizer.ggml.pre": "x", "tokenizer.ggml.tokens": 5, "tokenizer.ggml.merges": []any{"a", 1},
		"tokenizer.ggml.scores": []float32{1}, "tokenizer.ggml.token_type": []any{"a"}, "tokenizer.ggml.bos_token_id": "x",
		"tokenizer.chat_template": 1, "tokenizer.ggml.add_bos_token": "yes",
	} {
		bad := maps.Clone(good)
		bad[key] = value
		if key == "tokenizer.ggml.add_bos_token" {
			bad["tokenizer.ggml.bos_token_id"] = uint32(0)
		}
		if _, err := FromGGUF(bad); err == nil || !strings.Contains(err.Error(), key) {
			t.Errorf("%s = %v: error %v, want one that names the key", key, value, err)
		}
	}
}

func TestUnknownIDs(t *testing.T) {
	t.Parallel()
	tok := loadTestdata(t, "byte-level")
	if got := tok.Decode([]int32{-1, 1 << 30, int32(tok.Size())}, false); got != "" {
		t.Errorf("unknown ids decode to %q", got)
	}
	if tok.Token(-5) != "" || tok.IsSpecial(-5) || tok.Token(1<<30) != "" {
		t.Error("an unknown id has a token or is special")
	}
	bos, ok := tok.BOS()
	if !ok || tok.Token(bos) != "<s>" || !tok.IsSpecial(bos) {
		t.Errorf("BOS() = %d %v, %q", bos, ok, tok.Token(bos))
	}
	if _, ok := tok.UNK(); ok {
		t.Error("UNK() of a tokenizer without one")
	}
	if tok.ChatTemplate() == "" {
		t.Error("ChatTemplate() is empty")
	}
}

// TestLongWords checks that encoding one huge word does not take quadratic time.
func TestLongWords(t *testing.T) {
	t.Parallel()
	for _, name := range []string{"byte-level", "byte-fallback", "unigram", "suffix-bpe", "m2m100", "wordpiece"} {
		tok := loadTestdata(t, name)
		for _, word := range []string{"a", "ab", "é", " ", "\n", "天"} {
			text := strings.Repeat(word, 1<<17/len(word))
			start := time.Now()
			tok.Encode(text, true)
			if d := time.Since(start); d > 8*time.Second {
				t.Errorf("%s: 128 KiB of %q took %v", name, word, d)
			}
		}
	}
}

// TestStreamIsWhole checks with random ids that no Push returns a partial character
// and that the parts concatenate to the result of Decode.
func TestStreamIsWhole(t *testing.T) {
	t.Parallel()
	paths, err := filepath.Glob("testdata/models/*")
	if err != nil {
		t.Fatal(err)
	}
	for _, path := range paths {
		tok := loadTestdata(t, filepath.Base(path))
		r := rand.New(rand.NewPCG(1, 2))
		for range 300 {
			ids := make([]int32, r.IntN(30))
			for i := range ids {
				ids[i] = r.Int32N(int32(tok.Size() + 2))
			}
			for _, skip := range []bool{false, true} {
				s, text := tok.NewStream(skip), ""
				for _, id := range ids {
					part := s.Push(id)
					if !utf8.ValidString(part) {
						t.Fatalf("%s: Push gave broken text %q", path, part)
					}
					text += part
				}
				if text += s.Flush(); text != tok.Decode(ids, skip) {
					t.Fatalf("%s: stream %q, Decode %q", path, text, tok.Decode(ids, skip))
				}
			}
		}
	}
}

func FuzzTokenizerJSON(f *testing.F) {
	paths, _ := filepath.Glob("testdata/models/*/tokenizer.json")
	for _, path := range paths {
		data, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(shrunkVocab(data))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		loadHostile(t, Files{"tokenizer.json": data})
	})
}

// shrunkVocab truncates the vocabulary of a tokenizer.json, so that mutations reach
// the other parts.
func shrunkVocab(data []byte) []byte {
	var file map[string]json.RawMessage
	var m map[string]any
	if json.Unmarshal(data, &file) != nil || json.Unmarshal(file["model"], &m) != nil {
		return data
	}
	if vocab, ok := m["vocab"].(map[string]any); ok {
		for token, id := range vocab {
			if id.(float64) > 40 {
				delete(vocab, token)
			}
		}
		m["merges"] = []string{}
	}
	file["model"], _ = json.Marshal(m)
	out, _ := json.Marshal(file)
	return out
}

// loadHostile loads and uses a tokenizer, within the bounds of a reader.
func loadHostile(t *testing.T, files Files) {
	size := 0
	for _, data := range files {
		size += len(data)
	}
	useHostile(t, size, func() (*tokenizer.Tokenizer, error) { return Load(files) })
}

// useHostile uses a tokenizer of size bytes, within the bounds of a reader.
func useHostile(t *testing.T, size int, load func() (*tokenizer.Tokenizer, error)) {
	_ = hostiletest.Read(t, size, func() error {
		tok, err := load()
		if err == nil {
			exercise(t, tok)
		}
		return err
	})
}

// exercise calls the methods of a tokenizer from an untrusted file.
func exercise(t *testing.T, tok *tokenizer.Tokenizer) {
	ids := tok.Encode("Hello wörld <s> 123 \n\t\xff 天", true)
	tok.Decode(ids, true)
	tok.Decode([]int32{0, 1, 2, 3, -1, 1 << 30}, false)
	data, err := tok.Marshal()
	if err != nil {
		t.Fatal(err)
	}
	if _, err := tokenizer.Unmarshal(string(data)); err != nil {
		t.Fatalf("Unmarshal of Marshal: %v", err)
	}
}

func FuzzSentencePiece(f *testing.F) {
	for _, path := range []string{"m2m100/sentencepiece.bpe.model", "marian/source.spm", "byte-fallback/tokenizer.model"} {
		data, err := os.ReadFile(filepath.Join("testdata/models", path))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		vocab := []byte(`{"<unk>":0,"</s>":1,"a":2}`)
		loadHostile(t, Files{"sentencepiece.bpe.model": data, "vocab.json": vocab})
		loadHostile(t, Files{"tokenizer.model": data})
	})
}

func FuzzUnmarshal(f *testing.F) {
	for _, name := range []string{"byte-level", "unigram", "marian"} {
		data, err := loadTestdata(f, name).Marshal()
		if err != nil {
			f.Fatal(err)
		}
		f.Add(data)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if tok, err := tokenizer.Unmarshal(string(data)); err == nil {
			tok.Decode(tok.Encode("Hello wörld", true), false)
		}
	})
}

func FuzzEncode(f *testing.F) {
	var all []*tokenizer.Tokenizer
	paths, _ := filepath.Glob("testdata/models/*")
	for _, path := range paths {
		all = append(all, loadTestdata(f, filepath.Base(path)))
	}
	f.Add("Hello, world! <mask> a\xffb \xe4\xbd")
	f.Add("e\u0301\u0323 \u200b\u200d▁▁ >>de<< <b>**")
	f.Fuzz(func(t *testing.T, text string) {
		for _, tok := range all {
			ids := tok.Encode(text, true)
			for _, id := range ids {
				if _, ok := tok.ID(tok.Token(id)); !ok {
					t.Fatalf("Encode(%q) gave id %d outside the vocabulary", text, id)
				}
			}
			if out := tok.Decode(ids, false); !utf8.ValidString(out) {
				t.Fatalf("Decode of %q is broken: %q", text, out)
			}
		}
	})
}
