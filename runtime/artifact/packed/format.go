package packed

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// The packed file: "IFLW", u32 format version, u64 length of the index, the index's
// SHA-256, the index as JSON, zeros to a multiple of 4096 bytes, then the data. Numbers
// are little-endian. The index contains the SHA-256 of the data. Items are in the order
// of the index, each padded with zeros to a multiple of 64 bytes, so their offsets
// follow from the list.
const (
	magic         = "IFLW"
	version       = 3
	sumAt         = 16   // offset of the index's SHA-256
	headBytes     = 48   // bytes before the index
	page          = 4096 // alignment of the data
	itemAlign     = 64
	maxIndexBytes = 256 << 20
)

var errShort = errors.New("the file ends early; it is truncated")

// Layouts of packed items.
const (
	// LayoutPanel16 is the layout of matrices for matmul kernels.
	LayoutPanel16 = "panel16"
	// LayoutRow stores rows unchanged, each padded with zeros: plain types to a
	// multiple of 16 elements, block types to whole blocks.
	LayoutRow = "row"
)

// An Item is a weight in a packed file. Offset is relative to the start of the data,
// which is the start of Load's memory. A vector has Rows 1.
type Item struct {
	Name           string
	Index          []int
	DType          dtype.Type
	Rows           int
	Cols           int
	Layout         string
	Offset         int64
	Bytes          int64
	SparseOutliers int // capacity after the panels
}

// index is the JSON index.
type index struct {
	Source string  `json:"source"` // from Source
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

// check returns an error for an invalid item.
func (it *Item) check() error {
	if it.Rows < 1 || it.Cols < 1 || it.Rows > math.MaxInt32 || it.Cols > math.MaxInt32 || float64(it.Rows)*float64(it.Cols) > 1<<50 {
		return fmt.Errorf("invalid shape [%d, %d]", it.Rows, it.Cols)
	}
	n := it.SparseOutliers
	if n != 0 && (it.Layout != LayoutPanel16 || it.Cols > dtype.MaxSparseCols || n < 0 || float64(n) > dtype.MaxSparseRatio*float64(it.Rows)*float64(it.Cols)) {
		return fmt.Errorf("%d sparse outliers of [%d, %d] in layout %s are not valid", n, it.Rows, it.Cols, it.Layout)
	}
	switch {
	case it.Layout != LayoutPanel16 && it.Layout != LayoutRow:
		return fmt.Errorf("unknown layout %q; expected panel16 or row", it.Layout)
	case it.Layout == LayoutPanel16 && !it.DType.IsWeight():
		return fmt.Errorf("layout panel16 does not support %s", it.DType)
	}
	return nil
}

// Size returns the size of the item's data in bytes, a multiple of 64, so that items
// are contiguous. It does not use Offset and Bytes. The compiler plans offsets with it
// too.
func (it *Item) Size() int64 {
	if it.Layout == LayoutRow {
		return alignUp(int64(it.Rows)*int64(RowStride(it.DType, it.Cols)), itemAlign)
	}
	return alignUp(PanelBytes(it.DType, it.Rows, it.Cols), itemAlign) + SparseBytes(it.Rows, it.SparseOutliers)
}

// RowStride returns the distance of rows in LayoutRow, in bytes.
func RowStride(dt dtype.Type, cols int) int {
	if b := dt.Block(); b > 1 {
		return (cols + b - 1) / b * dt.BlockBytes()
	}
	return (cols + PanelRows - 1) / PanelRows * PanelRows * dt.BlockBytes()
}

func alignUp(n, to int64) int64 { return (n + to - 1) / to * to }

// Place sets Offset and Bytes of all items, in order, and returns the size of the data.
func Place(items []Item) (size int64, err error) {
	for i := range items {
		it := &items[i]
		if err := it.check(); err != nil {
			return 0, fmt.Errorf("%s%v: %w", it.Name, it.Index, err)
		}
		it.Offset, it.Bytes = size, it.Size()
		size += it.Bytes
	}
	return size, nil
}

// Header returns the bytes before the data: header and index, padded to a page. Items
// must have their places; source is from Source, sum the data's
// SHA-256 in hexadecimal. The length does not depend on sum.
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
	sum256 := sha256.Sum256(text)
	copy(out[sumAt:], sum256[:])
	copy(out[headBytes:], text)
	return out, nil
}

// items converts the index to items. It checks their consistency and the actual size of
// the data.
func (x *index) items(room int64) ([]Item, error) {
	if len(x.SHA256) != 64 || strings.Trim(x.SHA256, "0123456789abcdef") != "" {
		return nil, fmt.Errorf("sha256 %q", x.SHA256)
	}
	if x.Bytes != room {
		return nil, fmt.Errorf("%d bytes of data, expected %d: %w", room, x.Bytes, errShort)
	}
	out := make([]Item, len(x.Items))
	at := int64(0)
	for i, e := range x.Items {
		dt, ok := dtype.Parse(e.DType)
		if !ok || dt.String() != e.DType {
			return nil, fmt.Errorf("item %d (%q): unknown type %q", i, e.Name, e.DType)
		}
		it := Item{e.Name, e.Index, dt, e.Rows, e.Cols, e.Layout, e.Offset, e.Bytes, e.SparseOutliers}
		if err := it.check(); err != nil {
			return nil, fmt.Errorf("item %d (%q): %w", i, e.Name, err)
		}
		if size := it.Size(); e.Offset != at || e.Bytes != size || size > room-at {
			return nil, fmt.Errorf("item %d (%q): %d bytes at %d, expected %d at %d of %d", i, e.Name, e.Bytes, e.Offset, size, at, room)
		}
		at += e.Bytes
		out[i] = it
	}
	if at != room {
		return nil, fmt.Errorf("items end at %d of %d bytes", at, room)
	}
	return out, nil
}

// decodeIndex decodes the JSON index.
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
