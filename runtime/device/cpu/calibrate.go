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
	hessians *device.Region // [ifl_calib_hessians]
	inputs   *device.Region // input rows from which Hessians are computed
}

var errNoMatmul = errors.New("the model has no matmul to calibrate")

// StartCalibration allocates the memory for each thread's sums.
func (m *model) StartCalibration(hessians bool) error {
	if m.lib.sumsLen == 0 || m.lib.setSums == 0 {
		return errors.New("the model's library cannot calibrate; compile the model again")
	}
	n, _, _ := purego.SyscallN(m.lib.sumsLen)
	if n == 0 {
		return errNoMatmul
	}
	var err error
	c := &m.calibration
	if c.sums, err = device.Map(int64(n)*8*int64(m.threads), "sums of calibration"); err != nil {
		return err
	}
	purego.SyscallN(m.lib.setSums, m.handle, uintptr(unsafe.Pointer(&c.sums.Bytes[0])))
	if hessians {
		return m.startHessians()
	}
	return nil
}

// startHessians allocates the memory for Hessians. Steps of few tokens do not
// contribute to them.
func (m *model) startHessians() error {
	if m.lib.hessiansLen == 0 || m.lib.inputLen == 0 || m.lib.setHessians == 0 {
		return errors.New("the model's library cannot compute Hessians; compile the model again")
	}
	n, _, _ := purego.SyscallN(m.lib.hessiansLen)
	row, _, _ := purego.SyscallN(m.lib.inputLen)
	if n == 0 {
		return errNoMatmul
	}
	var err error
	c := &m.calibration
	if c.hessians, err = device.Map(int64(n)*4, "Hessians"); err != nil {
		return err
	}
	if c.inputs, err = device.Map(int64(row)*4*int64(c.rows), "rows of calibration"); err != nil {
		return err
	}
	purego.SyscallN(m.lib.setHessians, m.handle, uintptr(unsafe.Pointer(&c.hessians.Bytes[0])), uintptr(unsafe.Pointer(&c.inputs.Bytes[0])))
	return nil
}

// Calibration returns the sums over all threads.
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
