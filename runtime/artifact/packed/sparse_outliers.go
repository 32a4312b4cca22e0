package packed

import (
	"encoding/binary"
	"fmt"
)

// SparseEntry is the size in bytes of one of a matrix's sparse outliers, which are
// added to what its panels hold. They stand behind the panels, from the next
// multiple of 64 bytes on:
//
//	[panels+1] u32          the first entry of each panel, and the number of all
//	from a multiple of 64:
//	entries                 u16 row in the panel, u16 column, f32 difference
//
// in the order of panels, in a panel in that of columns, in a column in that of
// rows. There is room for as many entries as the item says; what is not used is
// zero.
const SparseEntry = 8

// SparseBytes is what n sparse outliers of a matrix of so many rows take behind
// its panels; nothing for none.
func SparseBytes(rows, n int) int64 {
	if n == 0 {
		return 0
	}
	return SparseHead(rows) + alignUp(int64(n)*SparseEntry, itemAlign)
}

// SparseHead is the size of the table of panels in front of the entries.
func SparseHead(rows int) int64 {
	panels := int64(rows+PanelRows-1) / PanelRows
	return alignUp(4*(panels+1), itemAlign)
}

// checkSparse says what is wrong with sparse outliers that were read: kernels
// follow their rows and columns.
func checkSparse(src []byte, rows, cols, n int) error {
	panels := (rows + PanelRows - 1) / PanelRows
	last := uint32(0)
	for p := range panels + 1 {
		at := binary.LittleEndian.Uint32(src[4*p:])
		if at < last || at > uint32(n) || p == 0 && at != 0 {
			return fmt.Errorf("sparse outliers of panel %d begin at %d of %d, those before it at %d", p, at, n, last)
		}
		last = at
	}
	entries := src[SparseHead(rows):]
	for i := range int(last) {
		e := entries[i*SparseEntry:]
		r, c := binary.LittleEndian.Uint16(e), binary.LittleEndian.Uint16(e[2:])
		if r >= PanelRows || int(c) >= cols {
			return fmt.Errorf("sparse outlier %d is in row %d of its panel and column %d of %d", i, r, c, cols)
		}
	}
	return nil
}
