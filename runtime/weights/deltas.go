package weights

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
)

// Deltas of a matrix in panels stand behind them, from the next multiple of 64
// bytes on:
//
//	[panels+1] u32          the first entry of each panel, and the number of all
//	from a multiple of 64:
//	entries of 8 bytes      u16 row in the panel, u16 column, f32 delta
//
// in the order of panels, in a panel in that of columns, in a column in that of
// rows. There is room for as many entries as the item says; what is not used is
// zero.
const deltaBytes = 8

// DeltaBytes is what n deltas of a matrix of so many rows take behind its
// panels; nothing for none.
func DeltaBytes(rows, n int) int64 {
	if n == 0 {
		return 0
	}
	return deltaHead(rows) + alignUp(int64(n)*deltaBytes, itemAlign)
}

// deltaHead is the size of the table of panels.
func deltaHead(rows int) int64 {
	panels := int64(rows+panelRows-1) / panelRows
	return alignUp(4*(panels+1), itemAlign)
}

// packDeltas writes the deltas of rows; row gives those of each, by columns.
func packDeltas(dst []byte, rows, n int, row func(r int) []tensor.Delta) error {
	clear(dst)
	entries := dst[deltaHead(rows):]
	count := 0
	var at [panelRows]int
	var of [panelRows][]tensor.Delta
	for r := 0; r < rows; r += panelRows {
		binary.LittleEndian.PutUint32(dst[r/panelRows*4:], uint32(count))
		for i := range panelRows {
			at[i], of[i] = 0, nil
			if r+i < rows {
				of[i] = row(r + i)
			}
		}
		for {
			next, col := -1, math.MaxInt
			for i := range of {
				if at[i] < len(of[i]) && of[i][at[i]].Col < col {
					next, col = i, of[i][at[i]].Col
				}
			}
			if next < 0 {
				break
			}
			if count == n {
				return fmt.Errorf("more than the %d entries kept aside that there is room for", n)
			}
			e := entries[count*deltaBytes:]
			binary.LittleEndian.PutUint16(e, uint16(next))
			binary.LittleEndian.PutUint16(e[2:], uint16(col))
			binary.LittleEndian.PutUint32(e[4:], math.Float32bits(of[next][at[next]].Value))
			at[next]++
			count++
		}
	}
	panels := (rows + panelRows - 1) / panelRows
	binary.LittleEndian.PutUint32(dst[panels*4:], uint32(count))
	return nil
}

// checkDeltas says what is wrong with deltas that were read: kernels follow
// their rows and columns.
func checkDeltas(src []byte, rows, cols, n int) error {
	panels := (rows + panelRows - 1) / panelRows
	last := uint32(0)
	for p := range panels + 1 {
		at := binary.LittleEndian.Uint32(src[4*p:])
		if at < last || at > uint32(n) || p == 0 && at != 0 {
			return fmt.Errorf("entries kept aside of panel %d begin at %d of %d, those before it at %d", p, at, n, last)
		}
		last = at
	}
	entries := src[deltaHead(rows):]
	for i := range int(last) {
		e := entries[i*deltaBytes:]
		r, c := binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint16(e[2:])
		if r >= panelRows || int(c) >= cols {
			return fmt.Errorf("entry kept aside %d is in row %d of its panel and column %d of %d", i, r, c, cols)
		}
	}
	return nil
}
