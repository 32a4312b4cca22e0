//go:build unix

package device

import (
	"errors"
	"unsafe"

	"github.com/ebitengine/purego"
)

// See starts calibration: from the next step on every matmul adds the squares
// of the rows that it reads, column by column. Context.Seen gives the sums.
func (c *Context) See() error {
	if c.on != nil {
		return errNoCalibration
	}
	if c.lib.seen == 0 || c.lib.see == 0 {
		return errors.New("the model's library cannot calibrate; compile the model again")
	}
	n, _, _ := purego.SyscallN(c.lib.seen)
	if n == 0 {
		return errors.New("the model has no matmul to calibrate")
	}
	var err error
	if c.seen, err = Map(int64(n)*8*int64(c.threads), "sums of calibration"); err != nil {
		return err
	}
	purego.SyscallN(c.lib.see, c.handle, uintptr(unsafe.Pointer(&c.seen.Bytes[0])))
	return nil
}

// Seen adds up what the threads have seen since See; manifest.Site says what
// stands where.
func (c *Context) Seen() []float64 {
	all := unsafe.Slice((*float64)(unsafe.Pointer(&c.seen.Bytes[0])), len(c.seen.Bytes)/8)
	out := make([]float64, len(all)/c.threads)
	for i, x := range all {
		out[i%len(out)] += x
	}
	return out
}

// SeeMoments starts the second half of calibration: from the next step on every
// matmul also adds up the products of the columns of the rows it reads, in
// squares (manifest.Site). Rows of steps of few tokens are left out. Moments
// gives the sums.
func (c *Context) SeeMoments() error {
	if c.on != nil {
		return errNoCalibration
	}
	if c.lib.moments == 0 || c.lib.momentRow == 0 || c.lib.seeProducts == 0 {
		return errors.New("the model's library keeps no products of columns; compile the model again")
	}
	n, _, _ := purego.SyscallN(c.lib.moments)
	row, _, _ := purego.SyscallN(c.lib.momentRow)
	if n == 0 {
		return errors.New("the model has no matmul to calibrate")
	}
	var err error
	if c.moments, err = Map(int64(n)*4, "products of columns"); err != nil {
		return err
	}
	if c.rows, err = Map(int64(row)*4*int64(max(len(c.ID), len(c.Want))), "rows of calibration"); err != nil {
		return err
	}
	purego.SyscallN(c.lib.seeProducts, c.handle, uintptr(unsafe.Pointer(&c.moments.Bytes[0])), uintptr(unsafe.Pointer(&c.rows.Bytes[0])))
	return nil
}

// Moments are the sums since SeeMoments, valid until the context is closed.
func (c *Context) Moments() []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(&c.moments.Bytes[0])), len(c.moments.Bytes)/4)
}
