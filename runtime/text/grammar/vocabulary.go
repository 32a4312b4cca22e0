package grammar

import (
	"bytes"
	"fmt"
	"slices"
)

// A Vocabulary is a trie of the tokens' bytes, in depth-first order, and the tokens
// that end a text.
type Vocabulary struct {
	size  int
	text  [][]byte
	eos   []int32
	nodes []node
	same  []int32 // the next token with equal bytes, -1 at the end of the chain
}

// A node of the trie: its byte, the first token that ends here (-1: none), its depth
// from 1, and the index of the first node after its subtree.
type node struct {
	token int32
	skip  int32
	depth int32
	b     byte
}

// maxToken limits the depth of the trie.
const maxToken = 4096

// NewVocabulary builds the trie of size tokens. text returns the bytes that a token
// adds to a text. A token without bytes is never allowed, unless eos contains it.
func NewVocabulary(size int, text func(id int32) []byte, eos []int32) (*Vocabulary, error) {
	v := &Vocabulary{size: size, eos: slices.Clone(eos), text: make([][]byte, size), same: make([]int32, size)}
	var order []int32
	for id := range int32(size) {
		t := text(id)
		if len(t) > maxToken {
			return nil, fmt.Errorf("token %d has %d bytes, at most %d are allowed", id, len(t), maxToken)
		}
		v.text[id], v.same[id] = t, -1
		if len(t) > 0 && !slices.Contains(eos, id) {
			order = append(order, id)
		}
	}
	slices.SortStableFunc(order, func(a, b int32) int { return bytes.Compare(v.text[a], v.text[b]) })
	v.build(order)
	return v, nil
}

// build creates the nodes from tokens sorted by their bytes.
func (v *Vocabulary) build(order []int32) {
	var path []int32 // the path to the last token's node
	closeTo := func(depth int) {
		for len(path) > depth {
			v.nodes[path[len(path)-1]].skip = int32(len(v.nodes))
			path = path[:len(path)-1]
		}
	}
	var last []byte
	for _, id := range order {
		t := v.text[id]
		if bytes.Equal(t, last) {
			end := &v.nodes[path[len(path)-1]]
			v.same[id], end.token = end.token, id
			continue
		}
		common := 0
		for common < min(len(t), len(last)) && t[common] == last[common] {
			common++
		}
		closeTo(common)
		for d := common; d < len(t); d++ {
			path = append(path, int32(len(v.nodes)))
			v.nodes = append(v.nodes, node{token: -1, depth: int32(d + 1), b: t[d]})
		}
		v.nodes[path[len(path)-1]].token = id
		last = t
	}
	closeTo(0)
}

// Words returns the length of a mask in 64-bit words, with one bit per token.
func (v *Vocabulary) Words() int { return (v.size + 63) / 64 }

// Limits of the search for a mask. With 50,000 tokens, the mask inside a JSON string
// takes 0.16 million visits (2 ms); that of (.|\n)*[a-m ](.|\n){300} after eleven
// letters takes 0.31 million, mostly of states, which cost more (30 ms). A search that
// reaches the limit has taken about 0.4 s.
const (
	mostVisits = 4 << 20 // visited states of the network and nodes of the vocabulary
	tickVisits = 4 << 10 // visits between calls of tick
)

// ErrCostly reports a position at which the search for the mask exceeds its limit.
var ErrCostly = fmt.Errorf("%w: finding the next tokens takes more than %d steps; use fewer alternatives and shorter repetitions", ErrTooLarge, mostVisits)

// mask returns the tokens that are allowed at p. It releases the grammar's lock during
// calls of tick.
func (g *Grammar) mask(v *Vocabulary, p *position, tick func() error) ([]uint64, error) {
	if known := p.mask.Load(); known != nil {
		return *known, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	mask := make([]uint64, v.Words())
	at := []*position{p}
	visits, since := 0, 0
	for i, before := 0, g.visits; i < len(v.nodes); {
		if since += 1 + g.visits - before; since > tickVisits {
			if visits += since; visits > mostVisits {
				return nil, ErrCostly
			}
			since = 0
			g.mu.Unlock()
			err := tick()
			g.mu.Lock()
			if err != nil {
				return nil, err
			}
		}
		before = g.visits
		n := &v.nodes[i]
		q, err := g.step(at[n.depth-1], n.b)
		if err != nil {
			return nil, err
		}
		if q == dead {
			i = int(n.skip)
			continue
		}
		at = append(at[:n.depth], q)
		for id := n.token; id >= 0; id = v.same[id] {
			mask[id/64] |= 1 << (id % 64)
		}
		i++
	}
	if p.accept {
		for _, id := range v.eos {
			if id >= 0 && int(id) < v.size {
				mask[id/64] |= 1 << (id % 64)
			}
		}
	}
	if p.mask.CompareAndSwap(nil, &mask) {
		g.memory.add(8 * len(mask))
	}
	return mask, nil
}
