package ctext

import (
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir/tensor"
)

// A Backend is how the text of row ops differs between targets: a CPU's threads
// each do whole rows with vectors of 16, a GPU's share a row.
type Backend interface {
	// Vector is the type of what an expression computes at once.
	Vector() string
	// Loop opens a loop over the columns j of a slice of some width.
	Loop(width string) string
	// Load is what stands at an address, and Store writes a value there.
	Load(address string) string
	Store(address, value string) string
	// Copy copies n floats.
	Copy(to, from string, n int) string
	// Interleaved is the address of column j of one of several parts that lie
	// in turns of 16 columns.
	Interleaved(part string, parts int) string
	// Sync ends an op, so that what follows sees its results.
	Sync(w *Writer)
	// Weights is the address of the packed weights that hold w.
	Weights(w *layout.Weight) string
	// State is the address at an offset of the state, in bytes per page.
	State(offset string) string
	// Part is the address of what a rank of the group gave to the last exchange.
	Part(rank int) string
	// Embed begins a call that looks a row of a table up.
	Embed(table tensor.DType) (string, error)
	// Prefetches says whether lines that a later row writes are prefetched.
	Prefetches() bool
}
