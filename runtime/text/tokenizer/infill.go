package tokenizer

import (
	"fmt"
	"slices"
	"strings"
)

// An InfillFormat describes prompts whose middle the model writes (fill in the middle;
// Bavarian et al. 2022), by the texts of their tokens. An empty text means none.
type InfillFormat struct {
	Prefix      string   `json:"prefix"` // in front of the text before the middle
	Suffix      string   `json:"suffix"` // in front of the text after the middle
	Middle      string   `json:"middle,omitempty"`
	Repo        string   `json:"repo,omitempty"`         // in front of the name of a repository
	File        string   `json:"file,omitempty"`         // in front of the name of a file
	SuffixFirst bool     `json:"suffix_first,omitempty"` // the suffix is in front of the prefix
	Ends        []string `json:"ends,omitempty"`         // tokens that end the middle, besides these and EOS
}

// An Infill is an InfillFormat in token ids; −1 means none.
type Infill struct {
	Prefix, Suffix, Middle, Repo, File int32
	SuffixFirst                        bool
	Ends                               []int32 // all tokens that end the middle, besides EOS
}

// Infill returns the format of infill prompts, or nil if the tokenizer has none.
func (t *Tokenizer) Infill() *Infill {
	f := t.config.Infill
	if f == nil {
		return nil
	}
	out := &Infill{SuffixFirst: f.SuffixFirst}
	id := func(text string) int32 {
		id, ok := t.ID(text)
		if text == "" || !ok {
			return -1
		}
		out.Ends = append(out.Ends, id)
		return id
	}
	out.Prefix, out.Suffix, out.Middle, out.Repo, out.File = id(f.Prefix), id(f.Suffix), id(f.Middle), id(f.Repo), id(f.File)
	for _, text := range f.Ends {
		id(text)
	}
	if out.Prefix < 0 || out.Suffix < 0 || out.Middle < 0 && f.Middle != "" {
		return nil
	}
	return out
}

// EncodeText encodes untrusted text without special tokens around it. Special tokens in
// it and the tokens of infill prompts stay plain text. It returns an error for a text
// from which the tokenizer's model itself makes such a token. inner: the text follows
// another one, so that no space is put in front of it.
func (t *Tokenizer) EncodeText(text string, inner bool, l Limit) ([]int32, error) {
	if err := l.check(text); err != nil {
		return nil, err
	}
	infill := map[int32]bool{}
	if f := t.Infill(); f != nil {
		for _, id := range f.Ends {
			infill[id] = true
		}
	}
	added := *t.added
	added.plain = func(token *AddedToken) bool { return t.added.special[token.Content] || infill[token.ID] }
	plain := *t
	plain.added = &added
	ids, err := plain.encodeAfter(inner, validUTF8(text), l)
	if err != nil {
		return nil, err
	}
	for _, id := range ids {
		if infill[id] {
			return nil, fmt.Errorf("the text contains %q, which this tokenizer cannot keep as text; leave it out", t.Token(id))
		}
	}
	return ids, nil
}

// encodeAfter encodes a text. If inner is set and the tokenizer puts a space in front of
// texts, as SentencePiece does, the space is in front of a mark, whose tokens it removes.
// The models' own code for infilling does the same.
func (t *Tokenizer) encodeAfter(inner bool, text string, l Limit) ([]int32, error) {
	const mark = "☺"
	if inner {
		head, err := t.encode(mark, Limit{})
		if err != nil {
			return nil, err
		}
		if len(head) > 0 && strings.HasPrefix(t.Token(head[0]), "▁") {
			if l.Tokens > 0 {
				l.Tokens += len(head)
			}
			ids, err := t.encode(mark+text, l)
			if err != nil || len(ids) >= len(head) && slices.Equal(ids[:len(head)], head) {
				return ids[min(len(head), len(ids)):], err
			}
		}
	}
	return t.encode(text, l)
}
