package tokenizerfile

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// infillTokenizer returns a tokenizer.json with a token for each printable ASCII character
// and with added tokens, which are special if their names begin with "!".
func infillTokenizer(t *testing.T, added ...string) *tokenizer.Tokenizer {
	t.Helper()
	vocab := map[string]int{"Ġ": 0, "Ċ": 1}
	for c := '!'; c <= '~'; c++ {
		vocab[string(c)] = len(vocab)
	}
	for b := 0xA1; b <= 0xFF; b++ { // the bytes of other characters
		vocab[string(rune(b))] = len(vocab)
	}
	var list []map[string]any
	for i, name := range added {
		content, special := strings.CutPrefix(name, "!")
		list = append(list, map[string]any{"id": len(vocab) + i, "content": content, "special": special, "normalized": false})
	}
	file, err := json.Marshal(map[string]any{
		"version": "1.0", "added_tokens": list, "pre_tokenizer": map[string]any{"type": "ByteLevel", "add_prefix_space": false, "use_regex": true},
		"decoder": map[string]any{"type": "ByteLevel"}, "model": map[string]any{"type": "BPE", "vocab": vocab, "merges": []string{}},
	})
	if err != nil {
		t.Fatal(err)
	}
	tok, err := Load(Files{"tokenizer.json": file})
	if err != nil {
		t.Fatal(err)
	}
	data, err := tok.Marshal() // as a binary contains it
	if err != nil {
		t.Fatal(err)
	}
	if tok, err = tokenizer.Unmarshal(string(data)); err != nil {
		t.Fatal(err)
	}
	return tok
}

// show returns the tokens of a format by name.
func show(t *tokenizer.Tokenizer) string {
	f := t.Infill()
	if f == nil {
		return "none"
	}
	name := func(id int32) string {
		if id < 0 {
			return "-"
		}
		return t.Token(id)
	}
	var ends []string
	for _, id := range f.Ends {
		ends = append(ends, name(id))
	}
	return strings.Join([]string{name(f.Prefix), name(f.Suffix), name(f.Middle), name(f.Repo), name(f.File), fmt.Sprint(f.SuffixFirst), strings.Join(ends, " ")}, " ")
}

// TestInfill checks which tokens make the format of infill prompts.
func TestInfill(t *testing.T) {
	t.Parallel()
	for added, want := range map[string]string{
		"!<|endoftext|> <|fim_prefix|> <|fim_middle|> <|fim_suffix|> <|fim_pad|> <|repo_name|> <|file_sep|>": "<|fim_prefix|> <|fim_suffix|> <|fim_middle|> <|repo_name|> <|file_sep|> false <|fim_prefix|> <|fim_suffix|> <|fim_middle|> <|repo_name|> <|file_sep|> <|fim_pad|> <|endoftext|>",
		"!<fim_prefix> !<fim_middle> !<fim_suffix> !<reponame> !<filename>":                                  "<fim_prefix> <fim_suffix> <fim_middle> <reponame> <filename> false <fim_prefix> <fim_suffix> <fim_middle> <reponame> <filename>",
		"!▁<PRE> !▁<MID> !▁<SUF> !▁<EOT>":                                                                    "▁<PRE> ▁<SUF> ▁<MID> - - false ▁<PRE> ▁<SUF> ▁<MID> ▁<EOT>",
		"!<｜fim▁begin｜> !<｜fim▁hole｜> !<｜fim▁end｜>":                                                          "<｜fim▁begin｜> <｜fim▁hole｜> <｜fim▁end｜> - - false <｜fim▁begin｜> <｜fim▁hole｜> <｜fim▁end｜>",
		"![PREFIX] ![MIDDLE] ![SUFFIX]":                                                                      "[PREFIX] [SUFFIX] - - - true [PREFIX] [SUFFIX]",
		"!<|fim_prefix|> !<|fim_suffix|> !<|fim_middle|> !<|file_separator|>":                                "<|fim_prefix|> <|fim_suffix|> <|fim_middle|> - - false <|fim_prefix|> <|fim_suffix|> <|fim_middle|> <|file_separator|>",
		"!<|fim_prefix|> !<|fim_suffix|>":                                                                    "none",
		"!<|im_start|>":                                                                                      "none",
	} {
		if got := show(infillTokenizer(t, strings.Fields(added)...)); got != want {
			t.Errorf("%s: %s, expected %s", added, got, want)
		}
	}
}

// TestInfillGGUF checks tokens that the file names by id and those it only contains.
func TestInfillGGUF(t *testing.T) {
	t.Parallel()
	tokens := []string{"a", "b", "<A>", "<B>", "<C>", "<fim_prefix>", "<fim_suffix>", "<fim_middle>", "[PREFIX]", "[SUFFIX]", "[MIDDLE]", "<P>"}
	types := []int32{1, 1, 1, 1, 1, 3, 3, 3, 3, 3, 3, 3}
	for want, keys := range map[string]map[string]any{
		"<A> <B> <C> - - false <A> <B> <C> <P>":                                                   {"fim_pre": uint32(2), "fim_suf": uint32(3), "fim_mid": uint32(4), "fim_pad": uint32(11)},
		"<B> <A> <C> - - false <B> <A> <C>":                                                       {"prefix": uint32(3), "suffix": uint32(2), "middle": uint32(4)},
		"[PREFIX] [SUFFIX] [MIDDLE] <P> <A> true [PREFIX] [SUFFIX] [MIDDLE] <P> <A>":              {"fim_pre": uint32(8), "fim_suf": uint32(9), "fim_mid": uint32(10), "fim_rep": uint32(11), "fim_sep": uint32(2)},
		"<fim_prefix> <fim_suffix> <fim_middle> - - false <fim_prefix> <fim_suffix> <fim_middle>": {"fim_pre": uint32(2), "fim_mid": uint32(99)},
	} {
		meta := map[string]any{
			"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.pre": "gpt-2", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.merges": []string{}, "tokenizer.ggml.token_type": types,
		}
		for key, id := range keys {
			meta["tokenizer.ggml."+key+"_token_id"] = id
		}
		tok, err := FromGGUF(meta)
		if err != nil {
			t.Fatal(err)
		}
		if got := show(tok); got != want {
			t.Errorf("%v: %s, expected %s", keys, got, want)
		}
	}
}

