package tensor

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// Encode writes values in a plain float type, a block type that iflowc computes
// with, or an activation type, rounding as the type demands. len(src) must be
// whole blocks filling dst exactly. The types only read from GGUF files and the
// integer types are refused.
//
// Scales and bases are stored as f16, and the codes are the nearest to the
// value under the stored scale and base, not under the exact ones. The scale
// and the base of a block type are searched for: the squared error of a block,
// as Decode gives it back, is never larger than EncodePlain's. Values that are
// not finite, or beyond what f16 scales reach, saturate; NaN counts as 0.
func Encode(dst []byte, dt DType, src []float32) error {
	return encodeRows(dst, dt, src, rounding{})
}

// EncodePlain is Encode without the search: rules A and B by the book (scale
// and base from the block's extremes). It is what kernels do that store keys
// and values.
func EncodePlain(dst []byte, dt DType, src []float32) error {
	return encodeRows(dst, dt, src, rounding{plain: true})
}

// EncodeWeighted is Encode with the squared error of column c counted
// importance[c] times, such as the mean square of the activation that the
// column meets in calibration text. src is whole rows of len(importance)
// columns, each whole blocks; the numbers must be finite and not negative. A
// block whose importances are all 0, and an empty importance, count evenly.
func EncodeWeighted(dst []byte, dt DType, src, importance []float32) error {
	cols := len(importance)
	if cols == 0 {
		return Encode(dst, dt, src)
	}
	if err := checkSizes("encode", dt, len(src), len(dst)); err != nil {
		return err
	}
	if len(src)%cols != 0 || cols%dt.Block() != 0 {
		return fmt.Errorf("encode %s: %d values are no whole rows of %d columns of importance, or those no whole blocks", dt, len(src), cols)
	}
	for c, w := range importance {
		if !(w >= 0 && w <= math.MaxFloat32) {
			return fmt.Errorf("encode %s: importance of column %d is %v, must be finite and not negative", dt, c, w)
		}
	}
	in, out := cols, dt.RowBytes(cols)
	for ; len(src) > 0; src, dst = src[in:], dst[out:] {
		if err := encodeRows(dst[:out], dt, src[:in], rounding{importance: importance}); err != nil {
			return err
		}
	}
	return nil
}

// rounding says how a block type's scale and base are chosen.
type rounding struct {
	plain      bool      // from the extremes alone
	importance []float32 // weights of the squared error, one a value; nil: all equal
}

func encodeRows(dst []byte, dt DType, src []float32, how rounding) error {
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
	for at := 0; len(src) > 0; at += block {
		one := rounding{plain: how.plain}
		if how.importance != nil {
			one.importance = how.importance[at : at+block]
		}
		f(dst[:size], dt, src[:block], one)
		dst, src = dst[size:], src[block:]
	}
	return nil
}

// CanEncode reports whether Encode writes the type.
func CanEncode(dt DType) bool {
	return dt < dtype.Count && (plainEncoders[dt] != nil || blockEncoders[dt] != nil)
}

var plainEncoders = [dtype.Count]func(dst []byte, src []float32){
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
type blockEncoder func(dst []byte, dt DType, src []float32, how rounding)

var blockEncoders = [dtype.Count]blockEncoder{
	Q8B32: encodeAffine, Q8B64: encodeAffine, Q6B64: encodeAffine, Q5B64: encodeAffine, Q5B32: encodeAffine,
	Q4B32: encodeAffine, Q4B64: encodeAffine, Q3HB64: encodeAffine, Q3B32: encodeAffine, Q2B32: encodeAffine,
	Q8B32T2: encodeSigned, A8B32: encodeActivation, A8B64: encodeActivation,
}

// encodeActivation is what quantize_act computes, in float32 and in this
// order so that a kernel can give the same bits: scale = absmax/127, code =
// round-to-even(x · (127/absmax)). A block whose 127/absmax is not finite
// (absmax 0 or below 2⁻¹²¹) has codes 0; NaN counts as 0 and infinities as the
// largest finite number.
func encodeActivation(dst []byte, _ DType, src []float32, _ rounding) {
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

// finiteBlock returns the block with NaN as 0 and infinities as the largest
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
