package ir

import (
	"iter"
	"slices"
)

// Walk calls f for each op in textual order, with its block and its place in
// it; an op comes before the ops of its body, which are left out when f gives
// false. f must not change the block it is called for.
func (g *Graph) Walk(f func(b *Block, i int, op *Op) bool) { g.Body.Walk(f) }

// Walk is Graph.Walk for one block and those inside it.
func (b *Block) Walk(f func(b *Block, i int, op *Op) bool) {
	for i, o := range b.Ops {
		if f(b, i, o) && o.Body != nil {
			o.Body.Walk(f)
		}
	}
}

// All lists every op of the graph in textual order, those in bodies included.
func (g *Graph) All() iter.Seq[*Op] { return g.Body.All() }

// All lists every op of the block and of the blocks inside it.
func (b *Block) All() iter.Seq[*Op] {
	return func(yield func(*Op) bool) { b.all(yield) }
}

func (b *Block) all(yield func(*Op) bool) bool {
	for _, o := range b.Ops {
		if !yield(o) || o.Body != nil && !o.Body.all(yield) {
			return false
		}
	}
	return true
}

// Blocks lists every block of the graph, outer ones first.
func (g *Graph) Blocks() []*Block {
	out := []*Block{g.Body}
	for o := range g.All() {
		if o.Body != nil {
			out = append(out, o.Body)
		}
	}
	return out
}

// FindOps lists the ops of the given name in textual order.
func (g *Graph) FindOps(name string) []*Op {
	var out []*Op
	for o := range g.All() {
		if o.Def.Name == name {
			out = append(out, o)
		}
	}
	return out
}

// FindOp returns the first op of the given name, or nil.
func (g *Graph) FindOp(name string) *Op {
	if ops := g.FindOps(name); ops != nil {
		return ops[0]
	}
	return nil
}

// Index returns the place of the op in the block, or -1.
func (b *Block) Index(op *Op) int { return slices.Index(b.Ops, op) }

// Insert puts ops before place i.
func (b *Block) Insert(i int, ops ...*Op) { b.Ops = slices.Insert(b.Ops, i, ops...) }

// Remove takes the op at place i out.
func (b *Block) Remove(i int) { b.Ops = slices.Delete(b.Ops, i, i+1) }

// Result returns the op's only result.
func (o *Op) Result() *Value {
	if len(o.Results) != 1 {
		panic("bug: op " + o.Def.Name + " has not exactly one result")
	}
	return o.Results[0]
}

// A Use is one place where a value is used: argument Arg of Op, or yield
// number Arg of Block when Op is nil.
type Use struct {
	Block *Block
	Op    *Op
	Arg   int
}

// Uses maps each value to its uses in the graph, in textual order.
func Uses(g *Graph) map[*Value][]Use {
	uses := map[*Value][]Use{}
	for _, b := range g.Blocks() {
		for _, o := range b.Ops {
			for i, a := range o.Args {
				uses[a.Value] = append(uses[a.Value], Use{b, o, i})
			}
		}
		for i, y := range b.Yield {
			uses[y] = append(uses[y], Use{Block: b, Arg: i})
		}
	}
	return uses
}

// ReplaceUses puts to in place of every use of from in the graph; indices of
// arguments stay.
func (g *Graph) ReplaceUses(from, to *Value) {
	for _, b := range g.Blocks() {
		b.replaceUses(from, to)
	}
}

func (b *Block) replaceUses(from, to *Value) {
	for _, o := range b.Ops {
		for i := range o.Args {
			if o.Args[i].Value == from {
				o.Args[i].Value = to
			}
		}
	}
	for i, y := range b.Yield {
		if y == from {
			b.Yield[i] = to
		}
	}
}

// Values lists every value that the graph defines: inputs, carried values and
// results, in textual order.
func (g *Graph) Values() []*Value {
	out := slices.Clone(g.Inputs)
	for o := range g.All() {
		if o.Body != nil {
			out = append(out, o.Body.Params...)
		}
		out = append(out, o.Results...)
	}
	return out
}
