package cuda

import (
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
)

// An act is a packing of activation rows for a matmul.
type act struct {
	name     string            // type in ifl_act.cuh
	block    int               // columns per block; 0: not quantized
	outliers int               // outliers per row
	bytes    func(k int) int64 // bytes of a row of k columns
}

// actOf returns the packing of activations of a type with a number of outliers.
func actOf(dt tensor.DType, outliers int) act {
	switch dt {
	case tensor.A8B16, tensor.A8B32, tensor.A8B64:
		b := dt.Block()
		return act{fmt.Sprintf("ifl_a8<%d, %d>", b, outliers), b, outliers, func(k int) int64 {
			blocks := int64((k + b - 1) / b)
			return (blocks*int64(b)+15)&^15 + 2*((blocks*4+15)&^15) + 16*int64(outliers)
		}}
	}
	a := act{name: "ifl_f32", bytes: func(k int) int64 { return (int64(k)*4 + 15) &^ 15 }}
	if dt == tensor.BF16 {
		a.name = "ifl_bf16"
	}
	return a
}

// panel returns the C++ type with which gemv reads weights of a type for NT rows.
func (a act) panel(dt tensor.DType, nt string) string {
	switch {
	case !dt.IsBlock():
		return fmt.Sprintf("ifl_panel_float<ifl_element_%s, %s>", dt, nt)
	case a.block == 0:
		return fmt.Sprintf("ifl_panel_exact<ifl_format_%s, %s>", dt, nt)
	}
	return fmt.Sprintf("ifl_panel_block<ifl_format_%s, %s, %d>", dt, nt, a.outliers)
}

// flat returns the C++ type with which flat_gemm reads weights of a type; "" if it
// does not support the type.
func (a act) flat(dt tensor.DType) string {
	switch {
	case !dt.IsBlock():
		return fmt.Sprintf("ifl_flat_float<ifl_flat_%s, NB>", dt)
	case a.block == 0:
		return ""
	}
	return fmt.Sprintf("ifl_flat_block<ifl_format_%s, %d, NB>", dt, a.outliers)
}

// unpackType returns the C++ type that unpacks weights for a matmul of many rows.
func unpackType(dt tensor.DType) string {
	if dt.IsBlock() {
		return fmt.Sprintf("ifl_unpack_block<ifl_format_%s>", dt)
	}
	return fmt.Sprintf("ifl_unpack_float<ifl_element_%s>", dt)
}
