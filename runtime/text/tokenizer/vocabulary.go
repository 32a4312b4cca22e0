package tokenizer

import (
	"fmt"
	"hash/maphash"
	"iter"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// vocabulary maps between the model's tokens and ids, without added tokens. The tokens
// are stored in one string and the hash table holds only indices, which needs a fifth
// of the memory of strings and a map.
type vocabulary struct {
	text  string   // the tokens, in the order of the given list
	ends  []uint32 // end of each token in text
	ids   []int32  // id of each token; nil: its index
	place []int32  // index of each id, −1 for holes; nil: the id
	table []int32  // indices by hash of the token, −1: free
	seed  maphash.Seed
	count int // number of distinct tokens
}

// newVocabulary returns an error for ids that would need a table much larger than the
// list. Among entries with the same token or id, the last one wins.
func newVocabulary(entries []Entry) (*vocabulary, error) {
	limit := int32(4*len(entries) + 1<<16)
	v := &vocabulary{seed: maphash.MakeSeed(), ends: make([]uint32, 0, len(entries))}
	top, dense, total := int32(-1), true, 0
	for i, e := range entries {
		if e.ID < 0 || e.ID > limit {
			return nil, fmt.Errorf("vocabulary: token %.40q has id %d; expected 0 to %d for %d tokens", e.Token, e.ID, limit, len(entries))
		}
		top, dense, total = max(top, e.ID), dense && int(e.ID) == i, total+len(e.Token)
	}
	if total > math.MaxUint32 {
		return nil, fmt.Errorf("vocabulary: the tokens have %d bytes; at most %d are supported", total, math.MaxUint32)
	}
	var text strings.Builder
	text.Grow(total)
	for _, e := range entries {
		text.WriteString(e.Token)
		v.ends = append(v.ends, uint32(text.Len()))
	}
	v.text = text.String()
	if !dense {
		v.number(entries, top)
	}
	v.table = newPlaces(len(entries) + len(entries)/4)
	for i := range entries {
		if v.enter(i) {
			v.count++
		}
	}
	return v, nil
}

// number stores ids that differ from the indices in the list.
func (v *vocabulary) number(entries []Entry, top int32) {
	v.ids, v.place = make([]int32, len(entries)), make([]int32, top+1)
	for id := range v.place {
		v.place[id] = -1
	}
	for i, e := range entries {
		v.ids[i], v.place[e.ID] = e.ID, int32(i)
	}
}

// enter adds index i to the hash table. It returns false if it replaced an entry of the
// same token.
func (v *vocabulary) enter(i int) bool {
	token := v.at(i)
	slot := v.slot(token)
	fresh := v.table[slot] < 0
	v.table[slot] = int32(i)
	return fresh
}

// slot returns the table slot of a token, or a free one. The table always has a free
// slot.
func (v *vocabulary) slot(token string) int {
	mask := len(v.table) - 1
	at := int(maphash.String(v.seed, token)) & mask
	for v.table[at] >= 0 && v.at(int(v.table[at])) != token {
		at = (at + 1) & mask
	}
	return at
}

// at returns the token at an index of the list.
func (v *vocabulary) at(i int) string {
	from := uint32(0)
	if i > 0 {
		from = v.ends[i-1]
	}
	return v.text[from:v.ends[i]]
}

// size returns the number of ids, including holes.
func (v *vocabulary) size() int {
	if v.place != nil {
		return len(v.place)
	}
	return len(v.ends)
}

// id returns the id of a token.
func (v *vocabulary) id(token string) (int32, bool) {
	if len(v.table) == 0 {
		return 0, false
	}
	i := v.table[v.slot(token)]
	switch {
	case i < 0:
		return 0, false
	case v.ids != nil:
		return v.ids[i], true
	}
	return i, true
}

// token returns the token of an id below size, or "" for a hole.
func (v *vocabulary) token(id int32) string {
	i := id
	if v.place != nil {
		i = v.place[id]
	}
	if i < 0 {
		return ""
	}
	return v.at(int(i))
}

// entries iterates over the list that the vocabulary was built from.
func (v *vocabulary) entries() iter.Seq[Entry] {
	return func(yield func(Entry) bool) {
		for i := range v.ends {
			e := Entry{v.at(i), int32(i)}
			if v.ids != nil {
				e.ID = v.ids[i]
			}
			if !yield(e) {
				return
			}
		}
	}
}

// newPlaces returns an empty table with a power of two of slots, more than n.
func newPlaces(n int) []int32 {
	table := make([]int32, 1<<bits.Len(uint(n)))
	for i := range table {
		table[i] = -1
	}
	return table
}

// SortedVocab returns the entries of a vocabulary sorted by id.
func SortedVocab(vocab map[string]int32) []Entry {
	out := make([]Entry, 0, len(vocab))
	for token, id := range vocab {
		out = append(out, Entry{token, id})
	}
	slices.SortFunc(out, func(a, b Entry) int {
		if a.ID != b.ID {
			return int(a.ID) - int(b.ID)
		}
		return strings.Compare(a.Token, b.Token)
	})
	return out
}
