package layout

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A Site is a projection of one layer to which adapters can add.
type Site struct {
	Weight     string
	Index      []int
	Transform  *tensor.Transform // over stored tensors
	Rows, Cols int
}

// Adapters are the sites of a matmul: of a weight, or of each weight that it is made of.
type Adapters struct {
	Arg   ir.Arg // the weight
	Parts []AdapterPart
}

// An AdapterPart is the site of a weight whose rows are panels First, First+Step, … of a
// matmul.
type AdapterPart struct {
	Site        int // of the first layer; those of the others follow
	First, Step int
	Panels      int
}

// adapters returns the sites of an op lora and adds those that are new.
func (l *Layout) adapters(op *ir.Op) (*Adapters, error) {
	arg := op.Args[2]
	a := &Adapters{Arg: arg}
	list, step := []*ir.Value{arg.Value}, 1
	if how := arg.Transform.Op; (how == "concat" || how == "interleave") && arg.Transform.Args[0].Op == "weight" {
		list = nil
		for _, ref := range arg.Transform.Args {
			list = append(list, l.Module.Weight(ref.Name))
		}
		if how == "interleave" {
			step = len(list)
		}
	}
	first := 0
	for i, w := range list {
		n := w.Type.Shape[0].N
		if len(list) > 1 && n%16 != 0 {
			return nil, fmt.Errorf("%s: %s has %d rows, not whole panels of 16", Position(op), w, n)
		}
		part := AdapterPart{First: first, Step: step, Panels: Round16(n) / 16}
		if step > 1 {
			part.First = i
		}
		first += part.Panels
		if only := op.Ints("parts"); only == nil || slices.Contains(only, i) {
			part.Site = l.site(w)
			a.Parts = append(a.Parts, part)
		}
	}
	return a, nil
}

// site returns the site of a weight's first layer.
func (l *Layout) site(w *ir.Value) int {
	if at, ok := l.sites[w]; ok {
		return at
	}
	at := len(l.Sites)
	l.sites[w] = at
	s := Site{Weight: w.Name, Transform: l.resolve(w.Transform), Rows: w.Type.Shape[0].N, Cols: w.Type.Cols()}
	if len(w.Count) == 0 {
		l.Sites = append(l.Sites, s)
		return at
	}
	for i := w.Count[0].Lo; i < w.Count[0].Hi; i++ {
		s.Index = []int{i}
		l.Sites = append(l.Sites, s)
	}
	return at
}
