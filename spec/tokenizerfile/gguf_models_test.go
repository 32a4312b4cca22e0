package tokenizerfile

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// TestGemma4 checks merges over whole texts, whose spaces are "▁" and whose other bytes have
// tokens of their own. The ids are those of tokenizers' BPE with byte_fallback.
func TestGemma4(t *testing.T) {
	t.Parallel()
	tokens := []any{"<pad>", "<eos>", "<bos>", "<unk>", "▁", "a", "b", "ab", "▁ab", "\n", "\n\n"}
	first := int32(len(tokens))
	for b := range 256 {
		tokens = append(tokens, fmt.Sprintf("<0x%02X>", b))
	}
	types := make([]any, len(tokens))
	for i := range types {
		types[i] = int32(1)
	}
	tok, err := FromGGUF(map[string]any{"tokenizer.ggml.model": "gemma4", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": types,
		"tokenizer.ggml.merges": []any{"a b", "▁ ab", "\n \n"}, "tokenizer.ggml.bos_token_id": uint32(2), "tokenizer.ggml.eos_token_id": uint32(1), "tokenizer.ggml.unknown_token_id": uint32(3)})
	if err != nil {
		t.Fatal(err)
	}
	text := "ab ab  ab\n\nü"
	want := []int32{2, 7, 8, 4, 8, 10, first + 0xc3, first + 0xbc}
	if got := tok.Encode(text, true); !slices.Equal(got, want) {
		t.Errorf("Encode(%q) = %v, want %v", text, got, want)
	}
	if got := tok.Decode(want[1:], false); got != text {
		t.Errorf("Decode = %q, want %q", got, text)
	}
}

// TestCasedBERT checks the keys of BERT files for texts in upper case and with accents.
func TestCasedBERT(t *testing.T) {
	t.Parallel()
	tokens := []string{"[PAD]", "[UNK]", "[CLS]", "[SEP]", "▁Hello", "▁hello", "▁w", "orld", "▁Été", "▁ete", "▁été"}
	for _, c := range []struct {
		lower, strip any
		want         []int32
	}{
		{false, false, []int32{2, 4, 6, 7, 8, 3}},
		{true, false, []int32{2, 5, 6, 7, 10, 3}},
		{nil, nil, []int32{2, 5, 6, 7, 9, 3}},
	} {
		meta := map[string]any{"tokenizer.ggml.model": "bert", "tokenizer.ggml.tokens": tokens, "tokenizer.ggml.token_type": []int32{3, 3, 3, 3, 1, 1, 1, 1, 1, 1, 1},
			"tokenizer.ggml.cls_token_id": uint32(2), "tokenizer.ggml.seperator_token_id": uint32(3), "tokenizer.ggml.unknown_token_id": uint32(1)}
		if c.lower != nil {
			meta["tokenizer.ggml.normalizer.lowercase"], meta["tokenizer.ggml.normalizer.strip_accents"] = c.lower, c.strip
		}
		tok, err := FromGGUF(meta)
		if err != nil {
			t.Fatal(err)
		}
		if got := tok.Encode("Hello world Été", true); !slices.Equal(got, c.want) {
			t.Errorf("lowercase %v, strip_accents %v: %v, want %v", c.lower, c.strip, got, c.want)
		}
	}
}

// TestUnknownPre checks that an unknown name gets a hint.
func TestUnknownPre(t *testing.T) {
	t.Parallel()
	for name, want := range map[string]string{"qwen36": `did you mean "qwen35"?`, "something": "tokenizer_file"} {
		_, err := FromGGUF(map[string]any{"tokenizer.ggml.model": "gpt2", "tokenizer.ggml.tokens": []string{"a"}, "tokenizer.ggml.pre": name})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", name, err, want)
		}
	}
}

// TestExtraSpecialTokens checks both forms of extra_special_tokens.
func TestExtraSpecialTokens(t *testing.T) {
	t.Parallel()
	for _, extra := range []string{`["<|x|>"]`, `{"image_token": "<|x|>"}`} {
		files := readFolder(t, "testdata/models/byte-level")
		files["tokenizer_config.json"] = []byte(`{"tokenizer_class": "PreTrainedTokenizerFast", "extra_special_tokens": ` + extra + `}`)
		tok, err := Load(files)
		if err != nil {
			t.Fatal(err)
		}
		ids := tok.Encode("a b<|x|>", false)
		if last := ids[len(ids)-1]; tok.Token(last) != "<|x|>" || !tok.IsSpecial(last) || tok.Decode(ids, true) != "a b" {
			t.Errorf("%s: %v, which is %q, special %v", extra, ids, tok.Token(last), tok.IsSpecial(last))
		}
	}
}
