package packed

import (
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// The packed file: "IFLW", u32 format version, u64 length of the index, the
// index as JSON, zeros to a multiple of 4096 bytes, then the data. All numbers
// are little-endian. Items lie in the order of the index at the next multiple
// of 64 bytes, so that offsets follow from the list.
const (
	magic         = "IFLW"
	version       = 2
	headBytes     = 16   // bytes before the index
	page          = 4096 // the data starts at a multiple of it
	itemAlign     = 64
	maxIndexBytes = 256 << 20
)

var errShort = errors.New("the file ends early; it is truncated")

// Layouts of packed items.
const (
	// LayoutPanel16 is the layout of matrices that kernels multiply with.
	LayoutPanel16 = "panel16"
	// LayoutRow keeps rows as they are, each padded with zeros: plain types to
	// a multiple of 16 elements, block types to whole blocks.
	LayoutRow = "row"
)

// An Item is one weight in a packed file. Offset is from the start of the
// data, that is, into the memory that Load returns. A vector has Rows 1.
type Item struct {
	Name           string
	Index          []int
	DType          dtype.Type
	Rows           int
	Cols           int
	Layout         string
	Offset         int64
	Bytes          int64
	SparseOutliers int // for which there is room behind the panels
}

// index is the JSON index.
type index struct {
	Source string  `json:"source"` // fingerprint of the files packed
	SHA256 string  `json:"sha256"` // of the data
	Bytes  int64   `json:"bytes"`  // of the data
	Items  []entry `json:"items"`
}

type entry struct {
	Name           string `json:"name"`
	Index          []int  `json:"index,omitempty"`
	DType          string `json:"dtype"`
	Rows           int    `json:"rows"`
	Cols           int    `json:"cols"`
	Layout         string `json:"layout"`
	Offset         int64  `json:"offset"`
	Bytes          int64  `json:"bytes"`
	SparseOutliers int    `json:"sparse_outliers,omitempty"`
}

// itemBytes is the size of an item's data.
func itemBytes(dt dtype.Type, rows, cols int, layout string, outliers int) (int64, error) {
	if rows < 1 || cols < 1 || rows > math.MaxInt32 || cols > math.MaxInt32 {
		return 0, fmt.Errorf("shape [%d, %d]", rows, cols)
	}
	if outliers != 0 && (layout != LayoutPanel16 || cols > dtype.MaxSparseCols || outliers < 0 || float64(outliers) > dtype.MaxSparseRatio*float64(rows)*float64(cols)) {
		return 0, fmt.Errorf("%d sparse outliers of [%d, %d] in layout %s", outliers, rows, cols, layout)
	}
	switch layout {
	case LayoutPanel16:
		if !CanPanel(dt) {
			return 0, fmt.Errorf("layout panel16 does not hold %s", dt)
		}
		if float64(rows)*float64(cols) > 1<<50 {
			return 0, fmt.Errorf("shape [%d, %d]", rows, cols)
		}
		if outliers > 0 {
			return alignUp(PanelBytes(dt, rows, cols), itemAlign) + SparseBytes(rows, outliers), nil
		}
		return PanelBytes(dt, rows, cols), nil
	case LayoutRow:
		return int64(rows) * int64(RowStride(dt, cols)), nil
	}
	return 0, fmt.Errorf("unknown layout %q; panel16 and row are known", layout)
}

// RowStride is the distance of rows in LayoutRow.
func RowStride(dt dtype.Type, cols int) int {
	if b := dt.Block(); b > 1 {
		return (cols + b - 1) / b * dt.BlockBytes()
	}
	return (cols + PanelRows - 1) / PanelRows * PanelRows * dt.BlockBytes()
}

func alignUp(n, to int64) int64 { return (n + to - 1) / to * to }

// Place gives items their places, in their order: Offset and Bytes. It returns
// the size of the data.
func Place(items []Item) (size int64, err error) {
	at := int64(0)
	for i := range items {
		it := &items[i]
		if it.Bytes, err = itemBytes(it.DType, it.Rows, it.Cols, it.Layout, it.SparseOutliers); err != nil {
			return 0, fmt.Errorf("%s%v: %w", it.Name, it.Index, err)
		}
		it.Offset = alignUp(at, itemAlign)
		at = it.Offset + it.Bytes
	}
	return alignUp(at, itemAlign), nil
}

// Header makes what stands before the data: the head and the index, up to the
// page where the data begins. Items are placed; source names the files that
// were packed, and sum is the data's SHA-256 in hexadecimal, which takes the
// same room whatever it is.
func Header(source, sum string, size int64, items []Item) ([]byte, error) {
	x := index{Source: source, SHA256: sum, Bytes: size}
	for _, it := range items {
		x.Items = append(x.Items, entry{it.Name, it.Index, it.DType.String(), it.Rows, it.Cols, it.Layout, it.Offset, it.Bytes, it.SparseOutliers})
	}
	text, err := json.Marshal(x)
	if err != nil {
		return nil, err
	}
	out := make([]byte, alignUp(int64(headBytes+len(text)), page))
	copy(out, magic)
	binary.LittleEndian.PutUint32(out[4:], version)
	binary.LittleEndian.PutUint64(out[8:], uint64(len(text)))
	copy(out[headBytes:], text)
	return out, nil
}

// items checks the index against itself and against the size of the data that
// the file has room for.
func (x *index) items(room int64) ([]Item, error) {
	if len(x.SHA256) != 64 || strings.Trim(x.SHA256, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("sha256 %q", x.SHA256)
	}
	if x.Bytes != room {
		return nil, fmt.Errorf("%d bytes of data, the index says %d: %w", room, x.Bytes, errShort)
	}
	out := make([]Item, len(x.Items))
	at := int64(0)
	for i, e := range x.Items {
		dt, ok := dtype.Parse(e.DType)
		if !ok || dt.String() != e.DType {
			return nil, fmt.Errorf("item %d (%q): unknown type %q", i, e.Name, e.DType)
		}
		size, err := itemBytes(dt, e.Rows, e.Cols, e.Layout, e.SparseOutliers)
		if err != nil {
			return nil, fmt.Errorf("item %d (%q): %w", i, e.Name, err)
		}
		at = alignUp(at, itemAlign)
		if e.Offset != at || e.Bytes != size || size > room-at {
			return nil, fmt.Errorf("item %d (%q): %d bytes at %d, expected %d at %d of %d", i, e.Name, e.Bytes, e.Offset, size, at, room)
		}
		at += size
		out[i] = Item{e.Name, e.Index, dt, e.Rows, e.Cols, e.Layout, e.Offset, e.Bytes, e.SparseOutliers}
	}
	if alignUp(at, itemAlign) != room {
		return nil, fmt.Errorf("items end at %d of %d bytes", at, room)
	}
	return out, nil
}

// decodeIndex reads the index from the bytes after the first 16.
func decodeIndex(text []byte) (*index, error) {
	x := &index{}
	if err := json.Unmarshal(text, x); err != nil {
		return nil, err
	}
	if len(x.Items) == 0 {
		return nil, errors.New("no items")
	}
	return x, nil
}
