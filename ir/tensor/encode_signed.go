package tensor

import (
	"encoding/binary"
	"math"
)

// signedTops are candidate codes for a block's largest magnitude. Codes above 127 are
// clamped to 127. The first candidate is the plain rule; the others try other phases of
// the grid.
var signedTops = [...]float64{127, 127.3, 126.6, 126.2, 125.8, 125.4, 125}

// encodeSigned stores an f16 scale, absmax/127 or near it, and codes −127…127.
func encodeSigned(dst []byte, _ DType, src []float32, how rounding) {
	var clean [64]float32
	src = finiteBlock(src, &clean)
	low, high := extremes(src)
	top := max(-low, high)
	best := blockFit{scale: saturateF16(top / 127)}
	best.roundSigned(src, how.importance)
	if !how.plain && best.err > 0 && top <= MaxF16 {
		for _, code := range signedTops[1:] {
			f := blockFit{scale: saturateF16(top / code)}
			f.roundSigned(src, how.importance)
			if f.err < best.err {
				best = f
			}
		}
	}
	binary.LittleEndian.PutUint16(dst, best.scale)
	copy(dst[2:], best.codes[:len(src)])
}

// roundSigned assigns each value its nearest code under the fit's scale, in two's
// complement, and computes the error.
func (f *blockFit) roundSigned(src, importance []float32) {
	scale := F16ToF32(f.scale)
	inverse := 0.0
	if scale != 0 {
		inverse = 1 / float64(scale)
	}
	sum := 0.0
	for i, x := range src {
		q := float64(x) * inverse
		if q > 127 {
			q = 127
		}
		if q < -127 {
			q = -127
		}
		c := int8(int32(q + math.Copysign(0.5, q)))
		f.codes[i] = uint8(c)
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
