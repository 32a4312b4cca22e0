package chat

import "github.com/iflowc/iflowc/runtime/text/tokenizer"

// SpecialTokens are the texts of a tokenizer's special tokens, which templates use as
// bos_token, eos_token and so on. An empty text means undefined.
type SpecialTokens struct {
	BOS, EOS, UNK, SEP, PAD, CLS, Mask string

	User, Assistant string // used by the brace language
}

// TokensOf returns the special tokens of a tokenizer.
func TokensOf(t *tokenizer.Tokenizer) SpecialTokens {
	name := func(role string) string {
		if id, ok := t.Special(role); ok {
			return t.Token(id)
		}
		return ""
	}
	return SpecialTokens{
		BOS: name("bos"), EOS: name("eos"), UNK: name("unk"), SEP: name("sep"),
		PAD: name("pad"), CLS: name("cls"), Mask: name("mask"),
	}
}
