package tokenizer

import (
	"fmt"
	"math"
	"strings"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/text/regexp"
)

// sentencePiece encodes like the SentencePiece library, including normalization, and
// looks up the pieces in a separate vocabulary.
type sentencePiece struct {
	vocab    *vocabulary
	unk      int32
	def      *SentencePiece
	norm     spNormalizer
	inner    *vocabulary
	lattice  lattice
	merges   mergeTable
	userText *tokenMatcher // user-defined pieces, never split or merged
	fallback map[byte]string
}

// Mark represents a space in pieces.
const Mark = "▁"

func newSentencePiece(d *Model, v *vocabulary) (*sentencePiece, error) {
	sp := d.SentencePiece
	if sp == nil || len(d.Scores) != len(d.Inner) {
		return nil, fmt.Errorf("model SentencePiece: %d scores for %d pieces", len(d.Scores), len(d.Inner))
	}
	unk, err := unkID(d, v)
	if err != nil {
		return nil, err
	}
	inner, err := newVocabulary(d.Inner)
	if err != nil {
		return nil, err
	}
	m := &sentencePiece{vocab: v, unk: unk, def: sp, inner: inner, userText: &tokenMatcher{}, fallback: map[byte]string{}}
	m.norm = spNormalizer{dummyPrefix: sp.DummyPrefix, removeSpaces: sp.RemoveSpaces, userText: m.userText}
	if m.norm.charsmap, err = parseCharsmap(sp.Charsmap); err != nil {
		return nil, err
	}
	m.scorePieces(d)
	ranks := make([]int32, len(d.Merges))
	for i, r := range d.Merges {
		n := uint32(min(len(d.Inner), inner.size()))
		if uint32(r.Left) >= n || uint32(r.Right) >= n || uint32(r.Into) >= n ||
			inner.token(r.Left)+inner.token(r.Right) != inner.token(r.Into) {
			return nil, fmt.Errorf("merges[%d]: ids %d + %d -> %d do not join pieces", i, r.Left, r.Right, r.Into)
		}
		if i > 0 {
			ranks[i] = ranks[i-1]
		}
		if i == 0 || d.Scores[r.Into] != d.Scores[d.Merges[i-1].Into] {
			ranks[i] = int32(i) // equal scores share a rank: the leftmost pair is merged first
		}
	}
	m.merges = newMergeTable(d.Merges, ranks)
	return m, nil
}

// scorePieces fills the lattice. User-defined pieces get a score that always wins
// (unigram_model.cc, PopulateNodes).
func (m *sentencePiece) scorePieces(d *Model) {
	l := &m.lattice
	l.scores, l.unk, l.single = make([]float64, m.inner.size()), -1, true
	lowest, highest := math.Inf(1), math.Inf(-1)
	for i, e := range d.Inner {
		if m.typeOf(e.ID) == PieceNormal {
			lowest, highest = min(lowest, d.Scores[i]), max(highest, d.Scores[i])
		}
	}
	l.unkScore = lowest - unkPenalty
	for i, e := range d.Inner {
		switch m.typeOf(e.ID) {
		case PieceNormal:
			l.scores[e.ID] = d.Scores[i]
			l.trie.add(e.Token, e.ID)
		case PieceUserDefined:
			l.scores[e.ID] = float64(utf8.RuneCountInString(e.Token))*highest - 0.1
			l.trie.add(e.Token, e.ID)
			m.userText.add(e.Token, int(e.ID))
		case PieceByte:
			if b, ok := byteToken(e.Token); ok {
				m.fallback[b] = e.Token
			}
		}
	}
}

func (m *sentencePiece) typeOf(id int32) int {
	if t, ok := m.def.Types[id]; ok {
		return t
	}
	return PieceNormal
}

func (m *sentencePiece) tokenize(ids []int32, text string) []int32 {
	if m.def.LanguageCodes && strings.HasPrefix(text, ">>") {
		if end := strings.Index(text, "<<"); end >= 0 {
			ids = append(ids, m.id(text[:end+2]))
			text = text[end+2:]
		}
	}
	text = m.norm.normalize(text)
	unknown := "" // adjacent unknown pieces count as one
	flush := func() {
		if unknown != "" {
			ids = m.appendUnknown(ids, unknown)
			unknown = ""
		}
	}
	m.segment(text, func(piece string, known bool) {
		if !known {
			unknown += piece
			return
		}
		flush()
		ids = append(ids, m.id(piece))
	})
	flush()
	return ids
}

func (m *sentencePiece) id(piece string) int32 {
	if id, ok := m.vocab.id(piece); ok {
		return id
	}
	return m.unk
}

func (m *sentencePiece) appendUnknown(ids []int32, text string) []int32 {
	if !m.def.ByteFallback {
		return append(ids, m.id(text))
	}
	for i := range len(text) {
		ids = append(ids, m.id(m.fallback[text[i]]))
	}
	return ids
}

// segment emits the pieces of normalized text from left to right.
func (m *sentencePiece) segment(text string, emit func(piece string, known bool)) {
	if m.def.BPE {
		m.segmentBPE(text, emit)
		return
	}
	best := m.lattice.viterbi(text)
	var path []regexp.Span
	for end := len(text); end > 0; end = int(best[end].start) {
		path = append(path, regexp.Span{Start: int(best[end].start), End: end})
	}
	for i := len(path) - 1; i >= 0; i-- {
		emit(text[path[i].Start:path[i].End], best[path[i].End].id >= 0)
	}
}

func (m *sentencePiece) segmentBPE(text string, emit func(piece string, known bool)) {
	for len(text) > 0 {
		start, end, user := m.userText.find(text, 0)
		if user < 0 {
			start, end = len(text), len(text)
		}
		m.mergeRun(text[:start], emit)
		if user >= 0 {
			emit(text[start:end], true)
		}
		text = text[end:]
	}
}

// mergeRun merges a run without user-defined pieces; symbols that are not pieces have
// negative ids.
func (m *sentencePiece) mergeRun(text string, emit func(piece string, known bool)) {
	var w mergeWord
	for i, r := range text {
		id, ok := m.inner.id(text[i : i+utf8.RuneLen(r)])
		if !ok || m.typeOf(id) != PieceNormal {
			id = -1
		}
		w.add(id)
	}
	w.mergeAll(&m.merges)
	for i := range w.symbols {
		s := &w.symbols[i]
		if !s.alive {
			continue
		}
		n := regexp.RuneLen(text, 0)
		if s.id >= 0 {
			n = len(m.inner.token(s.id))
		}
		emit(text[:n], s.id >= 0)
		text = text[n:]
	}
}
