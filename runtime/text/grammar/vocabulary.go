package grammar

import (
	"bytes"
	"cmp"
	"fmt"
	"slices"
	"sync"
)

// A Vocabulary is a trie of the tokens' bytes and the tokens that end a text.
type Vocabulary struct {
	size  int
	text  [][]byte
	eos   []int32
	order []int32 // the tokens of the trie, sorted by their bytes
	nodes []node  // the root, its children, their children and so on

	// The tokens of the trie by their number of characters, fewest first.
	spelled []spelled

	// For arrays with unique items: the tokens that contain a bracket, and those that may
	// leave a string and go on behind it.
	opening, leaving []int32
	rank             []int32 // of each token in order

	mu   sync.Mutex
	sets map[runeSet]*tokenSet // a cache; see tokensOf
	uses int                   // of sets
}

// A node of the trie. The children of a node are neighbors, because a walk visits most of
// them.
type node struct {
	below       runeSet // the characters of the texts below, if chars > 0
	first, last int32   // order[first:last] are the tokens that end here
	kids        int32   // index of the first child; 0: there is none
	others      uint8   // number of children after the first
	b           byte
	longest     uint8 // most characters of the texts below; 255: or more
	chars       uint8 // characters up to here, the last one perhaps incomplete; 0: too many, or not UTF-8
}

// children returns the indices of a node's first child and of the node after its last.
func (n *node) children() (from, to int32) {
	if n.kids == 0 {
		return 0, 0
	}
	return n.kids, n.kids + int32(n.others) + 1
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
			v.classify(id)
		}
	}
	slices.SortFunc(v.order, func(a, b int32) int {
		return cmp.Or(bytes.Compare(v.text[a], v.text[b]), cmp.Compare(a, b))
	})
	v.rank = make([]int32, size)
	for i, id := range v.order {
		v.rank[id] = int32(i)
	}
	v.build()
	v.describe()
	v.spell()
	return v, nil
}

// classify adds a token to the lists of tokens with JSON's structure.
func (v *Vocabulary) classify(id int32) {
	const structural = "[]{},"
	if bytes.ContainsAny(v.text[id], "[{") {
		v.opening = append(v.opening, id)
	}
	if _, behind, ok := bytes.Cut(v.text[id], []byte{'"'}); ok && bytes.ContainsAny(behind, structural) {
		v.leaving = append(v.leaving, id)
	}
}

// along appends to list the tokens that a text begins with, and those that begin with
// the text.
func (v *Vocabulary) along(list []int32, text string) []int32 {
	n := &v.nodes[0]
	for i := range len(text) {
		from, to := n.children()
		k, ok := slices.BinarySearchFunc(v.nodes[from:to], text[i], func(n node, c byte) int { return int(n.b) - int(c) })
		if !ok {
			return list
		}
		n = &v.nodes[int(from)+k]
		list = append(list, v.order[n.first:n.last]...)
	}
	for _, id := range v.order[n.last:] { // sorted, so those of the subtree come first
		if !bytes.HasPrefix(v.text[id], []byte(text)) {
			break
		}
		list = append(list, id)
	}
	return list
}

// build creates the nodes from the sorted tokens.
func (v *Vocabulary) build() {
	type span struct{ from, to, depth int32 } // of order: the tokens of a subtree
	spans := []span{{0, int32(len(v.order)), 0}}
	v.nodes = make([]node, 1, 5*len(v.order)/2+1) // tokenizers have two nodes a token
	for i := 0; i < len(v.nodes); i++ {
		s := spans[i]
		at := s.from
		for at < s.to && len(v.text[v.order[at]]) == int(s.depth) {
			at++
		}
		n := &v.nodes[i]
		n.first, n.last = s.from, at
		if at == s.to {
			continue
		}
		n.kids = int32(len(v.nodes))
		for at < s.to {
			b, from := v.text[v.order[at]][s.depth], at
			for at < s.to && v.text[v.order[at]][s.depth] == b {
				at++
			}
			v.nodes = append(v.nodes, node{b: b})
			spans = append(spans, span{from, at, s.depth + 1})
		}
		v.nodes[i].others = uint8(int32(len(v.nodes)) - v.nodes[i].kids - 1)
	}
}

// Words returns the length of a mask in 64-bit words, with one bit per token.
func (v *Vocabulary) Words() int { return (v.size + 63) / 64 }
