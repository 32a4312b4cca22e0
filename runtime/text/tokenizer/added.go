package tokenizer

import (
	"fmt"
	"strings"
	"unicode/utf8"
)

// addedVocabulary finds added and special tokens in text before the model tokenizes it:
// first tokens that match the raw text, then tokens that match normalized text.
type addedVocabulary struct {
	tokens  []AddedToken // in order of addition
	byID    map[int32]int
	ids     map[string]int32
	special map[string]bool
	written map[int32]string // what is decoded of tokens that match normalized text: their normalized content
	raw     *tokenMatcher
	normal  *tokenMatcher
	refuse  func(start, end int) bool // reports whether a special token in raw text must stay text; nil: never
	plain   func(*AddedToken) bool    // reports whether a token must stay text wherever it matches; nil: never
}

// MaxAddedToken limits the bytes of an added token, and thereby the work of matching.
const MaxAddedToken = 4096

// newAddedVocabulary assigns an id to every added token: its id in the model's
// vocabulary, else the next free one. Like the reference, it ignores the file's "id".
func newAddedVocabulary(added []AddedToken, v *vocabulary, n normalizer) (*addedVocabulary, error) {
	a := &addedVocabulary{byID: map[int32]int{}, ids: map[string]int32{}, special: map[string]bool{}, written: map[int32]string{}}
	top := int32(-1)
	for i, t := range added {
		if len(t.Content) > MaxAddedToken {
			return nil, fmt.Errorf("added_tokens[%d]: token has %d bytes; at most %d are allowed", i, len(t.Content), MaxAddedToken)
		}
		if !utf8.ValidString(t.Content) {
			return nil, fmt.Errorf("added_tokens[%d]: %.40q is not UTF-8", i, t.Content)
		}
		if t.Special && t.Content != "" {
			a.special[t.Content] = true
		}
		if t.Content == "" {
			continue
		}
		if id, known := a.ids[t.Content]; known { // a later entry replaces the matching options
			old := &a.tokens[a.byID[id]]
			old.LStrip, old.RStrip, old.SingleWord = t.LStrip, t.RStrip, t.SingleWord
			continue
		}
		id, ok := v.id(t.Content)
		if !ok {
			id = max(top+1, int32(v.count))
		}
		top = max(top, id)
		t.ID = id
		a.ids[t.Content] = id
		a.byID[id] = len(a.tokens)
		a.tokens = append(a.tokens, t)
	}
	a.raw, a.normal = &tokenMatcher{}, &tokenMatcher{}
	for _, special := range []bool{true, false} { // special tokens win ties
		for i, t := range a.tokens {
			if a.special[t.Content] != special {
				continue
			}
			if t.Normalized {
				a.written[t.ID] = n.normalize(t.Content)
				a.normal.add(a.written[t.ID], i)
			} else {
				a.raw.add(t.Content, i)
			}
		}
	}
	return a, nil
}

// segment is a piece of text, or an added token if token >= 0.
type segment struct {
	text  string
	token int // index into addedVocabulary.tokens
	first bool
}

// split splits text at the tokens of m. A token may include adjacent white space
// (lstrip, rstrip) or match only whole words (single_word).
func (a *addedVocabulary) split(out []segment, m *tokenMatcher, text string, first bool) []segment {
	done := 0
	emit := func(from, to, token int) {
		if from < to {
			out = append(out, segment{text[from:to], token, first && from == 0})
		}
	}
	for pos := 0; ; {
		start, end, index := m.find(text, pos)
		if index < 0 {
			break
		}
		t := &a.tokens[index]
		if a.plain != nil && a.plain(t) || a.refuse != nil && m == a.raw && a.special[t.Content] && a.refuse(start, end) {
			pos = start + 1
			continue
		}
		pos = end
		if t.SingleWord && (endsInWord(text[:start]) || beginsWithWord(text[end:])) {
			continue
		}
		if t.LStrip {
			start = max(done, len(strings.TrimRightFunc(text[:start], isSpace)))
		}
		if t.RStrip {
			end = len(text) - len(strings.TrimLeftFunc(text[end:], isSpace))
		}
		emit(done, start, -1)
		emit(min(start, end), end, index)
		done = end
	}
	emit(min(done, len(text)), len(text), -1)
	return out
}

func isSpace(r rune) bool { return spaceClass().Has(r) }

func endsInWord(s string) bool {
	r, n := utf8.DecodeLastRuneInString(s)
	return n > 0 && wordClass().Has(r)
}

func beginsWithWord(s string) bool {
	r, n := utf8.DecodeRuneInString(s)
	return n > 0 && wordClass().Has(r)
}

// tokenMatcher is a byte trie that finds the leftmost, then longest token.
type tokenMatcher struct {
	nodes []trieNode
	begin [256]bool
}

type trieNode struct {
	next  map[byte]int32
	token int // index+1 of the token that ends here
}

func (m *tokenMatcher) add(content string, index int) {
	if content == "" {
		return
	}
	if len(m.nodes) == 0 {
		m.nodes = append(m.nodes, trieNode{next: map[byte]int32{}})
	}
	m.begin[content[0]] = true
	at := int32(0)
	for i := range len(content) {
		to, ok := m.nodes[at].next[content[i]]
		if !ok {
			to = int32(len(m.nodes))
			m.nodes = append(m.nodes, trieNode{next: map[byte]int32{}})
			m.nodes[at].next[content[i]] = to
		}
		at = to
	}
	if m.nodes[at].token == 0 {
		m.nodes[at].token = index + 1
	}
}

// find returns the first match at or after pos; index < 0 means none.
func (m *tokenMatcher) find(text string, pos int) (start, end, index int) {
	if len(m.nodes) == 0 {
		return 0, 0, -1
	}
	for start = pos; start < len(text); start++ {
		if !m.begin[text[start]] {
			continue
		}
		if end, index = m.longestAt(text, start); index >= 0 {
			return start, end, index
		}
	}
	return 0, 0, -1
}

// longestAt returns the longest token that begins at start; index < 0 means none.
func (m *tokenMatcher) longestAt(text string, start int) (end, index int) {
	index = -1
	if len(m.nodes) == 0 {
		return 0, index
	}
	at := int32(0)
	for i := start; i < len(text); i++ {
		to, ok := m.nodes[at].next[text[i]]
		if !ok {
			break
		}
		if at = to; m.nodes[at].token > 0 {
			end, index = i+1, m.nodes[at].token-1
		}
	}
	return end, index
}
