package tokenizer

import (
	"fmt"
)

// model turns one pre-tokenized piece into ids.
type model interface {
	// tokenize appends the ids of piece to ids.
	tokenize(ids []int32, piece string) []int32
}

// vocabulary maps between tokens and ids of the model (without added tokens).
type vocabulary struct {
	ids    map[string]int32
	tokens []string // by id; holes are ""
	count  int
}

// newVocabulary refuses ids that would need a table far larger than the list.
func newVocabulary(entries []vocabEntry) (*vocabulary, error) {
	limit := int32(4*len(entries) + 1<<16)
	v := &vocabulary{ids: make(map[string]int32, len(entries))}
	top := int32(-1)
	for _, e := range entries {
		if e.ID < 0 || e.ID > limit {
			return nil, fmt.Errorf("vocabulary: token %.40q has id %d; expected 0 to %d for %d tokens", e.Token, e.ID, limit, len(entries))
		}
		top = max(top, e.ID)
	}
	v.tokens = make([]string, top+1)
	for _, e := range entries {
		v.ids[e.Token] = e.ID
		v.tokens[e.ID] = e.Token
	}
	v.count = len(v.ids)
	return v, nil
}

// buildModel makes the model that d describes.
func buildModel(d *modelDef, v *vocabulary, rawBytes bool) (model, error) {
	switch d.Type {
	case "BPE":
		return newBPE(d, v, rawBytes)
	case "Unigram":
		return newUnigram(d, v)
	case "WordPiece":
		return newWordPiece(d, v)
	case "WordLevel":
		return newWordLevel(d, v)
	case "SentencePiece":
		return newSentencePiece(d, v)
	}
	return nil, fmt.Errorf("model.type %q is not known; expected BPE, Unigram, WordPiece or WordLevel", d.Type)
}

// unkID resolves an unknown token that has to exist.
func unkID(d *modelDef, v *vocabulary) (int32, error) {
	if d.UnkToken == nil {
		return 0, fmt.Errorf("model.unk_token is missing; %s needs one", d.Type)
	}
	id, ok := v.ids[*d.UnkToken]
	if !ok {
		return 0, fmt.Errorf("model.unk_token %q is not in the vocabulary", *d.UnkToken)
	}
	return id, nil
}
