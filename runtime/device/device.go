//go:build unix

// Package device defines the interface between the engine and the hardware that runs a
// compiled model: a CPU, a GPU or a group of ranks. The engine fills a Step, submits it
// to a Context and waits for its results; it does not depend on the kind of device.
// Packages cpu, cuda and ranks implement Device and Context. Info describes the
// capabilities of a device; calls that it does not support return an error.
package device

import (
	"errors"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
)

// A Device is the code of a compiled model together with the hardware that runs it. It
// allocates no memory for the model before Start. It is safe for concurrent use.
type Device interface {
	Info() Info
	// ScratchBytes returns the bytes of scratch memory that a step of the largest shape
	// in cfg needs in this process, without the arrays of the Step.
	ScratchBytes(cfg *Config) int64
	// Peak measures the throughput of an operation on the given number of threads, in
	// GOP/s, for the given time. It returns 0 if the device cannot measure it.
	Peak(op Arithmetic, threads int, long time.Duration) float64
	// Start loads the weights into the device's memory and allocates memory for the
	// sizes of cfg.
	Start(cfg *Config) (Context, error)
}

// Info describes a device and its capabilities.
type Info struct {
	Name     string // instruction set of a CPU, name of a GPU
	InFlight int    // maximum steps in flight, each in a Step of its own: the number of pipeline stages, else 1
	// PageBytes is the size of a KV cache page in this process, summed over layers.
	PageBytes int64
	// CellBytes is the size of a cell, which holds fixed-size states, in this process,
	// summed over layers. 0: it holds none.
	CellBytes int64
	// WeightBytes is the size of weights that the device reads from its own files, as a
	// group of ranks does; 0: Config.Weights holds all weights.
	WeightBytes int64
	// OwnMemory: the device reads weights from memory that the host's CPUs do not share.
	// ReadGBs is that memory's read bandwidth in GB/s; 0: unknown.
	OwnMemory bool
	ReadGBs   float64
}

// Arithmetic is a kind of operation that Device.Peak measures.
type Arithmetic int

// Kinds of arithmetic that kernels use.
const (
	MultiplyAddI8  Arithmetic = iota // int8 multiply-add
	MultiplyAddF32                   // float32 multiply-add
)

// A Context is a started model: its weights, its KV cache and the threads or GPU that
// compute its steps. It is not safe for concurrent use, except for
// Counters and PackAdapter.
type Context interface {
	// Submit starts to compute a step. The caller must not modify the step until wait,
	// which it calls exactly once, has returned; then the outputs are filled in. Steps
	// end in the order in which they were submitted. A device that runs one step at a
	// time returns from Submit when the step is computed. wait returns every error,
	// also one that prevented the step from starting.
	Submit(s *Step) (wait func() error)

	// CopyPage copies a page of the KV cache and MoveRow copies one row, in every
	// layer. Both execute in order with the submitted steps. The pages must not be in
	// use by a step in flight. The next step returns their errors. CopyCell and MoveInCells
	// do the same for cells, in every layer of the fixed-size states.
	CopyPage(to, from int32)
	MoveRow(to, from Row)
	CopyCell(to, from int32)
	MoveInCells(to, from CellRow)

	// PackAdapter reads and packs an adapter for SetAdapter, which then takes less time.
	PackAdapter(a lora.Packer) (lora.Packer, error)
	// SetAdapter loads an adapter under a number below MaxAdapters, or frees it with nil.
	// No step in flight may use the number.
	SetAdapter(number int32, a lora.Packer) error

	// StartCalibration makes every matmul accumulate statistics of its inputs from the
	// next step on. With hessians it also accumulates Hessians. Calibration returns the
	// sums so far.
	StartCalibration(hessians bool) error
	Calibration() Calibration

	// Trace calls fn after each following step.
	Trace(fn func(StepTrace)) error

	Counters() Counters

	// Close waits for the steps in flight, stops the threads and frees the memory. It
	// does not free Config.Weights.
	Close()
}

// A Row is the place of a row in the KV cache.
type Row struct{ Page, Row int32 }

// RowOf returns the place of row i of a sequence that has the given pages.
func RowOf(pages []int32, i int) Row { return Row{pages[i/PageRows], int32(i % PageRows)} }

// A CellRow is the place of a row in a cell.
type CellRow struct{ Cell, Row int32 }

// CellRowOf returns the place of row i of a sequence whose cells from the given one on
// are listed.
func CellRowOf(cells []int32, from, i int) CellRow {
	return CellRow{cells[i/CellRows-from], int32(i % CellRows)}
}

// A Calibration holds statistics of the inputs of a model's matmuls; manifest.Matmul
// gives the offsets.
type Calibration struct {
	Squares  []float64 // sums of squares per column, and row counts
	Hessians []float32 // Hessians (sums over rows of xᵀx) without steps of few tokens; valid until the context is closed
}

// Counters are totals since a context was started.
type Counters struct {
	Busy       []time.Duration // compute time of each pipeline stage; nil: unknown
	Graphs     int64           // CUDA graphs captured
	GraphSteps int64           // steps that ran as CUDA graphs
}

// Uninstrumented is embedded in contexts that support neither calibration nor tracing.
type Uninstrumented struct{}

// StartCalibration returns an error.
func (Uninstrumented) StartCalibration(bool) error {
	return errors.New("calibration runs only on the CPU; choose --device cpu")
}

// Calibration returns no statistics.
func (Uninstrumented) Calibration() Calibration { return Calibration{} }

// Trace returns an error.
func (Uninstrumented) Trace(func(StepTrace)) error {
	return errors.New("tracing needs a model on the CPU that is not partitioned; compile it without --devices and choose --device cpu")
}

// ErrComm reports that a rank of a partitioned model lost the connection to another
// rank during a step. The context accepts no further steps.
var ErrComm = errors.New("lost the connection to another rank of the model")

// Ended returns the wait function of a step that has already ended with err.
func Ended(err error) (wait func() error) {
	if err == nil {
		return succeeded // avoids an allocation in the usual case
	}
	return func() error { return err }
}

// NoAdapters is embedded in contexts that cannot load adapters.
type NoAdapters struct{}

// PackAdapter returns an error.
func (n NoAdapters) PackAdapter(a lora.Packer) (lora.Packer, error) { return nil, n.SetAdapter(0, a) }

// SetAdapter returns an error.
func (NoAdapters) SetAdapter(int32, lora.Packer) error {
	return errors.New("this device cannot load adapters")
}

func succeeded() error { return nil }
