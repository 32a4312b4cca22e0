package tokenizer

import (
	"fmt"
	"slices"
)

// A Tokenizer encodes and decodes text. It is immutable and safe for concurrent use.
type Tokenizer struct {
	def     *Definition
	config  Config
	vocab   *vocabulary
	added   *addedVocabulary
	norm    normalizer
	pre     preTokenizer
	model   model
	post    postProcessor
	pair    pairTemplate
	decoder []stageMaker
	target  *vocabulary // for decoding; nil: vocab
}

// New returns a tokenizer for a definition. It clears the definition's lists of tokens:
// the tokenizer's own tables hold them in a fifth of the memory.
func New(d *Definition) (*Tokenizer, error) {
	t, err := assemble(d)
	if err != nil {
		return nil, err
	}
	d.Model.Vocab, d.Model.Inner = nil, nil
	return t, nil
}

func assemble(d *Definition) (*Tokenizer, error) {
	t := &Tokenizer{def: d, config: d.Config}
	var err error
	if t.vocab, err = newVocabulary(d.Model.Vocab); err != nil {
		return nil, err
	}
	if t.norm, err = buildNormalizer(d.Normalizer, 0); err != nil {
		return nil, err
	}
	if t.added, err = newAddedVocabulary(d.Added, t.vocab, t.norm); err != nil {
		return nil, err
	}
	rawBytes := d.Model.Type == "BPE" && !d.Model.ByteFallback && endsInByteLevel(d.PreTokenizer)
	if t.pre, err = buildPreTokenizer(d.PreTokenizer, rawBytes); err != nil {
		return nil, err
	}
	if t.model, err = buildModel(&d.Model, t.vocab, rawBytes); err != nil {
		return nil, err
	}
	if t.post, err = buildPost(d.PostProcessor, 0); err != nil {
		return nil, err
	}
	if t.pair, err = buildPair(d.PostProcessor, 0); err != nil {
		return nil, err
	}
	if d.Decoder != nil && d.Decoder.Type == "SentencePiece" && d.Model.SentencePiece != nil {
		t.decoder = []stageMaker{newSPStage(d, t.vocab, t.added)}
		t.target, err = targetVocabulary(d.Model.SentencePiece.TargetVocab)
		return t, err
	}
	if t.decoder, err = buildDecoder(d.Decoder, 0); err != nil {
		return nil, err
	}
	return t, nil
}

// Encode converts text to ids. It recognizes added and special tokens in the text. With
// special it adds the special tokens of the post-processor, such as BOS. Invalid UTF-8
// becomes U+FFFD.
func (t *Tokenizer) Encode(text string, special bool) []int32 {
	ids, _ := t.EncodeWithin(text, special, Limit{}) // there is no error without a limit
	return ids
}

// EncodeAtMost is like Encode with special tokens, but truncates the text's ids so that
// the result has at most n ids in total; n <= 0 means no limit.
func (t *Tokenizer) EncodeAtMost(text string, n int) []int32 {
	ids, _ := t.encode(validUTF8(text), Limit{}) // there is no error without a limit
	if room := n - len(t.post.apply(nil)); n > 0 && len(ids) > room {
		ids = ids[:max(room, 0)]
	}
	return t.post.apply(ids)
}

// encode returns the ids of a text, up to the limit if it returns ErrLong.
func (t *Tokenizer) encode(text string, l Limit) ([]int32, error) {
	ids := make([]int32, 0, len(text)/3+4)
	var pieces []piece
	n := 0
	for _, raw := range t.added.split(nil, t.added.raw, text, true) {
		if raw.token >= 0 {
			ids = append(ids, t.added.tokens[raw.token].ID)
			n++
			if err := l.passed(n, len(ids)); err != nil {
				return ids, err
			}
			continue
		}
		normal := t.norm.normalize(raw.text)
		first := raw.first && !dropsHead(t.norm, raw.text)
		for _, seg := range t.added.split(nil, t.added.normal, normal, first) {
			if seg.token >= 0 {
				ids = append(ids, t.added.tokens[seg.token].ID)
				n++
				if err := l.passed(n, len(ids)); err != nil {
					return ids, err
				}
				continue
			}
			pieces = t.pre.split(pieces[:0], piece{seg.text, seg.first})
			for _, p := range pieces {
				ids = t.model.tokenize(ids, p.text)
				n++
				if err := l.passed(n, len(ids)); err != nil {
					return ids, err
				}
			}
		}
	}
	return ids, nil
}

