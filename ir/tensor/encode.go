package tensor

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// Encode encodes values in a plain float type, a block type for computation, or an
// activation type. It returns an error unless src is whole blocks that fill dst exactly.
// Integer types and types that are only read from GGUF files are errors.
//
// Scales and bases are stored as f16. The codes are the nearest ones for the stored scale
// and base, not for the exact ones. For block types, Encode searches for a scale and base
// with a squared error after Decode of at most that of EncodePlain. Infinite values and
// values beyond the range of f16 scales saturate; NaN counts as 0.
func Encode(dst []byte, dt DType, src []float32) error {
	return encodeRows(dst, dt, src, rounding{})
}

// EncodePlain is Encode without the search: rule A or B applied to the block's minimum
// and maximum. Kernels use it to store the KV cache.
func EncodePlain(dst []byte, dt DType, src []float32) error {
	return encodeRows(dst, dt, src, rounding{plain: true})
}

// EncodeWeighted is Encode with squared errors weighted by column. importance[c] is the
// weight of column c, such as its mean squared activation on calibration text. src is
// whole rows of len(importance) columns, each a whole number of blocks. Weights must be
// finite and non-negative. If all weights of a block are 0, or importance is empty, all
// columns have equal weight.
func EncodeWeighted(dst []byte, dt DType, src, importance []float32) error {
	cols := len(importance)
	if cols == 0 {
		return Encode(dst, dt, src)
	}
	if err := checkSizes("encode", dt, len(src), len(dst)); err != nil {
		return err
	}
	if len(src)%cols != 0 || cols%dt.Block() != 0 {
		return fmt.Errorf("encode %s: %d values are not whole rows of %d columns of importance, or the columns are not whole blocks", dt, len(src), cols)
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

// rounding selects how a block type's scale and base are computed.
type rounding struct {
	plain      bool      // only from minimum and maximum
	importance []float32 // weights of the squared error, one per value; nil: all equal
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
		return fmt.Errorf("encode: cannot encode %s; want f32, f16, bf16, f64 or one of iflowc's block types", dt)
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

// CanEncode reports whether Encode supports the type.
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
	Q6TB32: encodeTrellis, Q5TB32: encodeTrellis, Q4TB32: encodeTrellis, Q3TB32: encodeTrellis, Q2TB32: encodeTrellis,
	Q2B16: encodeAffine, Q8B32T2: encodeSigned, Q6B16T2: encodeSigned, Q4B16T2: encodeSigned, Q5RB32T2: encodeSigned, Q4B32T2: encodeSigned,
	A8B16: encodeActivation, A8B32: encodeActivation, A8B64: encodeActivation,
}

// encodeActivation computes quantize_act in float32 and in this order, so that kernels
// can return the same bits: scale = absmax/127, code = round-to-even(x · (127/absmax)).
// If 127/absmax of a block is not finite (absmax 0 or below 2⁻¹²¹), its codes are 0. NaN
// counts as 0 and infinities as the largest finite number.
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

// finiteBlock returns the block with NaN replaced by 0 and infinities by the largest
// float32. The result is the block itself if all values are finite, otherwise a copy in
// buf.
func finiteBlock(src []float32, buf *[64]float32) []float32 {
	var probe float32
	for _, x := range src {
		probe += x - x // NaN if one value is not finite
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

// saturateF16 rounds to f16, clamped to its finite range.
func saturateF16(x float64) uint16 {
	return F32ToF16(float32(max(-MaxF16, min(MaxF16, x))))
}
