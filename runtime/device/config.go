//go:build unix

package device

import (
	"errors"
	"fmt"
	"unsafe"
)

// A Config fixes the shapes of a context and of its steps.
type Config struct {
	Threads int
	CPUs    []int  // processor of each thread; nil: do not pin
	Weights []byte // the packed region, outside Go's heap, 64-byte aligned
	Pages   int    // of the KV cache, all sequences together
	// PageBytes lists the size of a page in each element of each state, in the
	// order in which they lie in memory.
	PageBytes []int64
	// Populate takes memory for pages ahead of their use, beside the steps, where
	// the device can.
	Populate bool

	MaxTokens, MaxOutRows, MaxSeqs int // of one step
	MaskWords                      int // of a token; 0: no trees
	MaxPages                       int // most page ids of a step, shared pages counted each time; 0: Pages

	Dispatch []byte  // [matmuls][DispatchRows]
	Outputs  []Array // the largest shape of each output of any graph that will run

	Comm unsafe.Pointer // a C ifl_comm, how one rank of a partitioned model reaches the others; nil: the model is whole
}

// An Array is the shape of a row-major float32 output.
type Array struct{ Rows, Cols int }

// Check refuses sizes that cannot be.
func (cfg *Config) Check() error {
	for _, v := range []struct {
		name string
		n    int
	}{
		{"threads", cfg.Threads}, {"state pages", cfg.Pages}, {"tokens a step", cfg.MaxTokens},
		{"output rows a step", cfg.MaxOutRows}, {"sequences", cfg.MaxSeqs},
	} {
		if v.n < 1 || v.n > 1<<24 {
			return fmt.Errorf("starting the model: %s must be between 1 and %d, not %d", v.name, 1<<24, v.n)
		}
	}
	if len(cfg.Outputs) > MaxOut {
		return fmt.Errorf("starting the model: %d outputs, at most %d are possible", len(cfg.Outputs), MaxOut)
	}
	if len(cfg.Weights) > 0 && uintptr(Pointer(cfg.Weights))%64 != 0 {
		return errors.New("bug: weights are not 64-byte aligned")
	}
	return nil
}
