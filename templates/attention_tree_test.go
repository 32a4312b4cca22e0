package templates

import (
	"fmt"
	"math/rand/v2"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/tensor"
)

// randomTree draws the masks and positions of n tokens of a sequence that are a
// tree behind the first of them.
func (c *attentionCase) randomTree(past, n int) {
	pos, masks := make([]int32, n), make([][]uint64, n)
	deep := c.r.IntN(3) // how often a token follows the one before it
	for i := range n {
		masks[i] = make([]uint64, c.maskWords)
		pos[i] = int32(past)
		if i > 0 {
			parent := i - 1
			if c.r.IntN(1+deep) == 0 {
				parent = c.r.IntN(i)
			}
			copy(masks[i], masks[parent])
			pos[i] = pos[parent] + 1
		}
		masks[i][i/64] |= 1 << (i % 64)
	}
	for i := range n {
		c.pos, c.mask = append(c.pos, pos[i]), append(c.mask, masks[i]...)
	}
}

// masked says whether token t sees the i-th token of its sequence in the step;
// ok: the sequence is a tree.
func (c *attentionCase) masked(t, i int) (sees, ok bool) {
	root := int(c.first[c.seq[t]]) * c.maskWords
	if !c.tree || c.mask[root]&1 == 0 {
		return false, false
	}
	return c.mask[t*c.maskWords+i/64]>>(i%64)&1 == 1, true
}

// path is the case in which the ancestors of token t, and t, are all that there
// is: as plain decoding has them, one behind the other. at lists them.
func (c *attentionCase) path(lib *attentionLib, kind, t int) (p *attentionCase, at []int) {
	s := c.seq[t]
	one := *c
	p = &one
	p.tree, p.mask = false, nil
	p.past, p.pageAt, p.page = c.past[s:s+1], []int32{0, c.pageAt[s+1] - c.pageAt[s]}, c.page[c.pageAt[s]:c.pageAt[s+1]]
	p.state = aligned(len(c.state))
	copy(p.state, c.state)
	p.pos, p.slot, p.seq, p.q, p.selected = nil, nil, nil, nil, nil
	for i := range t - int(c.first[s]) + 1 {
		if sees, _ := c.masked(t, i); !sees {
			continue
		}
		from, to := c.past[s]+int32(i), c.past[s]+int32(len(at))
		if from != to {
			purego.SyscallN(lib.move, address(p.state)+uintptr(int64(p.page[to/64])*c.pageBytes), uintptr(to%64),
				address(p.state)+uintptr(int64(p.page[from/64])*c.pageBytes), uintptr(from%64), uintptr(c.kvHeads), uintptr(c.dim), uintptr(c.vdim), uintptr(kind))
		}
		u := int(c.first[s]) + i
		p.pos, p.slot, p.seq = append(p.pos, to), append(p.slot, to), append(p.seq, 0)
		p.q = append(p.q, c.q[u*c.ldq:(u+1)*c.ldq]...)
		if c.selected != nil {
			p.selected = append(p.selected, c.selected[u*c.top:(u+1)*c.top]...)
		}
		at = append(at, u)
	}
	p.first = []int32{0, int32(len(at))}
	return p, at
}

// comparePaths checks that some tokens of trees get the bits of plain decoding.
func (c *attentionCase) comparePaths(r *rand.Rand, lib *attentionLib, dt tensor.DType, kind int, got []float32) error {
	for range 4 {
		t := r.IntN(c.tokens())
		if _, ok := c.masked(t, 0); !ok {
			continue
		}
		p, at := c.path(lib, kind, t)
		want := p.inParts(r, lib, dt, 1+r.IntN(3), 3)
		for i, u := range at {
			if !sameBits(got[u*c.ldo:(u+1)*c.ldo], want[i*c.ldo:(i+1)*c.ldo]) {
				return fmt.Errorf("token %d of the path %v has other bits than in plain decoding", u, at)
			}
		}
	}
	return nil
}