func (t *Tokenizer) lookup(id int32) (string, bool) {
	if i, ok := t.added.byID[id]; ok {
		return t.added.tokens[i].Content, true
	}
	if id < 0 || int(id) >= t.vocab.size() {
		return "", false
	}
	token := t.vocab.token(id)
	if token == "" {
		empty, _ := t.vocab.id("")
		return "", empty == id
	}
	return token, true
}

// targetVocabulary returns the separate vocabulary for decoding, or nil.
func targetVocabulary(ids map[string]int32) (*vocabulary, error) {
	if len(ids) == 0 {
		return nil, nil
	}
	return newVocabulary(SortedVocab(ids))
}

// decodeToken returns the token of an id for decoding, and whether it is a special token.
func (t *Tokenizer) decodeToken(id int32) (token string, special, ok bool) {
	if _, added := t.added.byID[id]; added || t.target == nil {
		token, ok = t.lookup(id)
	} else if ok = 0 <= id && int(id) < t.target.size(); ok {
		token = t.target.token(id)
	}
	special = t.added.special[token]
	if text, normalized := t.added.written[id]; normalized {
		token = text
	}
	return token, special, ok
}

// Token returns the token's text, with marks such as "Ġ" or "▁", or "" for ids outside
// the vocabulary.
func (t *Tokenizer) Token(id int32) string {
	token, _ := t.lookup(id)
	return token
}

// ID returns the id of a token's text.
func (t *Tokenizer) ID(token string) (int32, bool) {
	if id, ok := t.added.ids[token]; ok {
		return id, true
	}
	id, ok := t.vocab.id(token)
	return id, ok
}

// Size returns the number of tokens, including added ones.
func (t *Tokenizer) Size() int {
	n := t.vocab.count
	for _, a := range t.added.tokens {
		if id, ok := t.vocab.id(a.Content); !ok || id != a.ID {
			n++
		}
	}
	return n
}

// IsSpecial reports whether Decode with skipSpecial omits the token.
func (t *Tokenizer) IsSpecial(id int32) bool {
	token, ok := t.lookup(id)
	return ok && t.added.special[token]
}

// Special returns the id of a named special token: "bos", "eos", "unk", "pad", "cls",
// "sep" or "mask".
func (t *Tokenizer) Special(role string) (int32, bool) {
	token, ok := t.config.Special[role]
	if !ok {
		return 0, false
	}
	return t.ID(token)
}

// BOS returns the beginning-of-sequence token, if it is defined.
func (t *Tokenizer) BOS() (int32, bool) { return t.Special("bos") }

// EOS returns the end-of-sequence token, if it is defined.
func (t *Tokenizer) EOS() (int32, bool) { return t.Special("eos") }

// UNK returns the unknown token, if it is defined.
func (t *Tokenizer) UNK() (int32, bool) { return t.Special("unk") }

// PAD returns the padding token, if it is defined.
func (t *Tokenizer) PAD() (int32, bool) { return t.Special("pad") }

// CLS returns the classification token, if it is defined.
func (t *Tokenizer) CLS() (int32, bool) { return t.Special("cls") }

// SEP returns the separator token, if it is defined.
func (t *Tokenizer) SEP() (int32, bool) { return t.Special("sep") }

// Mask returns the mask token, if it is defined.
func (t *Tokenizer) Mask() (int32, bool) { return t.Special("mask") }

// ChatTemplate returns the source of the chat template, or "".
func (t *Tokenizer) ChatTemplate() string { return t.config.ChatTemplate }

// StopIDs returns the end-of-text tokens of the tokenizer's files: EOS and, from GGUF,
// the end-of-turn and end-of-message tokens.
func (t *Tokenizer) StopIDs() []int32 {
	var out []int32
	if id, ok := t.EOS(); ok {
		out = append(out, id)
	}
	for _, id := range t.config.ExtraEOS {
		if !slices.Contains(out, id) {
			out = append(out, id)
		}
	}
	return out
}

// DecoderStart returns the default first token of a decoder: the token of the target
// language, if the configuration sets one. last reports whether the source language's
// token follows the text and EOS (mBART-25) instead of preceding the text (mBART-50).
func (t *Tokenizer) DecoderStart() (id int32, last, ok bool) {
	eos, ok := t.EOS()
	if !ok || t.config.Target == "" {
		return 0, false, false
	}
	around := t.post.apply(nil)
	if len(around) != 2 || around[0] == around[1] || around[0] != eos && around[1] != eos {
		return 0, false, false
	}
	id, ok = t.ID(t.config.Target)
	return id, around[0] == eos, ok
}

// wrap prefixes an error with its source.
func wrap(source string, err error) error { return fmt.Errorf("%s: %w", source, err) }
