package tokenizer

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"
	"unicode/utf8"
)

// maxLlama2CVocab bounds the vocabulary size that is believed.
const maxLlama2CVocab = 1 << 24

// FromLlama2C reads llama2.c's tokenizer.bin: a little-endian u32 with the
// longest token's length, then per token a float32 score, a u32 length and the
// text with blanks for SentencePiece's marks. The file does not hold the number
// of tokens; vocabSize <= 0 reads to its end.
func FromLlama2C(data []byte, vocabSize int) (*Tokenizer, error) {
	if vocabSize > maxLlama2CVocab {
		return nil, fmt.Errorf("tokenizer.bin: vocabulary of %d tokens asked for; at most %d are supported", vocabSize, maxLlama2CVocab)
	}
	r := &binaryReader{data: string(data), what: "tokenizer.bin"}
	r.bytes(4)
	var vocab []vocabEntry
	var scores []float64
	for id := int32(0); r.err == nil && (int(id) < vocabSize || (vocabSize <= 0 && r.pos < len(data))); id++ {
		head := []byte(r.bytes(8))
		if r.err != nil {
			break
		}
		score := math.Float32frombits(binary.LittleEndian.Uint32(head))
		text := r.bytes(uint64(binary.LittleEndian.Uint32(head[4:])))
		if score != score || !utf8.ValidString(text) {
			r.fail(fmt.Sprintf("token %d has invalid UTF-8 or a score that is not a number", id))
		}
		vocab = append(vocab, vocabEntry{llama2CToken(text), id})
		scores = append(scores, float64(score))
	}
	if r.err != nil {
		return nil, r.err
	}
	if len(vocab) < 3 {
		return nil, fmt.Errorf("tokenizer.bin: %d tokens; expected at least <unk>, <s> and </s>", len(vocab))
	}
	d := scoredBPEDefinition(vocab, scores, true)
	d.Model.UnkToken = ptr(vocab[0].Token)
	d.PostProcessor = templateOf([]edgeToken{{vocab[1].Token, 1}}, nil)
	d.Config.Special = map[string]string{"unk": vocab[0].Token, "bos": vocab[1].Token, "eos": vocab[2].Token}
	for _, v := range vocab[:3] {
		d.Added = append(d.Added, addedToken{ID: v.ID, Content: v.Token, Special: true})
	}
	t, err := build(d)
	if err != nil {
		return nil, wrap("tokenizer.bin", err)
	}
	return t, nil
}

// llama2CToken turns the exporter's spelling back into the model's: newlines
// around BOS and EOS go, blanks become marks.
func llama2CToken(text string) string {
	switch text {
	case "\n<s>\n", "\n</s>\n":
		return text[1 : len(text)-1]
	}
	return strings.ReplaceAll(text, " ", mark)
}
