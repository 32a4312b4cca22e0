package pack

import (
	"encoding/binary"
	"fmt"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// The layout panel16: a weight [N, K] is divided into panels of 16 rows; N is padded
// with rows of zeros, K with zeros to whole blocks. A panel is contiguous.
//
// Plain types (f32, f16, bf16): for each k the 16 rows' elements, [K][16].
//
// Block types: one tile per block of B along K,
//
//	[vectors × 64 B codes][16 × f16 scale][16 × f16 base]
//
// Symmetric types have no bases; their codes are stored plus tensor.Zero. Trellis-coded types have
// none either; some have scales of one byte. The codes decode to B/4 vectors of 64 bytes; vector j holds in its dword r the codes of row r for
// k = 4j…4j+3, which is one operand of vpdpbusd with lane = row. Types of 8
// bits store these vectors as they are, the others fold them (see the table).

// A fold stores one row's code dwords w[0…B/4) (four codes each, one per byte) in the
// dwords o[0…vectors), one of each stored vector. Shifts stay within bytes, so a dword
// processes four codes at once.
type fold struct {
	vectors int
	row     func(w, o *[16]uint32)
}

// folds are the stored bit layouts of the block types.
var folds = map[tensor.DType]fold{
	tensor.Q8B32:   {8, func(w, o *[16]uint32) { *o = *w }},
	tensor.Q8B32T2: {8, func(w, o *[16]uint32) { *o = *w }},
	tensor.Q8B64:   {16, func(w, o *[16]uint32) { *o = *w }},
	tensor.Q6B64:   {12, foldQ6},
	tensor.Q5B64:   {10, foldQ5},
	tensor.Q5B32:   {5, foldQ5},
	tensor.Q4B32:   {4, foldNibbles},
	tensor.Q4B64:   {8, foldNibbles},
	tensor.Q3HB64:  {7, foldQ3H},
	tensor.Q3B32:   {3, foldQ3},
	tensor.Q2B32:   {2, foldQ2},
	tensor.Q6TB32:  {6, foldQ6},
	tensor.Q5TB32:  {5, foldQ5},
	tensor.Q4TB32:  {4, foldNibbles},
	tensor.Q3TB32:  {3, foldQ3},
	tensor.Q2TB32:  {2, foldQ2},
	tensor.Q6B16T2: {3, foldQ6},
	tensor.Q4B16T2: {2, foldNibbles},
	tensor.Q2B16:   {1, foldQ2},
}

// bits shifts right and masks every byte with `mask`.
func bits(w uint32, shift uint, mask uint32) uint32 { return w >> shift & (mask * 0x01010101) }

// foldNibbles: vector 2j in the low, 2j+1 in the high nibbles of stored j.
func foldNibbles(w, o *[16]uint32) {
	for j := range 8 {
		o[j] = w[2*j] | w[2*j+1]<<4
	}
}

// foldQ6: three of every four vectors keep their six bits; the fourth is stored in their
// top two bits, high bits first.
func foldQ6(w, o *[16]uint32) {
	for t := range 4 {
		x := w[4*t+3]
		o[3*t] = w[4*t] | bits(x, 4, 3)<<6
		o[3*t+1] = w[4*t+1] | bits(x, 2, 3)<<6
		o[3*t+2] = w[4*t+2] | bits(x, 0, 3)<<6
	}
}

// foldQ5: five of every eight vectors keep their five bits; the other three are stored
// in their top three bits.
func foldQ5(w, o *[16]uint32) {
	for t := range 2 {
		v := w[8*t:]
		a, b, c := v[5], v[6], v[7]
		o[5*t] = v[0] | bits(a, 0, 7)<<5
		o[5*t+1] = v[1] | bits(a, 3, 3)<<6 | bits(c, 3, 1)<<5
		o[5*t+2] = v[2] | bits(b, 0, 7)<<5
		o[5*t+3] = v[3] | bits(b, 3, 3)<<6 | bits(c, 4, 1)<<5
		o[5*t+4] = v[4] | bits(c, 0, 7)<<5
	}
}

// foldQ3H: pairs of vectors are 11·even + odd in seven bits; the eighth pair's
// bit j is the top bit of stored vector j.
func foldQ3H(w, o *[16]uint32) {
	last := w[14]*11 + w[15]
	for j := range 7 {
		o[j] = w[2*j]*11 + w[2*j+1] | bits(last, uint(j), 1)<<7
	}
}

// foldQ3: two vectors in the low six bits of each stored one, the last two in
// the top two bits.
func foldQ3(w, o *[16]uint32) {
	a, b := w[6], w[7]
	o[0] = w[0] | w[1]<<3 | bits(a, 0, 3)<<6
	o[1] = w[2] | w[3]<<3 | bits(a, 2, 1)<<6 | bits(b, 2, 1)<<7
	o[2] = w[4] | w[5]<<3 | bits(b, 0, 3)<<6
}

func foldQ2(w, o *[16]uint32) {
	for j := range 2 {
		o[j] = w[4*j] | w[4*j+1]<<2 | w[4*j+2]<<4 | w[4*j+3]<<6
	}
}

// PackPanels writes rows of a weight [n, k] in panel16. rows returns each row's
// stored bytes (whole blocks), which must stay valid for 16 further calls.
// len(dst) must be PanelBytes(dt, n, k).
func PackPanels(dst []byte, dt tensor.DType, n, k int, rows func(r int) []byte) {
	if !dt.IsWeight() || int64(len(dst)) != packed.PanelBytes(dt, n, k) {
		panic(fmt.Sprintf("bug: panels of %s [%d, %d] in %d bytes", dt, n, k, len(dst)))
	}
	stride := packed.PanelStride(dt, k)
	for r := 0; r < n; r += packed.PanelRows {
		var panel [packed.PanelRows][]byte
		for i := range min(packed.PanelRows, n-r) {
			panel[i] = rows(r + i)
		}
		packPanel(dst[:stride], dt, k, &panel)
		dst = dst[stride:]
	}
}

// packPanel writes one panel; absent rows are nil.
func packPanel(dst []byte, dt tensor.DType, k int, rows *[packed.PanelRows][]byte) {
	if dt.IsBlock() {
		packTiles(dst, dt, k, rows)
		return
	}
	clear(dst)
	size := dt.BlockBytes()
	for r, row := range rows {
		if row == nil {
			continue
		}
		out := dst[r*size:]
		if size == 4 {
			for c := range k {
				binary.LittleEndian.PutUint32(out[64*c:], binary.LittleEndian.Uint32(row[4*c:]))
			}
			continue
		}
		for c := range k {
			binary.LittleEndian.PutUint16(out[32*c:], binary.LittleEndian.Uint16(row[2*c:]))
		}
	}
}

func packTiles(dst []byte, dt tensor.DType, k int, rows *[packed.PanelRows][]byte) {
	b, size, tile, f := dt.Block(), dt.BlockBytes(), packed.TileBytes(dt), folds[dt]
	t := tensor.TrellisOf(dt)
	padding := uint8(0) // code of columns beyond k, whose activations are 0, and of rows of zeros
	if t == nil {
		padding = tensor.Zero(dt)
	}
	var buf [64]uint8
	codes := buf[:b]
	var w, o [16]uint32
	for kb := 0; kb*b < k; kb++ {
		out := dst[kb*tile : (kb+1)*tile]
		meta := out[64*f.vectors:]
		for r, row := range rows {
			var scale, base uint16
			valid := 0
			if row != nil {
				scale, base = tensor.BlockCodes(dt, row[kb*size:(kb+1)*size], codes)
				valid = min(b, k-kb*b)
				if t != nil {
					valid = b // a code also determines the values after it
				}
			}
			for i := valid; i < b; i++ {
				codes[i] = padding
			}
			for j := range b / 4 {
				w[j] = binary.LittleEndian.Uint32(codes[4*j:])
			}
			f.row(&w, &o)
			for z := range f.vectors {
				binary.LittleEndian.PutUint32(out[64*z+4*r:], o[z])
			}
			if dt.ByteScale() {
				meta[r] = byte(scale >> 7)
				continue
			}
			binary.LittleEndian.PutUint16(meta[2*r:], scale)
			if tensor.HasBase(dt) {
				binary.LittleEndian.PutUint16(meta[2*packed.PanelRows+2*r:], base)
			}
		}
	}
}
