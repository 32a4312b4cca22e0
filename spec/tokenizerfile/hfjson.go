package tokenizerfile

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// An hfFile is a tokenizer.json as written by Hugging Face tokenizers.
type hfFile struct {
	Added         []tokenizer.AddedToken `json:"added_tokens"`
	Normalizer    *tokenizer.Component   `json:"normalizer"`
	PreTokenizer  *tokenizer.Component   `json:"pre_tokenizer"`
	PostProcessor *tokenizer.Component   `json:"post_processor"`
	Decoder       *tokenizer.Component   `json:"decoder"`
	Model         json.RawMessage        `json:"model"`
}

type hfModel struct {
	Type         string          `json:"type"`
	UnkToken     *string         `json:"unk_token"`
	UnkID        *int            `json:"unk_id"`
	Prefix       *string         `json:"continuing_subword_prefix"`
	Suffix       *string         `json:"end_of_word_suffix"`
	FuseUnk      bool            `json:"fuse_unk"`
	ByteFallback bool            `json:"byte_fallback"`
	IgnoreMerges bool            `json:"ignore_merges"`
	MaxWordChars *int            `json:"max_input_chars_per_word"`
	Vocab        json.RawMessage `json:"vocab"`
	Merges       json.RawMessage `json:"merges"`
}

// parseHF parses tokenizer.json.
func parseHF(data []byte) (*tokenizer.Definition, error) {
	var f hfFile
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, err
	}
	if len(f.Model) == 0 || string(f.Model) == "null" {
		return nil, fmt.Errorf(`key "model" is missing; is this a file written by Hugging Face tokenizers?`)
	}
	var m hfModel
	if err := json.Unmarshal(f.Model, &m); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	d := &tokenizer.Definition{
		Added: f.Added, Normalizer: f.Normalizer, PreTokenizer: f.PreTokenizer,
		PostProcessor: f.PostProcessor, Decoder: f.Decoder,
	}
	if err := m.define(&d.Model); err != nil {
		return nil, fmt.Errorf("model: %w", err)
	}
	return d, nil
}

func (m *hfModel) define(out *tokenizer.Model) error {
	*out = tokenizer.Model{
		Type: m.kind(), UnkToken: m.UnkToken, UnkID: m.UnkID, FuseUnk: m.FuseUnk,
		ByteFallback: m.ByteFallback, IgnoreMerges: m.IgnoreMerges, MaxWordChars: 100,
	}
	if m.Prefix != nil {
		out.Prefix = *m.Prefix
	}
	if m.Suffix != nil {
		out.Suffix = *m.Suffix
	}
	if m.MaxWordChars != nil {
		out.MaxWordChars = *m.MaxWordChars
	}
	if out.Type == "Unigram" {
		return m.scoredVocab(out)
	}
	vocab := map[string]int32{}
	if err := json.Unmarshal(m.Vocab, &vocab); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	out.Vocab = tokenizer.SortedVocab(vocab)
	if out.Type != "BPE" {
		return nil
	}
	pairs, err := parseMerges(m.Merges)
	if err != nil {
		return err
	}
	out.Merges, err = resolveMerges(pairs, vocab, out.Prefix)
	return err
}

// kind returns the model type. Older files do not state it and are distinguished by
// their keys.
func (m *hfModel) kind() string {
	switch {
	case m.Type != "":
		return m.Type
	case len(m.Merges) > 0:
		return "BPE"
	case strings.HasPrefix(strings.TrimSpace(string(m.Vocab)), "["):
		return "Unigram"
	case m.MaxWordChars != nil:
		return "WordPiece"
	}
	return "WordLevel"
}

// scoredVocab decodes [["piece", score], …].
func (m *hfModel) scoredVocab(out *tokenizer.Model) error {
	var rows [][]any
	if err := json.Unmarshal(m.Vocab, &rows); err != nil {
		return fmt.Errorf("vocab: %w", err)
	}
	out.FuseUnk = true
	for i, row := range rows {
		if len(row) != 2 {
			return fmt.Errorf("vocab[%d]: expected [piece, score], found %d elements", i, len(row))
		}
		token, ok1 := row[0].(string)
		score, ok2 := row[1].(float64)
		if !ok1 || !ok2 {
			return fmt.Errorf("vocab[%d]: expected [piece, score], found [%T, %T]", i, row[0], row[1])
		}
		out.Vocab = append(out.Vocab, tokenizer.Entry{Token: token, ID: int32(i)})
		out.Scores = append(out.Scores, score)
	}
	return nil
}

// parseMerges parses both published forms: "a b" and ["a", "b"].
func parseMerges(data json.RawMessage) ([][2]string, error) {
	if len(data) == 0 {
		return nil, nil
	}
	var pairs [][]string
	if err := json.Unmarshal(data, &pairs); err == nil {
		out := make([][2]string, len(pairs))
		for i, p := range pairs {
			if len(p) != 2 {
				return nil, fmt.Errorf("merges[%d]: expected two pieces, found %d", i, len(p))
			}
			out[i] = [2]string{p[0], p[1]}
		}
		return out, nil
	}
	var lines []string
	if err := json.Unmarshal(data, &lines); err != nil {
		return nil, fmt.Errorf(`merges: expected a list of "left right" or ["left", "right"]: %w`, err)
	}
	return splitMerges(lines)
}

func splitMerges(lines []string) ([][2]string, error) {
	out := make([][2]string, len(lines))
	for i, line := range lines {
		left, right, ok := strings.Cut(line, " ")
		if !ok || strings.Contains(right, " ") {
			return nil, fmt.Errorf("merges[%d]: %.60q is not two pieces with one space between them", i, line)
		}
		out[i] = [2]string{left, right}
	}
	return out, nil
}

// resolveMerges converts pairs of pieces to merges of ids. The joined piece omits
// prefix from the right piece.
func resolveMerges(pairs [][2]string, vocab map[string]int32, prefix string) ([]tokenizer.Merge, error) {
	out := make([]tokenizer.Merge, len(pairs))
	for i, p := range pairs {
		left, ok1 := vocab[p[0]]
		right, ok2 := vocab[p[1]]
		tail := p[1]
		if len(tail) >= len(prefix) {
			tail = tail[len(prefix):]
		}
		into, ok3 := vocab[p[0]+tail]
		if !ok1 || !ok2 || !ok3 {
			return nil, fmt.Errorf("merges[%d]: %.40q + %.40q: a piece or the joined piece is not in the vocabulary", i, p[0], p[1])
		}
		out[i] = tokenizer.Merge{Left: left, Right: right, Into: into}
	}
	return out, nil
}
