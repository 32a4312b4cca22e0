package passes

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// lifetimes records the last use of each value of a graph. Ops are numbered in
// order of execution. Uses inside a region count as uses by the region's op,
// but ops in the body of a repeat have numbers of their own.
type lifetimes struct {
	at   map[*ir.Op]int    // number of an op; of a repeat, the number before its body
	end  map[*ir.Block]int // number after a block's last op, where its yield is read
	last map[*ir.Value]int // number of the last use; of an unused value, its definition
	next int
}

func lifetimesOf(g *ir.Graph) *lifetimes {
	l := &lifetimes{at: map[*ir.Op]int{}, end: map[*ir.Block]int{}, last: map[*ir.Value]int{}}
	l.block(g.Body)
	for _, op := range slices.Backward(slices.Collect(g.All())) {
		if op.Def.Name == "split" { // its parts may share the buffer of its argument
			for _, part := range op.Results {
				x := op.Args[0].Value
				l.last[x] = max(l.last[x], l.last[part])
			}
		}
	}
	return l
}

func (l *lifetimes) block(b *ir.Block) {
	for _, op := range b.Ops {
		at := l.next
		l.at[op] = at
		l.next++
		l.read(op, at)
		switch {
		case op.Def.Name == "repeat":
			l.block(op.Body)
			l.again(op.Body)
		case op.Body != nil:
			for o := range op.Body.All() {
				l.read(o, at)
			}
			for _, y := range op.Body.Yield {
				l.last[y] = at
			}
		}
		for _, r := range op.Results {
			l.last[r] = l.next - 1
		}
	}
	l.end[b] = l.next
	l.next++
	for _, y := range b.Yield {
		l.last[y] = l.end[b]
	}
}

func (l *lifetimes) read(op *ir.Op, at int) {
	for _, a := range op.Args {
		l.last[a.Value] = at
	}
}

// again extends the lifetime of values from outside a repeat that its body
// reads, to the end of the last iteration.
func (l *lifetimes) again(body *ir.Block) {
	own := map[*ir.Value]bool{}
	for _, p := range body.Params {
		own[p] = true
	}
	for op := range body.All() {
		for _, r := range op.Results {
			own[r] = true
		}
		if op.Body != nil {
			for _, p := range op.Body.Params {
				own[p] = true
			}
		}
	}
	outside := func(v *ir.Value) {
		if !own[v] {
			l.last[v] = l.end[body]
		}
	}
	for op := range body.All() {
		for _, a := range op.Args {
			outside(a.Value)
		}
	}
	for _, y := range body.Yield {
		outside(y)
	}
}
