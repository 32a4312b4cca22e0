//go:build unix

package cpu

import (
	"errors"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device"
)

// A calibration holds the memory in which the threads accumulate statistics.
type calibration struct {
	rows     int            // rows of statistics of the largest matmul
	sums     *device.Region // [threads][ifl_calib_sums] sums of squares
	inputs   *device.Region // input rows of one matmul
	hessians *device.Region // [ifl_calib_hessians]
}

// StartCalibration allocates the memory for each thread's sums and for Hessians. Steps
// of few tokens do not contribute to Hessians.
func (m *model) StartCalibration(hessians bool) (err error) {
	if m.lib.calibrate == 0 {
		return errors.New("the model's library cannot calibrate; compile the model again")
	}
	length := func(f uintptr) int64 { n, _, _ := purego.SyscallN(f); return int64(n) }
	n := length(m.lib.sumsLen)
	if n == 0 {
		return errors.New("the model has no matmul to calibrate")
	}
	c := &m.calibration
	if c.sums, err = device.Map(n*8*int64(m.threads), "sums of calibration"); err != nil {
		return err
	}
	if c.inputs, err = device.Map(length(m.lib.inputLen)*4*int64(c.rows), "rows of calibration"); err != nil {
		return err
	}
	at := func(r *device.Region) uintptr { return uintptr(unsafe.Pointer(&r.Bytes[0])) }
	products := uintptr(0)
	if hessians {
		if c.hessians, err = device.Map(length(m.lib.hessiansLen)*4, "Hessians"); err != nil {
			return err
		}
		products = at(c.hessians)
	}
	purego.SyscallN(m.lib.calibrate, m.handle, at(c.sums), at(c.inputs), products)
	return nil
}

// Calibration returns the sums over all threads. Each is in the part of one thread.
func (m *model) Calibration() (out device.Calibration) {
	c := &m.calibration
	if c.sums != nil {
		all := unsafe.Slice((*float64)(unsafe.Pointer(&c.sums.Bytes[0])), len(c.sums.Bytes)/8)
		out.Squares = make([]float64, len(all)/m.threads)
		for i, x := range all {
			out.Squares[i%len(out.Squares)] += x
		}
	}
	if c.hessians != nil {
		out.Hessians = unsafe.Slice((*float32)(unsafe.Pointer(&c.hessians.Bytes[0])), len(c.hessians.Bytes)/4)
	}
	return out
}
