package tokenizerfile

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// TestEdges checks tokenizers on texts that distinguish implementations that agree
// on ordinary text. The expected ids are those of Hugging Face tokenizers.
func TestEdges(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/edges.json")
	if err != nil {
		t.Fatal(err)
	}
	var cases []struct {
		Name      string
		Tokenizer json.RawMessage
		Texts     []string
		IDs       [][]int32
	}
	if err := json.Unmarshal(data, &cases); err != nil || len(cases) == 0 {
		t.Fatalf("%d cases: %v", len(cases), err)
	}
	for _, c := range cases {
		tok, err := Load(Files{"tokenizer.json": c.Tokenizer})
		if err != nil {
			t.Errorf("%s: %v", c.Name, err)
			continue
		}
		for i, text := range c.Texts {
			if got := tok.Encode(text, true); !slices.Equal(got, c.IDs[i]) {
				t.Errorf("%s: %q gives %v, want %v", c.Name, text, got, c.IDs[i])
			}
		}
	}
}

// TestEncodeAtMost checks that the text is truncated but not its special tokens.
func TestEncodeAtMost(t *testing.T) {
	t.Parallel()
	tok, err := Load(Files{
		"vocab.txt": []byte("[UNK]\n[CLS]\n[SEP]\na\nb\n"), "tokenizer_config.json": []byte(`{"tokenizer_class":"BertTokenizer"}`),
	})
	if err != nil {
		t.Fatal(err)
	}
	for n, want := range map[int][]int32{0: {1, 3, 4, 3, 2}, 4: {1, 3, 4, 2}, 9: {1, 3, 4, 3, 2}, 1: {1, 2}} {
		if got := tok.EncodeAtMost("a b a", n); !slices.Equal(got, want) {
			t.Errorf("at most %d: %v, want %v", n, got, want)
		}
	}
}
