package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// unigram is the unigram language model segmentation (Kudo 2018): the sequence of
// pieces with the highest sum of log probabilities, found by Viterbi search.
type unigram struct {
	vocab    *vocabulary
	lattice  lattice
	unk      int32
	hasUnk   bool
	fuseUnk  bool
	bytes    [256]int32
	fallback bool
	cache    wordCache
}

// unkPenalty is the penalty of an unknown character below the lowest score of a piece
// (SentencePiece, unigram_model.cc).
const unkPenalty = 10

func newUnigram(d *Model, v *vocabulary) (*unigram, error) {
	if len(d.Scores) != len(d.Vocab) {
		return nil, fmt.Errorf("vocab: %d scores for %d pieces", len(d.Scores), len(d.Vocab))
	}
	m := &unigram{vocab: v, fuseUnk: d.FuseUnk}
	m.lattice.scores = make([]float64, v.size())
	lowest := math.Inf(1)
	for i, e := range d.Vocab {
		if math.IsNaN(d.Scores[i]) {
			return nil, fmt.Errorf("vocab[%d]: score is not a number", i)
		}
		m.lattice.scores[e.ID] = d.Scores[i]
		lowest = min(lowest, d.Scores[i])
		if id, _ := v.id(e.Token); id == e.ID {
			m.lattice.trie.add(e.Token, e.ID)
		}
	}
	if d.UnkID != nil {
		if *d.UnkID < 0 || *d.UnkID >= v.size() {
			return nil, fmt.Errorf("model.unk_id %d is outside the vocabulary of %d pieces", *d.UnkID, v.size())
		}
		m.unk, m.hasUnk = int32(*d.UnkID), true
	}
	m.lattice.unk, m.lattice.unkScore = m.unk, lowest-unkPenalty
	m.fallback = d.ByteFallback
	for b := range 256 {
		id, ok := v.id(fmt.Sprintf("<0x%02X>", b))
		if !ok {
			id = -1
		}
		m.bytes[b] = id
	}
	m.cache.init()
	return m, nil
}

func (m *unigram) tokenize(ids []int32, piece string) []int32 {
	if piece == "" {
		return ids
	}
	if known, ok := m.cache.get(piece); ok {
		return append(ids, known...)
	}
	from := len(ids)
	ids = m.emit(ids, piece, m.lattice.viterbi(piece))
	m.cache.put(piece, ids[from:])
	return ids
}

// emit walks the best path backwards. Adjacent unknown characters become one token, or
// byte tokens with byte fallback.
func (m *unigram) emit(ids []int32, s string, best []bestPath) []int32 {
	var path []regexp.Span
	for end := len(s); end > 0; {
		start := int(best[end].start)
		unknown := m.hasUnk && best[end].id == m.unk
		if n := len(path); unknown && m.fuseUnk && n > 0 && path[n-1].Start == end && m.hasUnk && best[path[n-1].End].id == m.unk {
			path[n-1].Start = start
		} else {
			path = append(path, regexp.Span{Start: start, End: end})
		}
		end = start
	}
	for i := len(path) - 1; i >= 0; i-- {
		ids = m.appendPiece(ids, s[path[i].Start:path[i].End])
	}
	return ids
}

func (m *unigram) appendPiece(ids []int32, s string) []int32 {
	if id, ok := m.vocab.id(s); ok {
		return append(ids, id)
	}
	if m.fallback && m.hasBytes(s) {
		for i := range len(s) {
			ids = append(ids, m.bytes[s[i]])
		}
		return ids
	}
	if m.hasUnk {
		ids = append(ids, m.unk)
	}
	return ids
}

func (m *unigram) hasBytes(s string) bool {
	for i := range len(s) {
		if m.bytes[s[i]] < 0 {
			return false
		}
	}
	return utf8.ValidString(s)
}
