package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// perturbedBlock is the number of columns of a row whose errors have one magnitude, as in
// the block types.
const perturbedBlock = 32

// Perturb adds to each weight of an f16 matrix an error of random sign. In each block of
// 32 columns of a row, the error is the root mean square of the weights times relative. Like
// the error of a block type, it is thus in proportion to the block. mem holds the item's Bytes
// bytes; equal seeds give equal errors.
func (it *Item) Perturb(mem []byte, relative float64, seed uint64) error {
	if it.DType != dtype.F16 || it.SparseOutliers > 0 {
		return fmt.Errorf("%s%v is %s; only f16 can be perturbed", it.Name, it.Index, it.DType)
	}
	at := func(r, c int) int { return r*RowStride(it.DType, it.Cols) + 2*c }
	if it.Layout == LayoutPanel16 {
		stride := int(PanelStride(it.DType, it.Cols))
		at = func(r, c int) int { return r/PanelRows*stride + c*TileBytes(it.DType) + r%PanelRows*2 }
	}
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), (it.Rows+PanelRows-1)/PanelRows)
	for k := range workers {
		wg.Go(func() {
			for first := k * PanelRows; first < it.Rows; first += workers * PanelRows { // no two workers share a panel
				for r := first; r < min(first+PanelRows, it.Rows); r++ {
					for c := 0; c < it.Cols; c += perturbedBlock {
						perturb(mem, func(i int) int { return at(r, c+i) }, min(perturbedBlock, it.Cols-c), relative, mix(mix(seed)+uint64(r)<<32+uint64(c)))
					}
				}
			}
		})
	}
	wg.Wait()
	return nil
}

// perturb changes n ≤ 32 weights; bit i of signs is the sign of the error of weight i.
func perturb(mem []byte, at func(i int) int, n int, relative float64, signs uint64) {
	var x [perturbedBlock]float64
	sum := 0.0
	for i := range n {
		x[i] = single(binary.LittleEndian.Uint16(mem[at(i):]))
		sum += x[i] * x[i]
	}
	size := relative * math.Sqrt(sum/float64(n))
	for i := range n {
		y := x[i] + size*(1-2*float64(signs>>i&1))
		binary.LittleEndian.PutUint16(mem[at(i):], half(max(-65504, min(y, 65504))))
	}
}

// single decodes an f16 number.
func single(h uint16) float64 {
	e, m := int(h>>10&31), float64(h&1023)
	x := math.Ldexp(m, -24)
	if e > 0 {
		x = math.Ldexp(1024+m, e-25)
	}
	if h>>15 != 0 {
		return -x
	}
	return x
}
