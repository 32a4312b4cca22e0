//go:build unix

package device

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A Config sets the sizes of a Context and of its steps.
type Config struct {
	Threads int
	CPUs    []int  // CPU number of each thread; nil: do not pin threads
	Weights []byte // packed weights, outside Go's heap, 64-byte aligned
	Pages   int    // KV cache pages, shared by all sequences
	// PageBytes lists the bytes per page of each element of each state, in memory
	// order.
	PageBytes []int64
	// Cells is the number of cells, which hold fixed-size states, and CellBytes the bytes
	// per cell of each element of each state, in memory order. 0: the model has none.
	Cells     int
	CellBytes []int64
	// Populate makes the device allocate physical memory for pages in the background,
	// before they are used, if it can: for so many first, then for Step.KVPages. 0: it does not.
	Populate int

	MaxTokens, MaxOutRows, MaxSeqs int // per step
	MaskWords                      int // mask words per token; 0: no draft trees
	MaxPages                       int // maximum page ids of a step, counting a shared page once per sequence; 0: Pages
	MaxCells                       int // maximum cell ids of a step; 0: no cells

	Dispatch []byte  // [matmuls][DispatchRows]
	Outputs  []Array // the largest shape of each output over all graphs that will run

	Sites  []manifest.Site     // matrices to which adapters can add
	Orders [][]manifest.RowRun // Manifest.RowOrders

	Comm unsafe.Pointer // a C ifl_comm, the transport to the other ranks of a partitioned model; nil: the model is not partitioned
}

// An Array is the shape of a row-major float32 output.
type Array struct{ Rows, Cols int }

// Check returns an error if a size is out of range or the weights are not aligned.
func (cfg *Config) Check() error {
	for _, v := range []struct {
		name string
		n    int
	}{
		{"threads", cfg.Threads}, {"KV cache pages", cfg.Pages}, {"tokens per step", cfg.MaxTokens},
		{"output rows per step", cfg.MaxOutRows}, {"sequences", cfg.MaxSeqs},
	} {
		if v.n < 1 || v.n > 1<<24 {
			return fmt.Errorf("starting the model: %s must be between 1 and %d, not %d", v.name, 1<<24, v.n)
		}
	}
	if cfg.Cells < 0 || cfg.Cells > 1<<24 || cfg.MaxCells < 0 {
		return fmt.Errorf("starting the model: cells must be between 0 and %d, not %d", 1<<24, cfg.Cells)
	}
	if len(cfg.Outputs) > MaxOut {
		return fmt.Errorf("starting the model: %d outputs exceed the maximum of %d", len(cfg.Outputs), MaxOut)
	}
	if len(cfg.Weights) > 0 && uintptr(Pointer(cfg.Weights))%64 != 0 {
		return errors.New("bug: weights are not 64-byte aligned")
	}
	return nil
}
