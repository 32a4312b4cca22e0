package tokenizer

import (
	"fmt"
)

// model converts a pre-tokenized piece to ids.
type model interface {
	// tokenize appends the ids of piece to ids.
	tokenize(ids []int32, piece string) []int32
}

// buildModel returns the model that d describes.
func buildModel(d *Model, v *vocabulary, rawBytes bool) (model, error) {
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

// unkID returns the id of the unknown token, or an error if there is none.
func unkID(d *Model, v *vocabulary) (int32, error) {
	if d.UnkToken == nil {
		return 0, fmt.Errorf("model.unk_token is missing; %s needs one", d.Type)
	}
	id, ok := v.id(*d.UnkToken)
	if !ok {
		return 0, fmt.Errorf("model.unk_token %q is not in the vocabulary", *d.UnkToken)
	}
	return id, nil
}
