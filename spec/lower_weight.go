package spec

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A cut says which part of a stored tensor a weight is.
type cut struct {
	rows   int  // rows of the result
	vector bool // the result is a vector of that many elements
	apply  func(*tensor.Recipe) *tensor.Recipe
}

// weight declares `@name` for a standard tensor, of all layers where the
// standard name has {i}, and gives its name in the IR; "" where the model has
// no such tensor.
func (l *lowerer) weight(name, std string, c *cut) string {
	if !l.has(std) {
		return ""
	}
	ref := "@" + name
	if l.decls[ref] {
		return ref
	}
	count := 1
	layered := strings.Contains(std, "{i}")
	if layered {
		count = l.Hyper.Layers
	}
	first := l.tensors[layerName(std, 0)]
	typ, mixed, block := first.DType, false, first.DType.IsBlock()
	for i := range count {
		t := l.tensors[layerName(std, i)]
		if t.Pattern != first.Pattern {
			l.fail("tensors %q and %q stand for %s, but one pattern must name all layers", first.File, t.File, std)
		}
		mixed, block = mixed || t.DType != typ, block || t.DType.IsBlock()
	}
	recipe := tensor.Source(first.Pattern)
	shape := append([]int(nil), first.Shape...)
	if l.Net.WeightLayout == "in_out" && transposes(std) && len(shape) == 2 {
		if typ.IsBlock() {
			mixed = true
		}
		recipe = &tensor.Recipe{Op: "transpose", Args: []*tensor.Recipe{recipe}}
		shape[0], shape[1] = shape[1], shape[0]
	}
	if c != nil {
		recipe = c.apply(recipe)
		shape[0] = c.rows
		if c.vector {
			shape = shape[:1]
		}
	}
	if mixed {
		typ = l.wide(block)
		recipe = &tensor.Recipe{Op: "quantize", Args: []*tensor.Recipe{recipe}, Type: typ}
	}
	l.declare(name, std, count, layered, typ, shape, recipe)
	return ref
}

// wide is the type that holds values of differing stored types: exact, but for
// blocks that nobody asked to compute in another type, which f16 holds nearly.
func (l *lowerer) wide(block bool) tensor.DType {
	if block && l.Spec.Quant == tensor.Invalid {
		return tensor.F16
	}
	return tensor.F32
}

func (l *lowerer) declare(name, std string, count int, layered bool, typ tensor.DType, shape []int, recipe *tensor.Recipe) {
	n := ""
	if layered {
		n = fmt.Sprintf("[%d]", count)
	}
	var dims []string
	for _, d := range shape {
		dims = append(dims, fmt.Sprint(d))
	}
	l.weights = append(l.weights, fmt.Sprintf("weight @%s%s : %s[%s] from %s", name, n, typ, strings.Join(dims, ", "), recipe))
	l.decls["@"+name] = true
	l.standard[name] = std
}

// linear writes y = x·wᵀ, without the bias.
func (l *lowerer) linear(hint, weight, std, x string, c *cut) string {
	return l.t.op(hint, "matmul", []string{x, l.weight(weight, std+".weight", c)}, nil)
}

// bias adds a projection's bias, where the model has one.
func (l *lowerer) bias(hint, name, std, y string, c *cut) string {
	b := l.weight(name, std+".bias", c)
	if b == "" {
		return y
	}
	return l.t.op(hint, "add", []string{y, b}, nil)
}

// rowsCut is the contiguous rows lo..hi.
func rowsCut(lo, hi int) *cut {
	return &cut{rows: hi - lo, apply: func(r *tensor.Recipe) *tensor.Recipe {
		return &tensor.Recipe{Op: "rows", Args: []*tensor.Recipe{r}, Nums: []float64{float64(lo), float64(hi)}}
	}}
}

// groupCut is rows lo..hi of each of the groups.
func groupCut(groups, group, lo, hi int) *cut {
	return &cut{rows: groups * (hi - lo), apply: func(r *tensor.Recipe) *tensor.Recipe {
		return &tensor.Recipe{Op: "group_rows", Args: []*tensor.Recipe{r}, Nums: []float64{float64(groups), float64(group), float64(lo), float64(hi)}}
	}}
}
