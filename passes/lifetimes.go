package passes

import (
	"slices"

	"github.com/iflowc/iflowc/ir"
)

// lifetimes says when each value of a graph is read last. Ops are numbered in
// order of execution; what a region inside an op reads, the op reads, but the
// ops of a repeat's body have numbers of their own.
type lifetimes struct {
	at   map[*ir.Op]int    // number of an op; of a repeat, before its body
	end  map[*ir.Block]int // number behind a block's last op, where its yield is read
	last map[*ir.Value]int // number at which a value is read last; where it is defined, if nothing reads it
	next int
}

func lifetimesOf(g *ir.Graph) *lifetimes {
	l := &lifetimes{at: map[*ir.Op]int{}, end: map[*ir.Block]int{}, last: map[*ir.Value]int{}}
	l.block(g.Body)
	for _, op := range slices.Backward(slices.Collect(g.All())) {
		if op.Def.Name == "split" { // its parts may lie in what it cuts
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

// again extends the life of what a repeat's body reads from outside to the end
// of its last iteration.
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
