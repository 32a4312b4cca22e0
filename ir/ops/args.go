package ops

import (
	"fmt"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// matrix returns the type of a value f32[rows, constant], or an error for others.
func matrix(a ir.Arg) (ir.Type, error) {
	if a.Type.Elem != tensor.F32 || !a.Type.IsMatrix() {
		return ir.Type{}, fmt.Errorf("%s is %s, expected f32[rows, columns]", a, a.Type)
	}
	return a.Type, nil
}

// indices returns the row count of a value i32[rows], or an error for others.
func indices(a ir.Arg) (ir.Size, error) {
	if a.Type.Elem != tensor.I32 || len(a.Type.Shape) != 1 {
		return ir.Size{}, fmt.Errorf("%s is %s, expected i32[rows]", a, a.Type)
	}
	return a.Type.Shape[0], nil
}

// vector returns an error unless the argument has n elements.
func vector(a ir.Arg, n int) error {
	if len(a.Type.Shape) != 1 || a.Type.Shape[0].Dim != nil || a.Type.Shape[0].N != n {
		return fmt.Errorf("%s is %s, expected %d elements", a, a.Type, n)
	}
	return nil
}

// sameRows returns an error unless the row counts are equal.
func sameRows(a, b ir.Arg) error {
	if !ir.T(tensor.F32, a.Type.Rows()).SameShape(ir.T(tensor.F32, b.Type.Rows())) {
		return fmt.Errorf("%s has %s rows but %s has %s", a, a.Type.Rows(), b, b.Type.Rows())
	}
	return nil
}

// headWidth returns the number of columns per head.
func headWidth(a ir.Arg, heads int) (int, error) {
	if heads < 1 || a.Type.Cols()%heads != 0 {
		return 0, fmt.Errorf("%s has %d columns, not divisible by heads=%d", a, a.Type.Cols(), heads)
	}
	return a.Type.Cols() / heads, nil
}

func one(t ir.Type, err error) ([]ir.Type, error) {
	if err != nil {
		return nil, err
	}
	return []ir.Type{t}, nil
}

func f32(shape ...ir.Size) ir.Type { return ir.T(tensor.F32, shape...) }

// row returns row t of a matrix.
func row(x *tensor.Tensor, t int) []float64 {
	d := x.Shape[len(x.Shape)-1]
	return x.F[t*d : (t+1)*d]
}

var (
	value  = []ir.Kind{ir.Result, ir.Carry, ir.Input}
	weight = []ir.Kind{ir.Weight}
	either = []ir.Kind{ir.Result, ir.Carry, ir.Input, ir.Weight}
	state  = []ir.Kind{ir.State}
)

func param(name, doc string, kinds []ir.Kind) ir.ParamDef {
	return ir.ParamDef{Name: name, Kinds: kinds, Doc: doc}
}

func optional(p ir.ParamDef) ir.ParamDef { p.Optional = true; return p }

func variadic(p ir.ParamDef) ir.ParamDef { p.Variadic = true; return p }

// each marks a weight parameter: the op reads its elements for all values of the last
// index.
func each(p ir.ParamDef) ir.ParamDef { p.Each = true; return p }
