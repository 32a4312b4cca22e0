package packed

import "github.com/iflowc/iflowc/runtime/artifact/dtype"

// PanelRows is the number of rows of a panel.
const PanelRows = 16

// TileBytes returns the size of a tile of panel16: 16 rows of one block along K, or of
// one element for plain types. Packing reorders the bits of blocks but keeps their
// number.
func TileBytes(dt dtype.Type) int { return PanelRows * dt.BlockBytes() }

// PanelStride returns the size in bytes of a panel with k columns.
func PanelStride(dt dtype.Type, k int) int64 {
	b := dt.Block()
	return int64((k+b-1)/b) * int64(TileBytes(dt))
}

// PanelBytes returns the size in bytes of a weight [n, k] in panel16.
func PanelBytes(dt dtype.Type, n, k int) int64 {
	return int64(n+PanelRows-1) / PanelRows * PanelStride(dt, k)
}
