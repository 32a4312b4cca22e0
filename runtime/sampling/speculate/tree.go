package speculate

import "fmt"

// A Tree is a draft: tokens that may follow the last token of a sequence. Parents
// precede their children, and the children of a node have different tokens. A tree
// without branches is a path.
type Tree struct {
	Tokens []int32
	Parent []int32 // index of each node's parent; -1: the sequence's last token
}

// Path returns a tree without branches.
func Path(tokens ...int32) Tree {
	t := Tree{Tokens: tokens, Parent: make([]int32, len(tokens))}
	for i := range t.Parent {
		t.Parent[i] = int32(i - 1)
	}
	return t
}

// Len returns the number of nodes.
func (t Tree) Len() int { return len(t.Tokens) }

// Linear reports whether the tree is a path. The KV cache rows of a path are laid out
// as in plain decoding.
func (t Tree) Linear() bool {
	for i, p := range t.Parent {
		if int(p) != i-1 {
			return false
		}
	}
	return true
}

// Cut returns the tree of the first n nodes.
func (t Tree) Cut(n int) Tree {
	n = max(0, min(n, t.Len()))
	return Tree{t.Tokens[:n], t.Parent[:n]}
}

// Child returns the child of a node (-1: of the sequence's last token) with the given
// token, or -1.
func (t Tree) Child(parent int, token int32) int {
	for i := parent + 1; i < t.Len(); i++ {
		if int(t.Parent[i]) == parent && t.Tokens[i] == token {
			return i
		}
	}
	return -1
}

// Depths returns each node's distance from the sequence's last token, counted from 1.
func (t Tree) Depths() []int32 {
	d := make([]int32, t.Len())
	for i, p := range t.Parent {
		d[i] = 1
		if p >= 0 {
			d[i] = d[p] + 1
		}
	}
	return d
}

// Check returns an error if t is not a valid tree of tokens below vocab.
func (t Tree) Check(vocab int) error {
	if len(t.Parent) != len(t.Tokens) {
		return fmt.Errorf("bug: a draft of %d tokens with %d parents", len(t.Tokens), len(t.Parent))
	}
	for i, p := range t.Parent {
		if p < -1 || int(p) >= i {
			return fmt.Errorf("bug: node %d of a draft has parent %d, which must precede it", i, p)
		}
		if id := t.Tokens[i]; id < 0 || int(id) >= vocab {
			return fmt.Errorf("bug: token %d in a draft; the vocabulary has %d", id, vocab)
		}
	}
	return nil
}
