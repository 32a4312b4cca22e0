package tokenizer

import "unicode/utf8"

// wordPiece is greedy longest-match-first tokenization (Schuster and Nakajima 2012, as
// in BERT). A word that pieces cannot cover becomes one unknown token.
type wordPiece struct {
	vocab    *vocabulary
	unk      int32
	prefix   string
	maxChars int
	longest  int // bytes of the longest token
}

func newWordPiece(d *Model, v *vocabulary) (*wordPiece, error) {
	unk, err := unkID(d, v)
	if err != nil {
		return nil, err
	}
	m := &wordPiece{vocab: v, unk: unk, prefix: d.Prefix, maxChars: d.MaxWordChars}
	for e := range v.entries() {
		m.longest = max(m.longest, len(e.Token))
	}
	return m, nil
}

func (m *wordPiece) tokenize(ids []int32, word string) []int32 {
	if utf8.RuneCountInString(word) > m.maxChars {
		return append(ids, m.unk)
	}
	from := len(ids)
	for start := 0; start < len(word); {
		id, end, ok := m.longestAt(word, start)
		if !ok {
			return append(ids[:from], m.unk)
		}
		ids = append(ids, id)
		start = end
	}
	return ids
}

func (m *wordPiece) longestAt(word string, start int) (id int32, end int, ok bool) {
	prefix := ""
	if start > 0 {
		prefix = m.prefix
	}
	buf := append(make([]byte, 0, len(prefix)+len(word)-start), prefix...)
	buf = append(buf, word[start:]...)
	for end = min(len(word), start+m.longest); end > start; end-- {
		if end < len(word) && !utf8.RuneStart(word[end]) {
			continue
		}
		if id, ok = m.vocab.id(string(buf[:len(prefix)+end-start])); ok {
			return id, end, true
		}
	}
	return 0, 0, false
}

// wordLevel looks up whole words.
type wordLevel struct {
	vocab  *vocabulary
	unk    int32
	hasUnk bool
}

func newWordLevel(d *Model, v *vocabulary) (*wordLevel, error) {
	m := &wordLevel{vocab: v}
	if d.UnkToken != nil {
		m.unk, m.hasUnk = v.id(*d.UnkToken)
	}
	return m, nil
}

func (m *wordLevel) tokenize(ids []int32, word string) []int32 {
	if id, ok := m.vocab.id(word); ok {
		return append(ids, id)
	}
	if m.hasUnk {
		ids = append(ids, m.unk)
	}
	return ids
}
