//go:build unix

// Package device is what the engine drives: a compiled model on a CPU, on a GPU
// or on a group of ranks. The engine fills a Step, submits it to a Context and
// waits for its end; it never asks which kind of device it has. Packages cpu,
// cuda and ranks implement Device and Context. What a device cannot do it says
// by its Info, or by an error.
package device

import (
	"errors"
	"time"
)

// A Device is a compiled model's code on the hardware that runs it. It takes no
// memory before Start. Safe for concurrent use.
type Device interface {
	Info() Info
	// ScratchBytes is what a step of the largest shape in cfg takes in this
	// process beside its arrays.
	ScratchBytes(cfg *Config) int64
	// Peak measures for a time how many operations of a kind so many threads do,
	// in GOP/s; 0: the device cannot tell.
	Peak(op Arithmetic, threads int, long time.Duration) float64
	// Start brings the weights to where they are read and makes room for the
	// shapes of cfg.
	Start(cfg *Config) (Context, error)
}

// Info says what a device is and can do.
type Info struct {
	Name     string // the instruction set of a CPU, the name of a GPU
	InFlight int    // steps that may be in flight at once, each in a Step of its own: the stages of a pipeline, else 1
	// PageBytes is the size of a KV-cache page in this process, all layers together.
	PageBytes int64
	// WeightBytes is the size of the weights that the device reads from files of
	// its own, as a group of ranks does; 0: they come with Config.Weights.
	WeightBytes int64
}

// Arithmetic is a kind of operation that Peak measures.
type Arithmetic int

// The kinds of arithmetic that kernels are made of.
const (
	MultiplyAddI8  Arithmetic = iota // of 8-bit integers
	MultiplyAddF32                   // of floats
)

// A Context is a started model: its weights, its KV cache, and what computes
// its steps. Not safe for concurrent use, but for Counters.
type Context interface {
	// Submit starts to compute a step. The step must stay as it is until wait,
	// which is called once, has returned; then its outputs are filled in. Steps end
	// in the order in which they were submitted. Where they run one after the other,
	// Submit returns when the step is computed. wait gives every error, also of what
	// kept the step from starting.
	Submit(s *Step) (wait func() error)

	// CopyPage copies a page of the KV cache, MoveRow one row, in every layer. They
	// take place behind the steps submitted before and ahead of those submitted
	// later, and are for pages that no step in flight uses. An error is that of the
	// next step. The fixed-size state of a recurrent layer would be copied by a
	// third call like these.
	CopyPage(to, from int32)
	MoveRow(to, from Row)

	// StartCalibration makes every matmul add up what it reads from the next step
	// on; Calibration gives the sums so far. With products it also adds up the
	// products of columns.
	StartCalibration(products bool) error
	Calibration() Calibration

	// Trace calls fn after every step from now on.
	Trace(fn func(StepTrace)) error

	Counters() Counters

	// Close waits for the steps in flight, stops the threads and frees the memory.
	// The weights stay.
	Close()
}

// A Row is where a row of the KV cache stands.
type Row struct{ Page, Row int32 }

// RowOf finds row i of a sequence by its pages.
func RowOf(pages []int32, i int) Row { return Row{pages[i/PageRows], int32(i % PageRows)} }

// A Calibration is what the matmuls of a model have read; manifest.Matmul says
// what stands where.
type Calibration struct {
	Squares  []float64 // sums of squares of columns, and counts
	Hessians []float32 // sums of products of columns, without rows of steps of few tokens; valid until the context is closed
}

// Counters are what a context has counted since it was started.
type Counters struct {
	Busy       []time.Duration // in which each stage of a pipeline computed; nil: not known
	Graphs     int64           // CUDA graphs captured
	GraphSteps int64           // steps run as such
}

// Uninstrumented is embedded in contexts that neither calibrate nor trace.
type Uninstrumented struct{}

// StartCalibration gives an error.
func (Uninstrumented) StartCalibration(bool) error {
	return errors.New("calibration runs on the processor: choose --device cpu")
}

// Calibration gives nothing.
func (Uninstrumented) Calibration() Calibration { return Calibration{} }

// Trace gives an error.
func (Uninstrumented) Trace(func(StepTrace)) error {
	return errors.New("tracing shows the threads of a whole model on the processor: compile it without --devices, choose --device cpu")
}

// ErrComm says that a rank of a partitioned model could not reach another one in
// the middle of a step. The context takes no further steps.
var ErrComm = errors.New("another rank of the model could not be reached")

// Ended is the wait of a step that has ended already.
func Ended(err error) (wait func() error) {
	if err == nil {
		return succeeded // the usual case takes no memory
	}
	return func() error { return err }
}

func succeeded() error { return nil }
