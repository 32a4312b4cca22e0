package tokenizer

import (
	"encoding/binary"
	"fmt"
	"strings"
	"unicode/utf8"
)

// charsmap is SentencePiece's precompiled normalization: a darts-clone double-array
// trie that maps byte strings to offsets into a table of replacements.
type charsmap struct {
	trie   []uint32
	values string
}

// newCharsmap returns a normalizer; empty data changes nothing.
func newCharsmap(data []byte) (normalizer, error) {
	m, err := parseCharsmap(data)
	if m == nil {
		return normalizerSequence{}, err
	}
	return m, err
}

// parseCharsmap parses a little-endian uint32 with the trie's size in bytes, the trie,
// and the zero-terminated replacements. It returns nil for empty data.
func parseCharsmap(data []byte) (*charsmap, error) {
	if len(data) == 0 {
		return nil, nil
	}
	if len(data) < 4 {
		return nil, fmt.Errorf("precompiled_charsmap: %d bytes; expected at least 4", len(data))
	}
	size := binary.LittleEndian.Uint32(data)
	if size%4 != 0 || uint64(size) > uint64(len(data)-4) {
		return nil, fmt.Errorf("precompiled_charsmap: trie of %d bytes does not fit in %d bytes", size, len(data)-4)
	}
	m := &charsmap{trie: make([]uint32, size/4), values: string(data[4+size:])}
	for i := range m.trie {
		m.trie[i] = binary.LittleEndian.Uint32(data[4+4*i:])
	}
	return m, nil
}

// lookup returns the replacement of the shortest prefix of key in the table, and
// whether there is one, like Hugging Face's transform.
func (m *charsmap) lookup(key string) (text string, ok bool) {
	m.prefixes(key, func(value uint32, _ int) bool {
		text, ok = m.value(value)
		return false
	})
	return text, ok
}

// longest returns the replacement of the longest prefix of s in the table.
func (m *charsmap) longest(s string) (text string, used int, ok bool) {
	m.prefixes(s, func(value uint32, n int) bool {
		text, ok = m.value(value)
		used = n
		return true
	})
	return text, used, ok
}

// prefixes calls visit for the prefixes of key in the trie, shortest first, until visit
// returns false.
func (m *charsmap) prefixes(key string, visit func(value uint32, n int) bool) {
	if len(m.trie) == 0 {
		return
	}
	at := trieOffset(m.trie[0])
	for i := range len(key) {
		at ^= uint32(key[i])
		if key[i] == 0 || at >= uint32(len(m.trie)) {
			return
		}
		unit := m.trie[at]
		if unit&(1<<31|0xff) != uint32(key[i]) {
			return
		}
		at ^= trieOffset(unit)
		if unit>>8&1 == 0 {
			continue
		}
		if at >= uint32(len(m.trie)) || !visit(m.trie[at]&(1<<31-1), i+1) {
			return
		}
	}
}

func trieOffset(unit uint32) uint32 { return unit >> 10 << (unit & (1 << 9) >> 6) }

func (m *charsmap) value(offset uint32) (string, bool) {
	if uint64(offset) > uint64(len(m.values)) {
		return "", false
	}
	text, _, _ := strings.Cut(m.values[offset:], "\x00")
	return text, true
}

// normalize replaces whole grapheme clusters shorter than 6 bytes if the table contains
// them, and single characters otherwise.
func (m *charsmap) normalize(s string) string {
	var b strings.Builder
	b.Grow(len(s))
	for len(s) > 0 {
		n := graphemeLen(s)
		cluster := s[:n]
		s = s[n:]
		if n < 6 {
			if text, ok := m.lookup(cluster); ok {
				b.WriteString(text)
				continue
			}
		}
		for i, r := range cluster {
			char := cluster[i : i+utf8.RuneLen(r)]
			if text, ok := m.lookup(char); ok {
				b.WriteString(text)
				continue
			}
			b.WriteString(char)
		}
	}
	return b.String()
}
