package tokenizer

import (
	"fmt"
	"math"
	"unicode/utf8"
)

// unigram is the language-model segmentation of Kudo (2018): the path of
// pieces with the highest sum of log probabilities, found by Viterbi search.
type unigram struct {
	vocab    *vocabulary
	scores   []float64
	trie     pieceTrie
	unk      int32
	hasUnk   bool
	unkScore float64
	fuseUnk  bool
	bytes    [256]int32
	fallback bool
	cache    wordCache
}

// unkPenalty is what an unknown character costs beyond the worst piece
// (SentencePiece, unigram_model.cc).
const unkPenalty = 10

func newUnigram(d *modelDef, v *vocabulary) (*unigram, error) {
	if len(d.Scores) != len(d.Vocab) {
		return nil, fmt.Errorf("vocab: %d scores for %d pieces", len(d.Scores), len(d.Vocab))
	}
	m := &unigram{vocab: v, scores: make([]float64, len(v.tokens)), fuseUnk: d.FuseUnk}
	lowest := math.Inf(1)
	for i, e := range d.Vocab {
		if math.IsNaN(d.Scores[i]) {
			return nil, fmt.Errorf("vocab[%d]: score is not a number", i)
		}
		m.scores[e.ID] = d.Scores[i]
		lowest = min(lowest, d.Scores[i])
		if v.ids[e.Token] == e.ID {
			m.trie.add(e.Token, e.ID)
		}
	}
	if d.UnkID != nil {
		if *d.UnkID < 0 || *d.UnkID >= len(v.tokens) {
			return nil, fmt.Errorf("model.unk_id %d is outside the vocabulary of %d pieces", *d.UnkID, len(v.tokens))
		}
		m.unk, m.hasUnk = int32(*d.UnkID), true
	}
	m.unkScore = lowest - unkPenalty
	m.fallback = d.ByteFallback
	for b := range 256 {
		id, ok := v.ids[fmt.Sprintf("<0x%02X>", b)]
		if !ok {
			id = -1
		}
		m.bytes[b] = id
	}
	m.cache.init()
	return m, nil
}

// pieceTrie is a byte trie in two flat maps-free arrays: children are found
// through one hash of (node, byte).
type pieceTrie struct {
	edges map[uint64]int32
	ids   []int32 // by node; -1: no piece ends here
}

func (t *pieceTrie) add(s string, id int32) {
	if t.edges == nil {
		t.edges = map[uint64]int32{}
		t.ids = []int32{-1}
	}
	at := int32(0)
	for i := range len(s) {
		key := uint64(at)<<8 | uint64(s[i])
		to, ok := t.edges[key]
		if !ok {
			to = int32(len(t.ids))
			t.ids = append(t.ids, -1)
			t.edges[key] = to
		}
		at = to
	}
	if at > 0 {
		t.ids[at] = id
	}
}

// bestPath is the best way to reach one byte position.
type bestPath struct {
	score float64
	start int32 // where the last piece begins; -1: not reached
	id    int32
}

func (m *unigram) tokenize(ids []int32, piece string) []int32 {
	if piece == "" {
		return ids
	}
	if known, ok := m.cache.get(piece); ok {
		return append(ids, known...)
	}
	from := len(ids)
	ids = m.emit(ids, piece, m.viterbi(piece))
	m.cache.put(piece, ids[from:])
	return ids
}

// viterbi fills the best path to every position; of equal scores the one found
// first stays.
func (m *unigram) viterbi(s string) []bestPath {
	best := make([]bestPath, len(s)+1)
	for i := range best {
		best[i].start = -1
	}
	best[0].start = 0
	for at := 0; at < len(s); {
		here := best[at].score
		width := runeLen(s, at)
		single := false
		node := int32(0)
		for end := at; end < len(s); {
			to, ok := m.trie.edges[uint64(node)<<8|uint64(s[end])]
			if !ok {
				break
			}
			node = to
			end++
			id := m.trie.ids[node]
			if id < 0 {
				continue
			}
			relax(&best[end], here+m.scores[id], at, id)
			single = single || end-at == width
		}
		if !single {
			relax(&best[at+width], here+m.unkScore, at, m.unk)
		}
		at += width
	}
	return best
}

func relax(b *bestPath, score float64, start int, id int32) {
	if b.start < 0 || score > b.score {
		*b = bestPath{score, int32(start), id}
	}
}

// emit walks the best path backwards; neighbouring unknown characters become
// one token, unknown text is spelled in byte tokens where that is asked for.
func (m *unigram) emit(ids []int32, s string, best []bestPath) []int32 {
	var path []span
	for end := len(s); end > 0; {
		start := int(best[end].start)
		unknown := m.hasUnk && best[end].id == m.unk
		if n := len(path); unknown && m.fuseUnk && n > 0 && path[n-1].start == end && m.hasUnk && best[path[n-1].end].id == m.unk {
			path[n-1].start = start
		} else {
			path = append(path, span{start, end})
		}
		end = start
	}
	for i := len(path) - 1; i >= 0; i-- {
		ids = m.appendPiece(ids, s[path[i].start:path[i].end])
	}
	return ids
}

func (m *unigram) appendPiece(ids []int32, s string) []int32 {
	if id, ok := m.vocab.ids[s]; ok {
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
