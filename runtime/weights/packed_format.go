package weights

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/ir/tensor"
)

// The packed file: "IFLW", u32 format version, u64 length of the index, the
// index as JSON, zeros to a multiple of 4096 bytes, then the data. All numbers
// are little-endian. Items lie in the order of the index at the next multiple
// of 64 bytes, so that offsets follow from the list.
const (
	packedMagic   = "IFLW"
	packedVersion = 1
	packedHead    = 16   // bytes before the index
	packedPage    = 4096 // the data starts at a multiple of it
	itemAlign     = 64
	maxIndexBytes = 256 << 20
)

// Layouts of packed items.
const (
	// LayoutPanel16 is the layout of matrices that kernels multiply with.
	LayoutPanel16 = "panel16"
	// LayoutRow keeps rows as they are, each padded with zeros: plain types to
	// a multiple of 16 elements, block types to whole blocks.
	LayoutRow = "row"
)

// A PackedItem is one weight in a packed file. Offset is from the start of the
// data, that is, into the memory that Load returns. A vector has Rows 1.
type PackedItem struct {
	Name   string
	Index  []int
	DType  tensor.DType
	Rows   int
	Cols   int
	Layout string
	Offset int64
	Bytes  int64
	Deltas int // entries kept aside for which there is room behind the panels
}

// packedIndex is the JSON index.
type packedIndex struct {
	Source string        `json:"source"` // fingerprint of the files packed
	SHA256 string        `json:"sha256"` // of the data
	Bytes  int64         `json:"bytes"`  // of the data
	Items  []packedEntry `json:"items"`
}

type packedEntry struct {
	Name   string `json:"name"`
	Index  []int  `json:"index,omitempty"`
	DType  string `json:"dtype"`
	Rows   int    `json:"rows"`
	Cols   int    `json:"cols"`
	Layout string `json:"layout"`
	Offset int64  `json:"offset"`
	Bytes  int64  `json:"bytes"`
	Deltas int    `json:"deltas,omitempty"`
}

// itemBytes is the size of an item's data.
func itemBytes(dt tensor.DType, rows, cols int, layout string, deltas int) (int64, error) {
	if rows < 1 || cols < 1 || rows > math.MaxInt32 || cols > math.MaxInt32 {
		return 0, fmt.Errorf("shape [%d, %d]", rows, cols)
	}
	if deltas != 0 && (layout != LayoutPanel16 || cols > tensor.MaxDeltaCols || deltas < 0 || float64(deltas) > tensor.MaxDeltaRatio*float64(rows)*float64(cols)) {
		return 0, fmt.Errorf("%d entries kept aside of [%d, %d] in layout %s", deltas, rows, cols, layout)
	}
	switch layout {
	case LayoutPanel16:
		if !CanPanel(dt) {
			return 0, fmt.Errorf("layout panel16 does not hold %s", dt)
		}
		if float64(rows)*float64(cols) > 1<<50 {
			return 0, fmt.Errorf("shape [%d, %d]", rows, cols)
		}
		if deltas > 0 {
			return alignUp(PanelBytes(dt, rows, cols), itemAlign) + DeltaBytes(rows, deltas), nil
		}
		return PanelBytes(dt, rows, cols), nil
	case LayoutRow:
		return int64(rows) * int64(rowStride(dt, cols)), nil
	}
	return 0, fmt.Errorf("unknown layout %q; panel16 and row are known", layout)
}

// rowStride is the distance of rows in LayoutRow.
func rowStride(dt tensor.DType, cols int) int {
	if dt.IsBlock() {
		return rowBytes(dt, cols)
	}
	return (cols + panelRows - 1) / panelRows * panelRows * dt.BlockBytes()
}

func alignUp(n, to int64) int64 { return (n + to - 1) / to * to }

// encode makes the bytes before the data.
func (x *packedIndex) encode() ([]byte, error) {
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	out := make([]byte, alignUp(int64(packedHead+len(text)), packedPage))
	copy(out, packedMagic)
	binary.LittleEndian.PutUint32(out[4:], packedVersion)
	binary.LittleEndian.PutUint64(out[8:], uint64(len(text)))
	copy(out[packedHead:], text)
	return out, nil
}

// items checks the index against itself and against the size of the data that
// the file has room for.
func (x *packedIndex) items(room int64) ([]PackedItem, error) {
	if len(x.SHA256) != 64 || strings.Trim(x.SHA256, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("sha256 %q", x.SHA256)
	}
	if x.Bytes != room {
		return nil, fmt.Errorf("%d bytes of data, the index says %d: %w", room, x.Bytes, errTruncated)
	}
	out := make([]PackedItem, len(x.Items))
	at := int64(0)
	for i, e := range x.Items {
		dt, ok := tensor.ParseDType(e.DType)
		if !ok || dt.String() != e.DType {
			return nil, fmt.Errorf("item %d (%q): unknown type %q", i, e.Name, e.DType)
		}
		size, err := itemBytes(dt, e.Rows, e.Cols, e.Layout, e.Deltas)
		if err != nil {
			return nil, fmt.Errorf("item %d (%q): %w", i, e.Name, err)
		}
		at = alignUp(at, itemAlign)
		if e.Offset != at || e.Bytes != size || size > room-at {
			return nil, fmt.Errorf("item %d (%q): %d bytes at %d, expected %d at %d of %d", i, e.Name, e.Bytes, e.Offset, size, at, room)
		}
		at += size
		out[i] = PackedItem{e.Name, e.Index, dt, e.Rows, e.Cols, e.Layout, e.Offset, e.Bytes, e.Deltas}
	}
	if alignUp(at, itemAlign) != room {
		return nil, fmt.Errorf("items end at %d of %d bytes", at, room)
	}
	return out, nil
}

// decodeIndex reads the index from the bytes after the first 16.
func decodeIndex(text []byte) (*packedIndex, error) {
	x := &packedIndex{}
	if err := json.Unmarshal(text, x); err != nil {
		return nil, err
	}
	if len(x.Items) == 0 {
		return nil, errors.New("no items")
	}
	return x, nil
}
