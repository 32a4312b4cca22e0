package ctext

import (
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A Backend emits the parts of row ops that differ between targets: a CPU thread
// computes whole rows with vectors of 16 floats; the threads of a GPU block share a row.
type Backend interface {
	// Vector is the C type of an expression's value.
	Vector() string
	// Loop opens a loop over the columns j of a slice of some width.
	Loop(width string) string
	// Load returns the expression that reads an address, and Store the statement that
	// writes it.
	Load(address string) string
	Store(address, value string) string
	// Copy copies n floats.
	Copy(to, from string, n int) string
	// Interleaved returns the address of column j of one of several parts that are
	// interleaved in runs of 16 columns.
	Interleaved(part string, parts int) string
	// Sync ends an op; the following ops see its results.
	Sync(w *Writer)
	// Weights returns the base address of the packed weights that contain w.
	Weights(w *layout.Weight) string
	// State returns the address of the KV cache at an offset, in bytes per page.
	State(offset string) string
	// Cells returns the address of the fixed-size states at an offset, in bytes per cell.
	Cells(offset string) string
	// Part returns the address of a TP rank's part of the last exchange, rows of x.
	Part(rank int, x *ir.Value) string
	// Embed returns the start of a call that looks up a row of a table.
	Embed(table tensor.DType) (string, error)
	// Prefetches reports whether to prefetch the cache lines that a later row writes.
	Prefetches() bool
}
