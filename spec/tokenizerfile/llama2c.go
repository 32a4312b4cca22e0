package tokenizerfile

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// maxLlama2CVocab is the maximum accepted vocabulary size.
const maxLlama2CVocab = 1 << 24

// FromLlama2C reads llama2.c's tokenizer.bin: a little-endian u32 with the length of
// the longest token, then per token a float32 score, a u32 length and the text, with
// spaces in place of SentencePiece's "▁". The file does not state the number of
// tokens; if vocabSize <= 0, FromLlama2C reads to the end of data.
func FromLlama2C(data []byte, vocabSize int) (*tokenizer.Tokenizer, error) {
	if vocabSize > maxLlama2CVocab {
		return nil, fmt.Errorf("tokenizer.bin: vocabulary size %d; want at most %d", vocabSize, maxLlama2CVocab)
	}
	var vocab []tokenizer.Entry
	var scores []float64
	for at := 4; len(vocab) < vocabSize || vocabSize <= 0 && at < len(data); {
		id := len(vocab)
		if len(data)-at < 8 {
			return nil, fmt.Errorf("tokenizer.bin: offset %d: token %d expected, %d bytes left", at, id, max(len(data)-at, 0))
		}
		score, n := math.Float32frombits(binary.LittleEndian.Uint32(data[at:])), binary.LittleEndian.Uint32(data[at+4:])
		if at += 8; uint64(n) > uint64(len(data)-at) {
			return nil, fmt.Errorf("tokenizer.bin: offset %d: %d bytes expected, %d left", at, n, len(data)-at)
		}
		text := string(data[at : at+int(n)])
		at += int(n)
		if score != score || !utf8.ValidString(text) {
			return nil, fmt.Errorf("tokenizer.bin: offset %d: token %d has invalid UTF-8 or a score that is not a number", at, id)
		}
		vocab = append(vocab, tokenizer.Entry{Token: llama2CToken(text), ID: int32(id)})
		scores = append(scores, float64(score))
	}
	if len(vocab) < 3 {
		return nil, fmt.Errorf("tokenizer.bin: %d tokens; expected at least <unk>, <s> and </s>", len(vocab))
	}
	d := pieceDefinition(vocab, true)
	d.Model.Merges = mergesFromScores(vocab, scores)
	d.Model.UnkToken = ptr(vocab[0].Token)
	d.PostProcessor = templateOf([]edgeToken{{vocab[1].Token, 1}}, nil)
	d.Config.Special = map[string]string{"unk": vocab[0].Token, "bos": vocab[1].Token, "eos": vocab[2].Token}
	for _, v := range vocab[:3] {
		d.Added = append(d.Added, tokenizer.AddedToken{ID: v.ID, Content: v.Token, Special: true})
	}
	t, err := tokenizer.New(d)
	if err != nil {
		return nil, wrap("tokenizer.bin", err)
	}
	return t, nil
}

// llama2CToken restores the model's form of a token: it removes the newlines around
// BOS and EOS and replaces spaces by "▁".
func llama2CToken(text string) string {
	switch text {
	case "\n<s>\n", "\n</s>\n":
		return text[1 : len(text)-1]
	}
	return strings.ReplaceAll(text, " ", tokenizer.Mark)
}
