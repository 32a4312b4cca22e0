package tensor

import (
	"encoding/binary"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// A Trellis describes a type with trellis-coded values (Marcellin & Fischer 1990). The
// value of a code is scale·Levels[q] with q = 2·(code ⊕ a) + b, where b is the low bit of
// the code before it and a that of the code before that. There are twice as many levels
// as codes, so that an encoder that looks ahead finds closer ones. The three low bits are
// the convolutional code with generators 5 and 2 of Ungerboeck's 4-state trellis.
//
// The codes follow each other in the order of columns 0, 4, … 28, 1, 5, … 31, and the
// code of column 31 is before that of column 0. A kernel thus finds the code before four
// columns in the same register lanes of the four columns to their left.
//
// A block is stored as its scale, then the planes of the codes in the order of columns.
type Trellis struct {
	Bits      uint   // of a code
	ByteScale bool   // see DType.ByteScale; otherwise the scale is an f16 number
	Zero      uint8  // code of zero in kernels, which compute with Zero + level
	Levels    []int8 // 2·2^Bits, ascending
	Inner     int    // if not 0, levels are in steps of 1 up to this magnitude, and of 3 beyond it

	planes []plane
	near   [4][256]nearest // by q mod 4 and ⌊x⌋ + 128
	reach  float32         // largest magnitude of a level
}

// A nearest is the level closest to x: that of q, or that of q+4 if x is above the middle.
type nearest struct {
	q      uint8
	middle float32
}

const trellisBlock = 32

// trellis lists the trellis-coded types. The levels of up to 4 bits come from Lloyd's
// algorithm on blocks of Gaussian and of MiniLM's weights; docs/benchmarks/quantization.md
// has the experiment.
var trellis = [dtype.Count]*Trellis{
	Q6TB32: newTrellis(Q6TB32, Trellis{Bits: 6, Zero: 128, Inner: 48, planes: []plane{{2, 4}, {4, 0}}}),
	Q5TB32: newTrellis(Q5TB32, Trellis{Bits: 5, Zero: 64, Inner: 24, planes: []plane{{1, 4}, {4, 0}}}),
	Q4TB32: newTrellis(Q4TB32, Trellis{Bits: 4, Zero: 64, planes: []plane{{4, 0}},
		Levels: mirrored(1, 4, 6, 8, 11, 14, 16, 19, 22, 26, 29, 34, 39, 46, 54, 63)}),
	Q3TB32: newTrellis(Q3TB32, Trellis{Bits: 3, Zero: 64, planes: []plane{{1, 2}, {2, 0}}, Levels: mirrored(2, 8, 13, 19, 25, 34, 44, 63)}),
	Q2TB32: newTrellis(Q2TB32, Trellis{Bits: 2, Zero: 64, planes: []plane{{2, 0}}, Levels: mirrored(5, 19, 34, 63)}),
}

// TrellisOf returns the description of a trellis-coded type; nil for other types.
func TrellisOf(d DType) *Trellis { return trellis[d] }

// mirrored returns the given levels, and before them the same with the other sign.
func mirrored(positive ...int8) []int8 {
	var levels []int8
	for i := len(positive) - 1; i >= 0; i-- {
		levels = append(levels, -positive[i])
	}
	return append(levels, positive...)
}

func newTrellis(dt DType, t Trellis) *Trellis {
	l := &t
	l.ByteScale = dt.ByteScale()
	if l.Levels == nil {
		half := 1 << l.Bits
		for x := -half; x < half; x++ {
			l.Levels = append(l.Levels, int8(x+2*(max(x-l.Inner, 0)+min(x+l.Inner, 0))))
		}
	}
	levels := l.Levels
	l.reach = -float32(levels[0])
	for d := range l.near {
		for i := range l.near[d] {
			q := d
			middle := func() float32 { return (float32(levels[q]) + float32(levels[q+4])) / 2 }
			for q+4 < len(levels) && middle() <= float32(i-128) {
				q += 4
			}
			n := nearest{uint8(q), math.MaxFloat32}
			if q+4 < len(levels) {
				n.middle = middle()
			}
			l.near[d][i] = n
		}
	}
	return l
}

// column returns the column of the code at a place of the order.
func (l *Trellis) column(place int) int { return place%8*4 + place/8 }

// head is the number of bytes of the scale.
func (l *Trellis) head() int {
	if !l.ByteScale {
		return 2
	}
	return 1
}

// byteScaleUnit is the weight of a stored f16 number in a scale of one byte.
const byteScaleUnit = 1.0 / 256

// scaleOf returns the scale that the f16 bits of BlockCodes stand for.
func (l *Trellis) scaleOf(stored uint16) float32 {
	s := F16ToF32(stored)
	if l.ByteScale {
		s *= byteScaleUnit
	}
	return s
}

// Levels replaces the codes of one block of a trellis-coded type by what kernels compute
// with: Zero(d) + level. It leaves those of other types as they are.
func Levels(d DType, codes []uint8) {
	l := trellis[d]
	if l == nil {
		return
	}
	var out [trellisBlock]uint8
	b, a := codes[l.column(31)]&1, codes[l.column(30)]&1
	for place := range trellisBlock {
		c := codes[l.column(place)]
		out[l.column(place)] = l.Zero + uint8(l.Levels[2*(c^a)+b])
		b, a = c&1, b
	}
	copy(codes, out[:])
}

func (l *Trellis) blockCodes(block []byte, codes []uint8) (scale uint16) {
	unpackPlanes(l.planes, block[l.head():], codes)
	if !l.ByteScale {
		return binary.LittleEndian.Uint16(block)
	}
	return uint16(block[0]) << 7
}

func (l *Trellis) putBlock(block []byte, scale uint16, codes []uint8) {
	if !l.ByteScale {
		binary.LittleEndian.PutUint16(block, scale)
	} else {
		block[0] = byte(scale >> 7)
	}
	packPlanes(l.planes, block[l.head():], codes)
}

func decodeTrellis(dst []float32, dt DType, src []byte) {
	l := trellis[dt]
	var codes [trellisBlock]uint8
	scale := l.scaleOf(l.blockCodes(src, codes[:]))
	Levels(dt, codes[:])
	for i, c := range codes {
		dst[i] = scale * float32(int(c)-int(l.Zero))
	}
}
