package compiler

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"slices"
	"sync"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// budgetTypes are the types that a budget chooses from, besides the stored ones.
var budgetTypes = []tensor.DType{tensor.F16, tensor.Q8B32T2, tensor.Q6TB32, tensor.Q5TB32, tensor.Q4TB32, tensor.Q3TB32, tensor.Q2TB32}

// A unit is a group of matrices, in some layers, that get one type.
type unit struct {
	group   *passes.MatrixGroup
	lo, hi  int // layers; 0, 0: not an array over layers
	items   []packed.Item
	weights int64 // number of elements
	only    tensor.DType

	flat   float64 // see measureErrors
	errors map[tensor.DType]float64
}

// names returns the weights that a step reads.
func (u *unit) names() (names []string) {
	for _, w := range u.group.Stored {
		names = append(names, w.Name)
	}
	return names
}

// bytes returns the unit's size in a type.
func (u *unit) bytes(t tensor.DType) (n int64) {
	for _, it := range u.items {
		it.DType = t
		n += it.Size()
	}
	return n
}

// allows reports whether the rows of all matrices are whole blocks of a type.
func (u *unit) allows(t tensor.DType) bool {
	return !slices.ContainsFunc(u.items, func(it packed.Item) bool { return it.Cols%t.Block() != 0 })
}

// units divides the matrices of a model in f16: those of each group and each part of the
// layers.
func (b *budgeter) makeUnits(parts int) error {
	rules, err := b.stored.WeightTypes()
	if err != nil {
		return InputError{err}
	}
	pinned := map[string]tensor.DType{}
	for _, r := range rules {
		pinned[r.Weight] = r.Type
	}
	b.units = nil
	for _, g := range passes.MatrixGroups(b.merged) {
		lo, hi, layered := b.stored.Layers(g.Weights[0].Name)
		n := parts
		if !layered {
			lo, hi, n = 0, 1, 1
		}
		only := tensor.Invalid
		for _, w := range g.Weights {
			if t, ok := pinned[w.Name]; ok {
				only, n = t, 1
			}
		}
		if g.Draft || g.Gate && only == tensor.Invalid {
			only, n = tensor.Q8B32T2, 1 // as by --quant
		}
		for _, cut := range cuts(lo, hi, b.stored.Hyper.Layers, n) {
			u := &unit{group: g, lo: cut.Lo, hi: cut.Hi, only: only}
			if !layered {
				u.lo, u.hi = 0, 0
			}
			for _, w := range b.float.whole.CPU.Manifest.Weights {
				if u.holds(&w) {
					u.items = append(u.items, packed.Item{Name: w.Name, Index: w.Index, DType: w.DType, Rows: w.Rows, Cols: w.Cols, Layout: w.Layout})
					u.weights += int64(w.Rows) * int64(w.Cols)
				}
			}
			if t := u.only; t != tensor.Invalid && !u.allows(t) || u.weights < int64(b.stored.Spec.TensorQuantThreshold) {
				u.only = tensor.F16
			}
			b.units = append(b.units, u)
		}
	}
	return nil
}

// holds reports whether a packed weight belongs to the unit.
func (u *unit) holds(w *manifest.Weight) bool {
	return slices.Contains(u.names(), w.Name) && (u.hi == 0 || u.lo <= w.Index[0] && w.Index[0] < u.hi)
}

// cuts divides the layers lo to hi−1 at the borders of equal parts of all layers.
func cuts(lo, hi, layers, parts int) (out []ir.Range) {
	for k := range parts {
		r := ir.Range{Lo: max(lo, k*layers/parts), Hi: min(hi, (k+1)*layers/parts)}
		if k == parts-1 {
			r.Hi = hi
		}
		if r.Lo < r.Hi {
			out = append(out, r)
		}
	}
	return out
}

// The rows of a unit whose rounding errors are measured are those of several matrices.
const (
	sampledRows     = 48
	sampledElements = 12
)

// measureErrors encodes rows of each unit in each type that it may have.
func (b *budgeter) measureErrors(ctx context.Context) error {
	var mu sync.Mutex
	var wg sync.WaitGroup
	var first error
	next := make(chan *unit)
	for range max(1, runtime.GOMAXPROCS(0)) {
		wg.Go(func() {
			for u := range next {
				if err := b.measureUnit(u); err != nil {
					mu.Lock()
					first = err
					mu.Unlock()
				}
			}
		})
	}
	for i, u := range b.units {
		if ctx.Err() != nil {
			break
		}
		b.opt.progress(Progress{Stage: "measuring rounding errors", Done: int64(i), Total: int64(len(b.units)), Unit: "matrices"})
		next <- u
	}
	close(next)
	wg.Wait()
	if first == nil {
		first = ctx.Err()
	}
	return first
}

// typesOf returns the types that a unit may have: those of the list whose blocks fit, and
// the type that kernels use for the stored values.
func (b *budgeter) typesOf(u *unit) (types []tensor.DType) {
	if u.only != tensor.Invalid {
		return []tensor.DType{u.only}
	}
	types = slices.Clone(budgetTypes)
	for _, w := range u.group.Weights {
		if t := tensor.ComputeType(b.lowered.Weight(w.Name).Type.Elem); t.IsBlock() && !slices.Contains(types, t) {
			types = append(types, t)
		}
	}
	return slices.DeleteFunc(types, func(t tensor.DType) bool { return !u.allows(t) })
}

// measureUnit sets the unit's errors, relative to the squares of its weights. flat is the
// error of the noise that measures sensitivity, per square of the noise's size.
func (b *budgeter) measureUnit(u *unit) error {
	types := b.typesOf(u)
	sums := pack.Rounding{Errors: make([]float64, len(types))}
	list := u.elements(b.lowered)
	n := min(len(list), sampledElements)
	for i := range n {
		e := list[i*len(list)/n]
		if err := pack.MeasureRounding(b.stored.source(), b.lowered.Weight(e.name).Transform, e.index, types, sampledRows/n, &sums); err != nil {
			return InputError{err}
		}
	}
	u.flat, u.errors = 1, map[tensor.DType]float64{}
	if sums.Squares > 0 {
		u.flat = sums.Flat / sums.Squares
	}
	for k, t := range types {
		u.errors[t] = sums.Errors[k] / max(sums.Squares, math.SmallestNonzeroFloat64)
	}
	return nil
}

// An element is one matrix of a weight.
type element struct {
	name  string
	index []int
}

// elements lists the matrices of the unit as the model spec declares them.
func (u *unit) elements(m *ir.Module) (list []element) {
	for _, part := range u.group.Weights {
		index := [][]int{nil}
		for axis, r := range m.Weight(part.Name).Count {
			if axis == 0 && u.hi > 0 {
				r = ir.Range{Lo: u.lo, Hi: u.hi}
			}
			var longer [][]int
			for _, at := range index {
				for i := r.Lo; i < r.Hi; i++ {
					longer = append(longer, append(slices.Clone(at), i))
				}
			}
			index = longer
		}
		for _, at := range index {
			list = append(list, element{part.Name, at})
		}
	}
	return list
}

// text names the unit: its weights and, of a part of the layers, those.
func (u *unit) text() string {
	name := ""
	for i, w := range u.group.Weights {
		if i > 0 {
			name += ", "
		}
		name += w.Name
	}
	if u.hi > 0 {
		return fmt.Sprintf("%s [%d..%d]", name, u.lo, u.hi)
	}
	return name
}
