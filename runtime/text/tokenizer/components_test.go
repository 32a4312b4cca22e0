package tokenizer

import (
	"encoding/json"
	"os"
	"slices"
	"testing"
)

// goldenComponents is the format of testdata/components.json: single components, their
// inputs, and the outputs of Hugging Face tokenizers.
type goldenComponents struct {
	Texts       []string
	Normalizers []struct {
		Config Component
		Out    []string
	}
	PreTokenizers []struct {
		Config Component
		Out    [][]string
	} `json:"pre_tokenizers"`
	Decoders []struct {
		Config Component
		Tokens [][]string
		Out    []*string // null: the original fails
	}
}

func readComponents(t *testing.T) *goldenComponents {
	t.Helper()
	data, err := os.ReadFile("testdata/components.json")
	if err != nil {
		t.Fatal(err)
	}
	var all goldenComponents
	if err := json.Unmarshal(data, &all); err != nil {
		t.Fatal(err)
	}
	return &all
}

func TestNormalizers(t *testing.T) {
	t.Parallel()
	all := readComponents(t)
	for _, c := range all.Normalizers {
		n, err := buildNormalizer(&c.Config, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.Out {
			if got := n.normalize(all.Texts[i]); got != want {
				t.Errorf("normalizer %s of %q = %q, want %q", describe(c.Config), all.Texts[i], got, want)
			}
		}
	}
}

func TestPreTokenizers(t *testing.T) {
	t.Parallel()
	all := readComponents(t)
	for _, c := range all.PreTokenizers {
		p, err := buildPreTokenizer(&c.Config, false)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.Out {
			if all.Texts[i] == "" {
				continue // the pipeline never passes on empty text
			}
			var got []string
			for _, piece := range p.split(nil, piece{all.Texts[i], true}) {
				got = append(got, piece.text)
			}
			if !slices.Equal(got, want) {
				t.Errorf("pre-tokenizer %s of %q =\n%q, want\n%q", describe(c.Config), all.Texts[i], got, want)
			}
		}
	}
}

func TestDecoders(t *testing.T) {
	t.Parallel()
	for _, c := range readComponents(t).Decoders {
		stages, err := buildDecoder(&c.Config, 0)
		if err != nil {
			t.Fatal(err)
		}
		for i, want := range c.Out {
			if got := decodeTokens(stages, c.Tokens[i]); want != nil && got != *want {
				t.Errorf("decoder %s of %q = %q, want %q", describe(c.Config), c.Tokens[i], got, *want)
			}
		}
	}
}

// decodeTokens decodes tokens with a word-level tokenizer and the given stages.
func decodeTokens(stages []stageMaker, tokens []string) string {
	var ids []int32
	for i := range tokens {
		ids = append(ids, int32(i))
	}
	t := &Tokenizer{vocab: vocabularyOf(tokens), added: &addedVocabulary{}, decoder: stages}
	return t.Decode(ids, false)
}

func vocabularyOf(tokens []string) *vocabulary {
	var list []Entry
	for i, token := range tokens {
		list = append(list, Entry{token, int32(i)})
	}
	v, err := newVocabulary(list)
	if err != nil {
		panic(err)
	}
	return v
}

func describe(c Component) string {
	c.Charsmap = nil
	data, err := json.Marshal(c)
	if err != nil {
		return c.Type
	}
	return string(data)
}
