package grammar

import (
	"slices"
	"sort"
)

// A spelled token is a token with its characters.
type spelled struct {
	runes runeSet
	id    int32
	chars uint8
}

// plainRunes are the characters of JSON strings that need no escape.
var plainRunes = func() runeSet {
	var s runeSet
	for c := byte(' '); c < 0x7F; c++ {
		if c != '"' && c != '\\' {
			s.add(c)
		}
	}
	s.add(beyond)
	return s
}()

// spell lists the tokens by their number of characters, and caches the most common set.
func (v *Vocabulary) spell() {
	var byLength [256][]spelled
	for _, id := range v.order {
		if runes, n := characters(v.text[id]); !runes.has(broken) {
			byLength[n] = append(byLength[n], spelled{runes, id, uint8(n)})
		}
	}
	v.spelled = slices.Concat(byLength[:]...)
	v.tokensOf(plainRunes)
}

// A tokenSet are all tokens whose characters are in one set.
type tokenSet struct {
	mask  []uint64
	ids   []int32 // fewest characters first
	chars []uint8 // of each id
	used  int     // when, for eviction
}

// maxTokenSets is the number of token sets that a vocabulary caches. One of 130,000 tokens
// needs 0.7 MB.
const maxTokenSets = 16

// tokensOf returns the tokens whose characters are in s, none of which is broken.
func (v *Vocabulary) tokensOf(s runeSet) *tokenSet {
	v.mu.Lock()
	v.uses++
	t := v.sets[s]
	if t != nil {
		t.used = v.uses
	}
	v.mu.Unlock()
	if t != nil {
		return t
	}
	t = &tokenSet{mask: make([]uint64, v.Words())}
	for i := range v.spelled {
		if w := &v.spelled[i]; w.runes.within(s) {
			t.mask[w.id/64] |= 1 << (w.id % 64)
			t.ids = append(t.ids, w.id)
			t.chars = append(t.chars, w.chars)
		}
	}
	v.mu.Lock()
	defer v.mu.Unlock()
	t.used = v.uses
	v.sets[s] = t
	if len(v.sets) > maxTokenSets {
		oldest := s
		for k, o := range v.sets {
			if o.used < v.sets[oldest].used {
				oldest = k
			}
		}
		delete(v.sets, oldest)
	}
	return t
}

// upTo copies to mask the tokens of at most n characters. It needs time for the tokens on
// the smaller side of the limit.
func (t *tokenSet) upTo(n int, mask []uint64) {
	k := sort.Search(len(t.chars), func(i int) bool { return int(t.chars[i]) > n })
	if k < len(t.ids)/2 {
		for _, id := range t.ids[:k] {
			mask[id/64] |= 1 << (id % 64)
		}
		return
	}
	copy(mask, t.mask)
	for _, id := range t.ids[k:] {
		mask[id/64] &^= 1 << (id % 64)
	}
}
