package codegen

import (
	"github.com/iflowc/iflowc/codegen/cpu"
	"github.com/iflowc/iflowc/codegen/cuda"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/templates"
)

// The code of a module for each target; see packages cpu and cuda.
type (
	CPUModel   = cpu.Model
	Kernel     = cpu.Kernel
	CUDAModel  = cuda.Model
	CUDAUnit   = cuda.Unit
	ScoreRange = cuda.ScoreRange
)

// CPU emits a module's step as C for CPUs. context is the maximum number of rows of a
// sequence.
func CPU(m *ir.Module, cat *templates.Catalog, context int) (*CPUModel, error) {
	return cpu.Emit(m, cat, context)
}

// CUDA emits a module's kernels for GPUs. If scores is not nil, attention may use the
// unified maximum of FlashDecoding++ §3.
func CUDA(m *ir.Module, cat *templates.CUDACatalog, context int, scores *ScoreRange) (*CUDAModel, error) {
	return cuda.Emit(m, cat, context, scores)
}
