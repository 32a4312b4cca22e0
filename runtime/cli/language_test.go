//go:build unix

package cli

import (
	"slices"
	"testing"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
	"github.com/iflowc/iflowc/spec/tokenizerfile"
)

// languageTokenizer puts a language before a text and an end behind it.
func languageTokenizer(t *testing.T, post string) *tokenizer.Tokenizer {
	t.Helper()
	tok, err := tokenizerfile.Load(tokenizerfile.Files{"tokenizer.json": []byte(`{"version":"1.0","added_tokens":[
{"id":1,"content":"</s>","special":true,"normalized":false},{"id":5,"content":"en_XX","special":true,"normalized":false},
{"id":6,"content":"de_DE","special":true,"normalized":false},{"id":7,"content":"__fr__","special":true,"normalized":false}],
"normalizer":null,"pre_tokenizer":null,"decoder":null,"post_processor":` + post + `,
"model":{"type":"BPE","unk_token":null,"vocab":{"a":0,"</s>":1,"b":2,"de":3,">>fra<<":4},"merges":[]}}`),
		"tokenizer_config.json": []byte(`{"eos_token":"</s>"}`)})
	if err != nil {
		t.Fatal(err)
	}
	return tok
}

const languagePost = `{"type":"TemplateProcessing","single":[{"SpecialToken":{"id":"en_XX","type_id":0}},{"Sequence":{"id":"A","type_id":0}},{"SpecialToken":{"id":"</s>","type_id":0}}],
"pair":[],"special_tokens":{"en_XX":{"id":"en_XX","ids":[5],"tokens":["en_XX"]},"</s>":{"id":"</s>","ids":[1],"tokens":["</s>"]}}}`

func TestLanguages(t *testing.T) {
	t.Parallel()
	tok := languageTokenizer(t, languagePost)
	for name, want := range map[string]int32{"de_DE": 6, "fr": 7, "fra": 4, "de": -1, "xx": -1} {
		id, ok := languageToken(tok, name)
		if !ok {
			id = -1
		}
		if id != want {
			t.Errorf("%s: token %d, expected %d", name, id, want)
		}
	}
	if !inText(tok, 4) || inText(tok, 6) {
		t.Error("only >>fra<< is written in the text")
	}
	ids := tok.Encode("ab", true)
	if err := setSource(tok, ids, "de_DE"); err != nil || !slices.Equal(ids, []int32{6, 0, 2, 1}) {
		t.Errorf("%v, %v", ids, err)
	}
	for _, name := range []string{"xx", "fra", "de"} {
		if err := setSource(tok, ids, name); err == nil {
			t.Errorf("--src %s was taken", name)
		}
	}
	plain := languageTokenizer(t, "null")
	if err := setSource(plain, plain.Encode("ab", true), "de_DE"); err == nil {
		t.Error("a tokenizer without languages took one")
	}
}
