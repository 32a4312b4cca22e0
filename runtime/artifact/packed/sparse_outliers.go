package packed

import (
	"encoding/binary"
	"fmt"
)

// SparseEntry is the size in bytes of a sparse outlier, which is added to the value in
// the panels. Sparse outliers are stored after the panels, at the next multiple of 64
// bytes:
//
//	[panels+1] u32          the first entry of each panel, and the number of all
//	from a multiple of 64:
//	entries                 u16 row in the panel, u16 column, f32 difference
//
// Entries are ordered by panel, column and row. There is room for the number of entries
// in the index; unused entries are zero.
const SparseEntry = 8

// SparseBytes returns the size of n sparse outliers of a matrix with the given number
// of rows, 0 for none.
func SparseBytes(rows, n int) int64 {
	if n == 0 {
		return 0
	}
	return SparseHead(rows) + alignUp(int64(n)*SparseEntry, itemAlign)
}

// SparseHead returns the size of the table of panels before the entries.
func SparseHead(rows int) int64 {
	panels := int64(rows+PanelRows-1) / PanelRows
	return alignUp(4*(panels+1), itemAlign)
}

// checkSparse returns an error if rows or columns of sparse outliers are out of range,
// because kernels use them without checks.
func checkSparse(src []byte, rows, cols, n int) error {
	panels := (rows + PanelRows - 1) / PanelRows
	last := uint32(0)
	for p := range panels + 1 {
		at := binary.LittleEndian.Uint32(src[4*p:])
		if at < last || at > uint32(n) || p == 0 && at != 0 {
			return fmt.Errorf("sparse outliers of panel %d start at %d of %d, those of the panel before at %d", p, at, n, last)
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
