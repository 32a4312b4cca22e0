package speculate

import "fmt"

// A Tree is a draft: tokens that may follow the last token of a sequence. A
// node comes after its parent; a draft without branches is a path. The nodes of
// one parent have different tokens.
type Tree struct {
	Tokens []int32
	Parent []int32 // index of each node's parent; -1: it follows the sequence's last token
}

// Path makes a tree without branches.
func Path(tokens ...int32) Tree {
	t := Tree{Tokens: tokens, Parent: make([]int32, len(tokens))}
	for i := range t.Parent {
		t.Parent[i] = int32(i - 1)
	}
	return t
}

// Len is the number of nodes.
func (t Tree) Len() int { return len(t.Tokens) }

// Linear says that the tree is a path, whose rows lie where those of plain
// decoding do.
func (t Tree) Linear() bool {
	for i, p := range t.Parent {
		if int(p) != i-1 {
			return false
		}
	}
	return true
}

// Cut leaves the first n nodes, which are a tree too.
func (t Tree) Cut(n int) Tree {
	n = max(0, min(n, t.Len()))
	return Tree{t.Tokens[:n], t.Parent[:n]}
}

// Child is the node behind a parent (-1: the sequence's last token) that holds
// a token, or -1.
func (t Tree) Child(parent int, token int32) int {
	for i := parent + 1; i < t.Len(); i++ {
		if int(t.Parent[i]) == parent && t.Tokens[i] == token {
			return i
		}
	}
	return -1
}

// Depths gives each node's distance from the sequence's last token, from 1 on.
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

// Check refuses what is no tree of tokens below vocab.
func (t Tree) Check(vocab int) error {
	if len(t.Parent) != len(t.Tokens) {
		return fmt.Errorf("bug: a draft of %d tokens names %d parents", len(t.Tokens), len(t.Parent))
	}
	for i, p := range t.Parent {
		if p < -1 || int(p) >= i {
			return fmt.Errorf("bug: node %d of a draft has the parent %d; parents come first", i, p)
		}
		if id := t.Tokens[i]; id < 0 || int(id) >= vocab {
			return fmt.Errorf("bug: a draft holds token %d; the vocabulary has %d", id, vocab)
		}
	}
	return nil
}
