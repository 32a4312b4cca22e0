package pack

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// packSparse writes the sparse outliers of rows; row returns the outliers of a row,
// sorted by column.
func packSparse(dst []byte, rows, n int, row func(r int) []tensor.SparseOutlier) error {
	clear(dst)
	entries := dst[packed.SparseHead(rows):]
	count := 0
	var at [packed.PanelRows]int
	var of [packed.PanelRows][]tensor.SparseOutlier
	for r := 0; r < rows; r += packed.PanelRows {
		binary.LittleEndian.PutUint32(dst[r/packed.PanelRows*4:], uint32(count))
		for i := range packed.PanelRows {
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
				return fmt.Errorf("more than %d sparse outliers", n)
			}
			e := entries[count*packed.SparseEntry:]
			binary.LittleEndian.PutUint16(e, uint16(next))
			binary.LittleEndian.PutUint16(e[2:], uint16(col))
			binary.LittleEndian.PutUint32(e[4:], math.Float32bits(of[next][at[next]].Value))
			at[next]++
			count++
		}
	}
	panels := (rows + packed.PanelRows - 1) / packed.PanelRows
	binary.LittleEndian.PutUint32(dst[panels*4:], uint32(count))
	return nil
}
