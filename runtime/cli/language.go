//go:build unix

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// languageToken finds the token of a language: "en_XX" (mBART), "eng_Latn"
// (NLLB), "__en__" (M2M-100) or ">>fra<<" (Marian), for en_XX, eng_Latn, en or
// fra. Tokens that are ordinary words do not count.
func languageToken(t *tokenizer.Tokenizer, language string) (int32, bool) {
	for _, form := range []string{"__%s__", ">>%s<<", "%s"} {
		id, ok := t.ID(fmt.Sprintf(form, language))
		if ok && (form != "%s" || t.IsSpecial(id)) {
			return id, true
		}
	}
	return 0, false
}

// inText reports whether a language token goes before the source text, as with
// Marian, rather than at the decoder's start.
func inText(t *tokenizer.Tokenizer, id int32) bool { return strings.HasPrefix(t.Token(id), ">>") }

// setSource replaces the language token that the tokenizer added to a text.
func setSource(t *tokenizer.Tokenizer, ids []int32, language string) error {
	id, ok := languageToken(t, language)
	if !ok || inText(t, id) {
		return wrong(fmt.Errorf("--src %s: the vocabulary has no such source language", language))
	}
	for _, around := range t.Encode("", true) {
		if !isRole(t, around) {
			if at := slices.Index(ids, around); at >= 0 {
				ids[at] = id
				return nil
			}
		}
	}
	return wrong(fmt.Errorf("--src %s: the tokenizer adds no language token to a text", language))
}

// isLanguage reports whether a token is a special token of one language, not
// one that is added in every language.
func isLanguage(t *tokenizer.Tokenizer, id int32) bool { return t.IsSpecial(id) && !isRole(t, id) }

// isRole reports whether a token is added in every language.
func isRole(t *tokenizer.Tokenizer, id int32) bool {
	for _, role := range []string{"bos", "eos", "pad", "cls", "sep", "unk", "mask"} {
		if special, ok := t.Special(role); ok && special == id {
			return true
		}
	}
	return false
}
