package tensor

import (
	"encoding/binary"
	"fmt"
	"math"
)

// Encode writes values in a plain float type, a block type that iflowc computes
// with, or an activation type, rounding as the type demands. len(src) must be
// whole blocks filling dst exactly. The types only read from GGUF files and the
// integer types are refused.
//
// Scales and bases are stored as f16, and the codes are the nearest to the
// value under the stored scale and base, not under the exact ones. Values that
// are not finite, or beyond what f16 scales reach, saturate; NaN counts as 0.
func Encode(dst []byte, dt DType, src []float32) error {
	if err := checkSizes("encode", dt, len(src), len(dst)); err != nil {
		return err
	}
	if f := plainEncoders[dt]; f != nil {
		f(dst, src)
		return nil
	}
	f := blockEncoders[dt]
	if f == nil {
		return fmt.Errorf("encode: values cannot be written as %s; types that can: f32, f16, bf16, f64 and iflowc's block types", dt)
	}
	block, size := dt.Block(), dt.BlockBytes()
	for len(src) > 0 {
		f(dst[:size], dt, src[:block])
		dst, src = dst[size:], src[block:]
	}
	return nil
}

// CanEncode says whether Encode writes the type.
func CanEncode(dt DType) bool {
	return dt < numDTypes && (plainEncoders[dt] != nil || blockEncoders[dt] != nil)
}

var plainEncoders = [numDTypes]func(dst []byte, src []float32){
	F32: func(dst []byte, src []float32) {
		for i, x := range src {
			binary.LittleEndian.PutUint32(dst[4*i:], math.Float32bits(x))
		}
	},
	F16: func(dst []byte, src []float32) {
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToF16(x))
		}
	},
	BF16: func(dst []byte, src []float32) {
		for i, x := range src {
			binary.LittleEndian.PutUint16(dst[2*i:], F32ToBF16(x))
		}
	},
	F64: func(dst []byte, src []float32) {
		for i, x := range src {
			binary.LittleEndian.PutUint64(dst[8*i:], math.Float64bits(float64(x)))
		}
	},
}

// A blockEncoder encodes one block.
type blockEncoder func(dst []byte, dt DType, src []float32)

var blockEncoders = [numDTypes]blockEncoder{
	Q8B32: encodeAffine, Q8B64: encodeAffine, Q6B64: encodeAffine, Q5B64: encodeAffine,
	Q4B32: encodeAffine, Q4B64: encodeAffine, Q3HB64: encodeAffine, Q3B32: encodeAffine, Q2B32: encodeAffine,
	Q8B32T2: encodeSigned, A8B32: encodeActivation, A8B64: encodeActivation,
}

// encodeAffine follows rule A (report eq. 1 and 3: scale = (max−min)/maxCode,
// base = min) or rule B (scale = (max−min)/(maxCode+1), base = min + scale/2,
// the centres of equal cells).
func encodeAffine(dst []byte, dt DType, src []float32) {
	l := affine[dt]
	var buf [64]uint8
	var clean [64]float32
	src = finiteBlock(src, &clean)
	codes := buf[:len(src)]
	scale, base := l.fit(src)
	s, b := float64(F16ToF32(scale)), float64(F16ToF32(base))
	for i, x := range src {
		codes[i] = nearestCode(float64(x), s, b, l.maxCode)
	}
	l.putBlock(dst, scale, base, codes)
}

// fit chooses scale and base of a block of finite values, as f16 bits, both
// finite.
func (l *affineLayout) fit(src []float32) (scale, base uint16) {
	low, high := src[0], src[0]
	for _, x := range src {
		low, high = min(low, x), max(high, x)
	}
	lo, hi := float64(low), float64(high)
	if l.cells {
		s := (hi - lo) / float64(l.maxCode+1)
		return saturateF16(s), saturateF16(lo + s/2)
	}
	return saturateF16((hi - lo) / float64(l.maxCode)), saturateF16(lo)
}

func nearestCode(x, scale, base float64, maxCode int) uint8 {
	if scale == 0 {
		return 0
	}
	q := (x-base)/scale + 0.5 // at least 0 below, so that conversion rounds down
	return uint8(max(0, min(float64(maxCode), q)))
}

// encodeSigned: f16 scale = absmax/127, codes −127…127.
func encodeSigned(dst []byte, _ DType, src []float32) {
	var clean [64]float32
	src = finiteBlock(src, &clean)
	var top float32
	for _, x := range src {
		top = max(top, x, -x)
	}
	scale := saturateF16(float64(top) / 127)
	binary.LittleEndian.PutUint16(dst, scale)
	s := float64(F16ToF32(scale))
	for i, x := range src {
		q := 0.0
		if s != 0 {
			q = math.Round(float64(x) / s)
		}
		dst[2+i] = byte(int8(max(-127, min(127, q))))
	}
}

// encodeActivation is what quantize_act computes, in float32 and in this
// order so that a kernel can give the same bits: scale = absmax/127, code =
// round-to-even(x · (127/absmax)). A block whose 127/absmax is not finite
// (absmax 0 or below 2⁻¹²¹) has codes 0; NaN counts as 0 and infinities as the
// largest finite number.
func encodeActivation(dst []byte, _ DType, src []float32) {
	var top float32
	for _, x := range src {
		if a := float32(math.Abs(float64(x))); a > top {
			top = min(a, math.MaxFloat32)
		}
	}
	inv := float32(0)
	if top > 0 {
		if v := 127 / top; v <= math.MaxFloat32 {
			inv = v
		}
	}
	for i, x := range src {
		q := 0.0
		if x == x {
			q = math.RoundToEven(float64(float32(x * inv)))
		}
		dst[i] = byte(int8(max(-127, min(127, q))))
	}
	binary.LittleEndian.PutUint32(dst[len(src):], math.Float32bits(top/127))
}

// finiteBlock is the block with NaN as 0 and infinities as the largest
// float32: the block itself unless it has any, then a copy in buf.
func finiteBlock(src []float32, buf *[64]float32) []float32 {
	var probe float32
	for _, x := range src {
		probe += x - x // NaN as soon as one is not finite
	}
	if probe == probe {
		return src
	}
	for i, x := range src {
		buf[i] = max(-math.MaxFloat32, min(math.MaxFloat32, x))
		if x != x {
			buf[i] = 0
		}
	}
	return buf[:len(src)]
}

// saturateF16 rounds to f16 within its finite range.
func saturateF16(x float64) uint16 {
	return F32ToF16(float32(max(-MaxF16, min(MaxF16, x))))
}
