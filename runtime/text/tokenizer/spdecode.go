package tokenizer

import (
	"strings"
	"unicode"
)

// spStage decodes like the slow SentencePiece tokenizers of transformers: the library
// decodes runs of pieces, special tokens are inserted between them unchanged, and the
// whole text is trimmed.
type spStage struct {
	whole wholeToken
	def   *SentencePiece
	types map[string]int // types of the pieces of the decoding model
	role  func(string) spRole

	texts   int    // number of finished sub-texts
	pending bool   // this sub-text contains tokens
	written bool   // this sub-text has produced text
	blanks  string // spaces held back at its end
	atStart bool   // the run has not produced text yet
	sawMark bool   // a mark was dropped at its start
}

type spRole uint8

const (
	spPlain    spRole = iota
	spSpecial         // between runs of one sub-text
	spSeparate        // forms a sub-text of its own
)

// newSPStage returns a maker of stages for a SentencePiece model.
func newSPStage(d *Definition, v *vocabulary, added *addedVocabulary) stageMaker {
	m := &d.Model
	types := make(map[string]int, len(m.Inner))
	for _, e := range m.Inner {
		types[e.Token] = PieceNormal
		if t, ok := m.SentencePiece.Types[e.ID]; ok {
			types[e.Token] = t
		}
	}
	if len(m.SentencePiece.Target) > 0 {
		inner := types
		types = make(map[string]int, len(m.SentencePiece.Target))
		for _, token := range m.SentencePiece.Target {
			types[token] = max(inner[token], PieceNormal)
		}
	}
	named := map[string]bool{}
	for _, token := range d.Config.Special {
		named[token] = true
	}
	role := func(token string) spRole {
		id, ok := added.ids[token]
		_, inVocab := v.id(token)
		switch {
		case !ok:
			return spPlain
		case !added.special[token] || (!inVocab && int(id) >= v.count && !named[token]):
			return spSeparate
		}
		return spSpecial
	}
	return func() decodeStage { return &spStage{def: m.SentencePiece, types: types, role: role, atStart: true} }
}

func (s *spStage) push(text string, begin, end bool, out sink) {
	token, ok := s.whole.add(text, begin, end)
	if !ok {
		return
	}
	switch s.role(token) {
	case spSeparate:
		s.endSubText(out)
		s.separate(out)
		out(token, true, true)
		s.texts++
		return
	case spSpecial:
		if s.def.SpaceAfterSpecial {
			token += " "
		}
		s.write(token, out)
		s.atStart, s.sawMark = true, false
	default:
		s.piece(token, out)
	}
	s.pending = true
}

// piece decodes one piece of a run (sentencepiece_processor.cc, Decode).
func (s *spStage) piece(token string, out sink) {
	if s.sawMark {
		s.atStart = false
	}
	text := token
	if s.def.Joined {
		s.write(strings.ReplaceAll(text, Mark, " "), out)
		return
	}
	switch s.types[token] {
	case PieceControl:
		text = ""
	case PieceUnknown:
		text = s.def.UnkSurface
	case 0: // not a piece: emit it unchanged
		if s.def.SpaceAfterSpecial {
			text = strings.ReplaceAll(text, Mark, " ")
		}
	default:
		if s.atStart && (s.def.DummyPrefix || s.def.RemoveSpaces) {
			rest, cut := strings.CutPrefix(text, Mark)
			text = rest
			s.sawMark = cut && !s.def.RemoveSpaces
		}
		text = strings.ReplaceAll(text, Mark, " ")
	}
	if text != "" {
		s.atStart = false
	}
	s.write(text, out)
}

// write emits text of the sub-text without leading and trailing spaces.
func (s *spStage) write(text string, out sink) {
	text = s.blanks + text
	s.blanks = ""
	if !s.written {
		text = strings.TrimLeftFunc(text, unicode.IsSpace)
	}
	body := strings.TrimRightFunc(text, unicode.IsSpace)
	s.blanks = text[len(body):]
	if body == "" {
		return
	}
	if !s.written {
		s.separate(out)
		s.written = true
	}
	out(body, true, true)
}

// separate emits the space between sub-texts.
func (s *spStage) separate(out sink) {
	if s.texts > 0 {
		out(" ", true, true)
	}
}

func (s *spStage) endSubText(sink) {
	if s.written {
		s.texts++
	}
	s.pending, s.written, s.blanks, s.atStart, s.sawMark = false, false, "", true, false
}

// flush ends the last sub-text, which counts even if it is empty.
func (s *spStage) flush(out sink) {
	if s.pending && !s.written {
		s.separate(out)
	}
	s.endSubText(out)
}
