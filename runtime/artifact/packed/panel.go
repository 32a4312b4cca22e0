package packed

import "github.com/iflowc/iflowc/runtime/artifact/dtype"

// PanelRows is the number of rows of a panel.
const PanelRows = 16

// CanPanel says whether panel16 holds the type: the float types and the block
// types that kernels compute with.
func CanPanel(dt dtype.Type) bool {
	return dt == dtype.F32 || dt == dtype.F16 || dt == dtype.BF16 || dt >= dtype.Q8B32 && dt <= dtype.Q2B32
}

// TileBytes is the size of one tile of panel16: 16 rows of one block along K,
// or of one k for plain types. Packing moves the bits of blocks about but
// neither adds nor drops any.
func TileBytes(dt dtype.Type) int { return PanelRows * dt.BlockBytes() }

// PanelStride is the size of one panel of rows of k columns.
func PanelStride(dt dtype.Type, k int) int64 {
	b := dt.Block()
	return int64((k+b-1)/b) * int64(TileBytes(dt))
}

// PanelBytes is the size of a weight [n, k] in panel16.
func PanelBytes(dt dtype.Type, n, k int) int64 {
	return int64(n+PanelRows-1) / PanelRows * PanelStride(dt, k)
}
