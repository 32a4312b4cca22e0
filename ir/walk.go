package ir

import (
	"iter"
	"slices"
)

// Walk calls f for each op in textual order, with its block and its index in the
// block. An op precedes the ops of its body. If f returns false, Walk skips the body.
// f must not change the block that contains the op.
func (g *Graph) Walk(f func(b *Block, i int, op *Op) bool) { g.Body.Walk(f) }

// Walk is Graph.Walk for a block and its nested blocks.
func (b *Block) Walk(f func(b *Block, i int, op *Op) bool) {
	for i, o := range b.Ops {
		if f(b, i, o) && o.Body != nil {
			o.Body.Walk(f)
		}
	}
}

// All iterates over every op of the graph in textual order, including ops in bodies.
func (g *Graph) All() iter.Seq[*Op] { return g.Body.All() }

// All iterates over every op of the block and of its nested blocks.
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

// Blocks returns every block of the graph, outer ones first.
func (g *Graph) Blocks() []*Block {
	out := []*Block{g.Body}
	for o := range g.All() {
		if o.Body != nil {
			out = append(out, o.Body)
		}
	}
	return out
}

// FindOps returns the ops of the given name in textual order.
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

// Index returns the index of the op in the block, or -1.
func (b *Block) Index(op *Op) int { return slices.Index(b.Ops, op) }

// Insert inserts ops before index i.
func (b *Block) Insert(i int, ops ...*Op) { b.Ops = slices.Insert(b.Ops, i, ops...) }

// Remove removes the op at index i.
func (b *Block) Remove(i int) { b.Ops = slices.Delete(b.Ops, i, i+1) }

// Result returns the op's only result. It panics if there is not exactly one.
func (o *Op) Result() *Value {
	if len(o.Results) != 1 {
		panic("bug: op " + o.Def.Name + " has not exactly one result")
	}
	return o.Results[0]
}

// A Use is one use of a value: argument Arg of Op, or yield Arg of Block if Op is nil.
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

// ReplaceUses replaces every use of from in the graph by to. Indices of arguments
// are kept.
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

// Values returns every value that the graph defines: inputs, carried values and
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