// TestEncodeText checks that no text forges special tokens or those of infill prompts,
// and that other added tokens are recognized.
func TestEncodeText(t *testing.T) {
	t.Parallel()
	tok := infillTokenizer(t, "!<s>", "<|fim_prefix|>", "<|fim_middle|>", "<|fim_suffix|>", "<|file_sep|>", "<word>")
	const text = "a<s><|fim_suffix|>\n<word><|<|fim_middle|>fim_prefix|> é<|file_sep|>"
	ids, err := tok.EncodeText(text, false, tokenizer.Limit{})
	if err != nil {
		t.Fatal(err)
	}
	for _, id := range ids {
		if tok.IsSpecial(id) || slices.Contains(tok.Infill().Ends, id) {
			t.Errorf("the text forges %q", tok.Token(id))
		}
	}
	if word, _ := tok.ID("<word>"); !slices.Contains(ids, word) {
		t.Errorf("%v do not contain <word>", ids)
	}
	if got := tok.Decode(ids, false); got != text {
		t.Errorf("decoded %q, expected %q", got, text)
	}
	if _, err := tok.EncodeText(text, false, tokenizer.Limit{Tokens: 5}); err == nil {
		t.Error("the limit does not hold")
	}
	if plain, err := tok.EncodeText("ab c", false, tokenizer.Limit{}); err != nil || !slices.Equal(plain, tok.Encode("ab c", false)) {
		t.Errorf("%v, %v", plain, err)
	}
}

// TestEncodeTextUnigram checks that a model that makes infill tokens of text is refused.
func TestEncodeTextUnigram(t *testing.T) {
	t.Parallel()
	tok, err := Load(Files{"tokenizer.json": []byte(`{"version":"1.0","added_tokens":[{"id":1,"content":"<PRE>","special":true},{"id":2,"content":"<SUF>","special":true},{"id":3,"content":"<MID>","special":true}],
"model":{"type":"Unigram","unk_id":0,"vocab":[["<unk>",0],["<PRE>",0],["<SUF>",0],["<MID>",0],["a",-1],["<",-9],["P",-9],["R",-9],["E",-9],[">",-9]]}}`)})
	if err != nil {
		t.Fatal(err)
	}
	if ids, err := tok.EncodeText("a<PRE>a", false, tokenizer.Limit{}); err == nil || !strings.Contains(err.Error(), `"<PRE>"`) {
		t.Errorf("%v, %v", ids, err)
	}
	if ids, err := tok.EncodeText("aa", false, tokenizer.Limit{}); err != nil || len(ids) != 2 {
		t.Errorf("%v, %v", ids, err)
	}
}

// TestEncodeInner checks that no space is put in front of a text that follows another.
func TestEncodeInner(t *testing.T) {
	t.Parallel()
	for name, file := range map[string]string{
		"prepend": `{"version":"1.0","added_tokens":[],"normalizer":{"type":"Sequence","normalizers":[{"type":"Prepend","prepend":"▁"},{"type":"Replace","pattern":{"String":" "},"content":"▁"}]},
"model":{"type":"BPE","unk_token":"<unk>","vocab":{"<unk>":0,"▁":1,"a":2,"b":3,"ab":4,"▁a":5,"☺":6},"merges":["a b","▁ a"]}}`,
		"metaspace": `{"version":"1.0","added_tokens":[],"pre_tokenizer":{"type":"Metaspace","replacement":"▁","prepend_scheme":"first","split":false},
"model":{"type":"BPE","unk_token":"<unk>","vocab":{"<unk>":0,"▁":1,"a":2,"b":3,"ab":4,"▁a":5},"merges":["a b","▁ a"]}}`,
		"bytes": `{"version":"1.0","added_tokens":[],"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},
"model":{"type":"BPE","vocab":{"▁":1,"a":2,"b":3,"ab":4,"Ġ":0},"merges":["a b"]}}`,
	} {
		tok, err := Load(Files{"tokenizer.json": []byte(file)})
		if err != nil {
			t.Fatal(err)
		}
		join := func(inner bool) string {
			ids, err := tok.EncodeText("ab a", inner, tokenizer.Limit{Tokens: 4})
			if err != nil {
				t.Fatal(err)
			}
			var names []string
			for _, id := range ids {
				names = append(names, tok.Token(id))
			}
			return strings.Join(names, " ")
		}
		want := [2]string{"▁ ab ▁a", "ab ▁a"}
		if name == "bytes" {
			want = [2]string{"ab Ġ a", "ab Ġ a"}
		}
		if got := [2]string{join(false), join(true)}; got != want {
			t.Errorf("%s: %q, want %q", name, got, want)
		}
		if _, err := tok.EncodeText("a a a a a", true, tokenizer.Limit{Tokens: 4}); err == nil {
			t.Errorf("%s: the limit does not hold", name)
		}
	}
}
