package layout

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// A Weight is the placement of a weight in the packed file: element i of an array
// starts at At + (i−Lo)·Stride.
type Weight struct {
	Name           string // in the module
	Symbol         string // in C
	Matrix         bool   // packed in panels of 16 rows; else rows of floats
	DType          tensor.DType
	N, K           int       // rows and columns; a vector has one row
	Layers         *ir.Range // range of the index that a repeat supplies, or nil
	Count          int       // experts: matrices per element, or 0
	SparseOutliers int       // maximum number per matrix, stored after its panels
	Table          bool      // lookup table: read only by embed
	Lo             int       // first index of an array
	At             int64     // in bytes
	Stride         int64     // in bytes; 0: not an array
	value          *ir.Value
	placed         bool
}

// item describes one matrix or vector of the packed file.
func (w *Weight) item() packed.Item {
	it := packed.Item{Name: w.Name, DType: w.DType, Rows: w.N, Cols: w.K, Layout: packed.LayoutRow, SparseOutliers: w.SparseOutliers}
	if w.Matrix {
		it.Layout = packed.LayoutPanel16
	}
	return it
}

// Bytes returns the packed size of one matrix or vector, which is also the distance
// between consecutive ones.
func (w *Weight) Bytes() int64 {
	it := w.item()
	return it.Size()
}

// PanelsBytes returns the size of the panels of a matrix, without the sparse outliers
// that follow them.
func (w *Weight) PanelsBytes() int64 {
	return w.Bytes() - packed.SparseBytes(w.N, w.SparseOutliers)
}

// PanelBytes returns the size of a panel of 16 rows.
func (w *Weight) PanelBytes() int64 { return packed.PanelStride(w.DType, w.K) }

// Panels returns the number of panels of a matrix.
func (w *Weight) Panels() int { return Round16(w.N) / packed.PanelRows }

// element returns the size of one element of an array: a matrix, or the matrices of all
// experts.
func (w *Weight) element() int64 { return w.Bytes() * int64(max(w.Count, 1)) }

// Index returns the index of the element that an argument reads in a region; array is
// false if the weight is not an array.
func (w *Weight) Index(a ir.Arg, in *Loop) (index ir.Index, array bool, err error) {
	return elementIndex(a, in, w.Layers != nil)
}

// LayerOf returns the index of the layer whose weight an argument reads in a region; array
// is false if the weight is not an array.
func LayerOf(a ir.Arg, in *Loop) (index ir.Index, array bool, err error) {
	return elementIndex(a, in, len(a.Count) > 0)
}

// elementIndex returns the explicit index of an argument, or that of the enclosing loop.
func elementIndex(a ir.Arg, in *Loop, array bool) (ir.Index, bool, error) {
	switch {
	case !array:
		return ir.Index{}, false, nil
	case a.Index != nil:
		return a.Index[0], true, nil
	case in == nil:
		return ir.Index{}, true, fmt.Errorf("%s is an array: outside a repeat it needs an index", a.Value)
	}
	return ir.RegionIndex(0), true, nil
}

// planWeights determines the layout of each weight from its uses: panels or rows.
func (l *Layout) planWeights(b *ir.Block) error {
	for _, op := range b.Ops {
		if op.Body != nil {
			if op.Def.Name == "par" {
				return fmt.Errorf("%s: tensor parallel groups run only in the interpreter; compile for one device", Position(op))
			}
			if err := l.planWeights(op.Body); err != nil {
				return err
			}
		}
		for i, a := range op.Args {
			if a.Kind != ir.Weight || op.Def == ops.Lora { // it reads no weight
				continue
			}
			if w := l.Weights[a.Value]; w != nil {
				if w.Matrix != isMatrix(op, i) {
					return fmt.Errorf("%s: %s is used both as a matrix and as a row, which have different layouts: declare a second weight from the same tensor", Position(op), a.Value)
				}
				w.Table = w.Table && op.Def.Name == "embed"
				continue
			}
			w, err := l.newWeight(op, i)
			if err != nil {
				return err
			}
			l.Weights[a.Value] = w
		}
	}
	return nil
}

// newWeight returns the weight of argument i of an op, with the layout that the op
// needs.
func (l *Layout) newWeight(op *ir.Op, i int) (*Weight, error) {
	a := op.Args[i]
	w := &Weight{Name: a.Name, Symbol: l.symbols.of("W_", a.Name), DType: tensor.F32, N: 1, K: a.Type.Cols(), Table: op.Def.Name == "embed", value: a.Value}
	if len(a.Type.Shape) == 2 {
		w.N = a.Type.Shape[0].N
	}
	if op.Def.Name == "experts" {
		w.Count = a.Count[len(a.Count)-1].Len()
	}
	if isMatrix(op, i) {
		w.Matrix, w.SparseOutliers = true, l.sparseEntries(a.Value)
		if op.Def.Step == nil { // its weights are float32
			w.DType = a.Type.Elem
		}
	}
	if len(a.Count) > 2 || len(a.Count) == 2 && w.Count == 0 {
		return nil, fmt.Errorf("%s: no target can index %s with %d indices", Position(op), a.Value, len(a.Count))
	}
	// A repeat supplies the first index, except for the experts of a single layer.
	if len(a.Count) == 2 || len(a.Count) == 1 && w.Count == 0 {
		w.Layers, w.Lo = &a.Count[0], a.Count[0].Lo
	}
	return w, nil
}

