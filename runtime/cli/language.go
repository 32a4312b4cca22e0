//go:build unix

package cli

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// languageToken finds the token of a language: "en_XX" (mBART), "eng_Latn"
// (NLLB), "__en__" (M2M-100) and ">>fra<<" (Marian) for en_XX, eng_Latn, en and
// fra. Spellings that are ordinary words do not count.
func languageToken(t *tokenizer.Tokenizer, language string) (int32, bool) {
	for _, form := range []string{"__%s__", ">>%s<<", "%s"} {
		id, ok := t.ID(fmt.Sprintf(form, language))
		if ok && (form != "%s" || t.IsSpecial(id)) {
			return id, true
		}
	}
	return 0, false
}

// inText says whether a language token is written before the source text, as
// Marian's are, and not where the decoder starts.
func inText(t *tokenizer.Tokenizer, id int32) bool { return strings.HasPrefix(t.Token(id), ">>") }

// setSource replaces the language token that the tokenizer put around a text.
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
	return wrong(fmt.Errorf("--src %s: the tokenizer puts no language around a text", language))
}

// isLanguage says whether a token is special but none that is there in any
// language.
func isLanguage(t *tokenizer.Tokenizer, id int32) bool { return t.IsSpecial(id) && !isRole(t, id) }

// isRole says whether a token is one of those that are there in any language.
func isRole(t *tokenizer.Tokenizer, id int32) bool {
	for _, role := range []string{"bos", "eos", "pad", "cls", "sep", "unk", "mask"} {
		if special, ok := t.Special(role); ok && special == id {
			return true
		}
	}
	return false
}
