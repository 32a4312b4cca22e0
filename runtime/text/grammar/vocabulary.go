package grammar

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// A Vocabulary is a trie of the tokens' bytes, in depth-first order, and the tokens
// that end a text.
type Vocabulary struct {
	size  int
	text  [][]byte
	eos   []int32
	order []int32 // the tokens of the trie, sorted by their bytes
	nodes []node  // the last one ends the list and is in no subtree

	// The tokens of the trie by their number of characters, fewest first.
	spelled []spelled

	mu   sync.Mutex
	sets map[runeSet]*tokenSet // a cache; see tokensOf
	uses int                   // of sets
}

// A node of the trie. The tokens that end at node i are those of order from its first
// to that of node i+1; those of its subtree end at the first of node skip.
type node struct {
	below   runeSet // the characters of the texts below, if chars > 0
	first   int32   // index in order
	skip    int32   // index of the first node after the subtree
	depth   uint16  // from 1
	b       byte
	longest uint8 // most characters of these texts; 255: or more
	chars   uint8 // characters up to here, the last one perhaps incomplete; 0: too many, or not UTF-8
}

// maxToken limits the depth of the trie.
const maxToken = 4096

// NewVocabulary builds the trie of size tokens. text returns the bytes that a token
// adds to a text. A token without bytes is never allowed, unless eos contains it.
func NewVocabulary(size int, text func(id int32) []byte, eos []int32) (*Vocabulary, error) {
	v := &Vocabulary{size: size, eos: slices.Clone(eos), text: make([][]byte, size), sets: map[runeSet]*tokenSet{}}
	for id := range int32(size) {
		t := text(id)
		if len(t) > maxToken {
			return nil, fmt.Errorf("token %d has %d bytes, at most %d are allowed", id, len(t), maxToken)
		}
		v.text[id] = t
		if len(t) > 0 && !slices.Contains(eos, id) {
			v.order = append(v.order, id)
		}
	}
	slices.SortFunc(v.order, func(a, b int32) int {
		return cmp.Or(bytes.Compare(v.text[a], v.text[b]), cmp.Compare(a, b))
	})
	v.build()
	v.describe()
	v.spell()
	return v, nil
}

// build creates the nodes from the sorted tokens.
func (v *Vocabulary) build() {
	var path []int32 // the path to the last token's node
	closeTo := func(depth int) {
		for len(path) > depth {
			v.nodes[path[len(path)-1]].skip = int32(len(v.nodes))
			path = path[:len(path)-1]
		}
	}
	v.nodes = make([]node, 0, 5*len(v.order)/2) // tokenizers have two nodes a token
	var last []byte
	for i, id := range v.order {
		t := v.text[id]
		if bytes.Equal(t, last) {
			continue
		}
		common := 0
		for common < min(len(t), len(last)) && t[common] == last[common] {
			common++
		}
		closeTo(common)
		for d := common; d < len(t); d++ {
			path = append(path, int32(len(v.nodes)))
			v.nodes = append(v.nodes, node{first: int32(i), depth: uint16(d + 1), b: t[d]})
		}
		last = t
	}
	closeTo(0)
	v.nodes = append(v.nodes, node{first: int32(len(v.order)), skip: int32(len(v.nodes) + 1)})
}

// Words returns the length of a mask in 64-bit words, with one bit per token.
func (v *Vocabulary) Words() int { return (v.size + 63) / 64 }

// set sets the bits of the tokens order[from:to].
func (v *Vocabulary) set(mask []uint64, from, to int32) {
	for _, id := range v.order[from:to] {
		mask[id/64] |= 1 << (id % 64)
	}
}