// isMatrix reports whether argument i of an op is a matmul operand, a lookup table or
// the decays of a scan, which are packed in panels.
func isMatrix(op *ir.Op, i int) bool {
	switch op.Def.Name {
	case "matmul", "embed":
		return i == 1
	case "selective_scan":
		return i == 5
	case "experts":
		return len(op.Args[i].Type.Shape) == 2
	}
	return false
}

// sparseEntries returns the maximum number of sparse outliers of a weight's transform,
// including the weights that it stacks.
func (l *Layout) sparseEntries(v *ir.Value) int {
	switch r := v.Transform; {
	case r == nil:
		return 0
	case r.Op == "quantize_sparse":
		return tensor.SparseCount(v.Type.Shape[0].N, v.Type.Cols(), r.Nums[0])
	default:
		n := 0
		for _, name := range ir.TransformRefs(r) {
			n += l.sparseEntries(l.Module.Weight(name))
		}
		return n
	}
}

// placeWeights assigns an offset to every used weight. The weights of a repeat are
// stored layer by layer, so that a step reads the file sequentially.
func (l *Layout) placeWeights() {
	p := &packer{l: l}
	var walk func(b *ir.Block)
	walk = func(b *ir.Block) {
		for _, op := range b.Ops {
			if op.Def.Name == "repeat" {
				p.layers(op)
				walk(op.Body)
				continue
			}
			for _, a := range op.Args {
				if a.Kind == ir.Weight && op.Def != ops.Lora {
					p.whole(l.Weights[a.Value])
				}
			}
			if op.Body != nil {
				walk(op.Body)
			}
		}
	}
	for _, gr := range l.Module.Graphs {
		walk(gr.Body)
	}
}

// A packer places weights consecutively.
type packer struct {
	l  *Layout
	at int64
}

// put places one element of a weight, with the matrices of all its experts.
func (p *packer) put(w *Weight, index []int) {
	if w.Count == 0 {
		p.one(w, index)
	}
	for e := range w.Count {
		p.one(w, append(slices.Clone(index), w.value.Count[len(w.value.Count)-1].Lo+e))
	}
}

func (p *packer) one(w *Weight, index []int) {
	it := w.item()
	item := pack.Item{Name: w.Name, Index: index, Transform: p.l.resolve(w.value.Transform), DType: w.DType, Rows: w.N, Cols: w.K, Layout: it.Layout, SparseOutliers: w.SparseOutliers}
	m := manifest.Weight{Name: w.Name, Index: index, DType: w.DType, Sources: item.Sources(),
		Rows: w.N, Cols: w.K, Layout: it.Layout, Offset: p.at, Bytes: it.Size(), SparseOutliers: w.SparseOutliers}
	p.l.Packed, p.l.Pack = append(p.l.Packed, m), append(p.l.Pack, item)
	p.l.Params += int64(w.N) * int64(w.K)
	p.at += m.Bytes
}

// whole places a weight, or all elements of an array with explicit indices.
func (p *packer) whole(w *Weight) {
	if w.placed {
		return
	}
	w.At, w.placed = p.at, true
	if w.Layers == nil {
		p.put(w, nil)
		return
	}
	w.Stride = w.element()
	for i := w.Layers.Lo; i < w.Layers.Hi; i++ {
		p.put(w, []int{i})
	}
}

// layers places the arrays that the body of a repeat uses, element by element, if the
// repeat covers whole arrays.
func (p *packer) layers(rep *ir.Op) {
	span := ir.Range{Lo: rep.Int("lo"), Hi: rep.Int("hi")}
	var list []*Weight
	stride := int64(0)
	for op := range rep.Body.All() {
		for _, a := range op.Args {
			w := p.l.Weights[a.Value]
			if a.Kind != ir.Weight || op.Def == ops.Lora || w.placed || w.Layers == nil || a.Index != nil || *w.Layers != span {
				continue
			}
			w.At, w.placed = p.at+stride, true
			stride += w.element()
			list = append(list, w)
		}
	}
	for i := span.Lo; i < span.Hi; i++ {
		for _, w := range list {
			w.Stride = stride
			p.put(w, []int{i})
		}
	}
}

// resolve replaces references to other weights of the module by their
// transforms.
func (l *Layout) resolve(r *tensor.Transform) *tensor.Transform {
	if r.Op == "weight" {
		return l.resolve(l.Module.Weight(r.Name).Transform)
	}
	c := *r
	c.Args = nil
	for _, a := range r.Args {
		c.Args = append(c.Args, l.resolve(a))
	}
	return &c
}
