package tensor

import (
	"encoding/binary"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// A signedLayout describes a symmetric block type with values scale·code. A block is
// stored as its f16 scale, then the codes: bytes in two's complement, or the planes of
// code + zero.
type signedLayout struct {
	zero      uint8
	low, high float64 // the codes that an encoder uses
	planes    []plane // none: codes of a byte

	// tops are candidate codes for a block's value of the largest magnitude; those beyond
	// the range are clamped. The first one is the plain rule; the others try other phases
	// of the grid. For q8_b32t2 they are codes of the magnitude, so that no scale is
	// negative; for the others, whose range has one more negative code, of the value.
	tops []float64
}

// signed lists the symmetric types. The tops of the types of 16 weights are in steps of 0.4,
// around the ends of the range.
var signed = [dtype.Count]*signedLayout{
	Q8B32T2: {zero: 128, low: -127, high: 127, tops: []float64{127, 127.3, 126.6, 126.2, 125.8, 125.4, 125}},
	Q6B16T2: {zero: 32, low: -32, high: 31, planes: []plane{{2, 4}, {4, 0}}, tops: []float64{31, 31.4, -32.4, -32, -31.6, -31.2, -30.8, -30.4}},
	Q4B16T2: {zero: 8, low: -8, high: 7, planes: []plane{{4, 0}}, tops: []float64{7, 7.4, -8.4, -8, -7.6, -7.2, -6.8, -6.4}},

	// The types of the KV cache use the plain rule only.
	Q5RB32T2: {zero: 16, low: -16, high: 15, planes: []plane{{4, 0}, {1, 4}}, tops: []float64{-16}},
	Q4B32T2:  {zero: 8, low: -8, high: 7, planes: []plane{{4, 0}}, tops: []float64{-8}},
}

func (l *signedLayout) blockCodes(block []byte, codes []uint8) (scale uint16) {
	if l.planes != nil {
		unpackPlanes(l.planes, block[2:], codes)
		return binary.LittleEndian.Uint16(block)
	}
	for i, c := range block[2 : 2+len(codes)] {
		codes[i] = c ^ 0x80
	}
	return binary.LittleEndian.Uint16(block)
}

// putBlock stores one block with codes plus zero.
func (l *signedLayout) putBlock(block []byte, scale uint16, codes []uint8) {
	binary.LittleEndian.PutUint16(block, scale)
	if l.planes != nil {
		packPlanes(l.planes, block[2:], codes)
		return
	}
	for i, c := range codes {
		block[2+i] = c ^ 0x80
	}
}

// encodeSigned stores the nearest codes under an f16 scale.
func encodeSigned(dst []byte, dt DType, src []float32, how rounding) {
	l := signed[dt]
	var clean [64]float32
	src = finiteBlock(src, &clean)
	low, high := extremes(src)
	top := max(-low, high)
	if l.planes != nil && top == -low {
		top = low
	}
	best := blockFit{scale: saturateF16(top / l.tops[0])}
	best.roundSigned(src, how.importance, l)
	if !how.plain && best.err > 0 && math.Abs(top) <= MaxF16 {
		for _, code := range l.tops[1:] {
			f := blockFit{scale: saturateF16(top / code)}
			f.roundSigned(src, how.importance, l)
			if f.err < best.err {
				best = f
			}
		}
	}
	l.putBlock(dst, best.scale, best.codes[:len(src)])
}

// roundSigned assigns each value its nearest code under the fit's scale, plus zero, and
// computes the error.
func (f *blockFit) roundSigned(src, importance []float32, l *signedLayout) {
	scale := F16ToF32(f.scale)
	inverse := 0.0
	if scale != 0 {
		inverse = 1 / float64(scale)
	}
	sum := 0.0
	for i, x := range src {
		q := float64(x) * inverse
		if q > l.high {
			q = l.high
		}
		if q < l.low {
			q = l.low
		}
		c := int32(q + math.Copysign(0.5, q))
		f.codes[i] = uint8(c + int32(l.zero))
		d := float64(x) - float64(scale*float32(c))
		if importance != nil {
			d *= d * float64(importance[i])
			sum += d
			continue
		}
		sum += d * d
	}
	f.err = sum
}

func decodeSigned(dst []float32, dt DType, src []byte) {
	l := signed[dt]
	var codes [64]uint8
	scale := F16ToF32(l.blockCodes(src, codes[:len(dst)]))
	for i := range dst {
		dst[i] = scale * float32(int(codes[i])-int(l.zero))
	}
}
