package tensor

import (
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// MaxF16 is the largest finite half-precision number.
const MaxF16 = 65504

// F16ToF32 converts an IEEE 754 binary16 number exactly.
func F16ToF32(h uint16) float32 { return dtype.F16ToF32(h) }

// F32ToF16 rounds to the nearest binary16 number, ties to even. Magnitudes of 65520 and
// more become infinity; NaN stays NaN (quiet).
func F32ToF16(f float32) uint16 {
	b := math.Float32bits(f)
	sign := uint16(b>>16) & 0x8000
	b &= 0x7fffffff
	switch {
	case b > 0x7f800000:
		return sign | 0x7e00 | uint16(b>>13)&0x3ff
	case b >= 0x477ff000: // 65520: halfway between 65504 and 2¹⁶
		return sign | 0x7c00
	case b >= 0x38800000: // normal from 2⁻¹⁴
		b -= (127 - 15) << 23
		return sign | uint16((b+0xfff+(b>>13)&1)>>13)
	}
	// Subnormal: adding 0.5 moves the value's unit 2⁻²⁴ to the last bit of a
	// float32, so that the addition itself rounds to nearest even.
	s := math.Float32bits(math.Float32frombits(b)+0.5) - math.Float32bits(0.5)
	return sign | uint16(s)
}

// BF16ToF32 converts a bfloat16 number exactly.
func BF16ToF32(h uint16) float32 { return math.Float32frombits(uint32(h) << 16) }

// F32ToBF16 rounds to the nearest bfloat16 number, ties to even; NaN stays NaN (quiet).
func F32ToBF16(f float32) uint16 {
	b := math.Float32bits(f)
	if b&0x7fffffff > 0x7f800000 {
		return uint16(b>>16) | 0x40
	}
	return uint16((b + 0x7fff + (b>>16)&1) >> 16)
}
