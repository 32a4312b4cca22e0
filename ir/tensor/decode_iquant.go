package tensor

import (
	"encoding/binary"
	"math"
)

// The GGUF types with codes for levels of a table: 4-bit levels for normally distributed
// weights, microscaled 4-bit floats, and levels of one or two bits.

// iq4Levels are ggml's kvalues_iq4nl.
var iq4Levels = [16]int8{-127, -104, -83, -65, -49, -35, -22, -10, 1, 13, 25, 38, 53, 69, 89, 113}

// mxfp4Levels are twice the values of a 4-bit float of 2 exponent bits and 1 of
// fraction (OCP Microscaling Formats 1.0, §5.3.3).
var mxfp4Levels = [16]int8{0, 1, 2, 3, 4, 6, 8, 12, 0, -1, -2, -3, -4, -6, -8, -12}

// levels looks up the levels of 16 bytes of nibbles, low nibbles first.
func levels(dst *[32]int8, nibbles []byte, table *[16]int8) {
	for i, b := range nibbles[:16] {
		dst[i], dst[i+16] = table[b&15], table[b>>4]
	}
}

// signedCodes decodes blocks of 32 with values scale·code, where codes are small signed
// integers: block sub of an iq4_nl, iq4_xs, iq2_xxs or mxfp4 block.
func signedCodes(codes *[32]int8, src []byte, st DType, sub int) (scale float32) {
	switch st {
	case GIQ2XXS:
		return gridCodes(codes, src, st, sub)[0]
	case GIQ4NL: // f16 d, 16 B nibbles
		levels(codes, src[2:], &iq4Levels)
		return f16At(src)
	case GIQ4XS: // f16 d, u16 high bits and 4 B low nibbles of eight scales, 128 B nibbles; (d·(scale − 32))·level
		low := src[4+sub/2] >> uint(sub%2*4) & 15
		high := binary.LittleEndian.Uint16(src[2:]) >> uint(2*sub) & 3
		levels(codes, src[8+16*sub:], &iq4Levels)
		return f16At(src) * float32(int(low)|int(high)<<4-32)
	}
	levels(codes, src[1:], &mxfp4Levels) // u8 exponent, 16 B nibbles; the scale is half of 2^(e−127), because the levels are doubled
	return float32(math.Ldexp(1, int(src[0])-128))
}

func decodeLevels(dst []float32, dt DType, src []byte) {
	var codes [32]int8
	for sub := range dt.Block() / 32 {
		scale := signedCodes(&codes, src, dt, sub)
		for i, c := range codes {
			dst[32*sub+i] = scale * float32(c)
		}
	}
}

// codesNVFP4 returns the levels of 16 values, plus 32, and their scale. A block of 64 values
// has four scales of 16, 8-bit floats without sign of 4 exponent bits and 3 of fraction, then
// for each 8 B nibbles, low nibbles first. A scale is half of its value, because the levels
// are doubled.
func codesNVFP4(codes *[16]uint8, src []byte, sub int) (scale float32) {
	for i, b := range src[4+8*sub:][:8] {
		codes[i], codes[8+i] = uint8(32+mxfp4Levels[b&15]), uint8(32+mxfp4Levels[b>>4])
	}
	b := src[sub]
	exp, frac := int(b>>3&15), float64(b&7)
	switch {
	case b == 0x7f:
		return 0
	case exp == 0:
		return float32(math.Ldexp(frac, -10))
	}
	return float32(math.Ldexp(8+frac, exp-11))
}

// ternaryCodes decodes a block's codes, which mean −1, 0, 1 and, in q2_0, 2; their number is
// the block's.
func ternaryCodes(codes *[256]uint8, src []byte, st DType) (scale uint16) {
	switch st {
	case GQ1_0: // f16 d, 16 B of signs; a set bit is positive
		for i := range 128 {
			codes[i] = src[2+i/8] >> (i % 8) & 1 * 2
		}
		return binary.LittleEndian.Uint16(src)
	case GQ2_0: // f16 d, 16 B of two-bit codes
		for i := range 64 {
			codes[i] = src[2+i/4] >> (i % 4 * 2) & 3
		}
		return binary.LittleEndian.Uint16(src)
	case GTQ2: // 64 B of two-bit codes, f16 d
		for i, b := range src[:64] {
			for l := range 4 {
				codes[i/32*128+32*l+i%32] = b >> uint(2*l) & 3
			}
		}
		return binary.LittleEndian.Uint16(src[64:])
	}
	// tq1_0: 48 B of five ternary digits each, 4 B of four digits, f16 d. A byte is a
	// fraction of 3⁵: digit n is the integer part of 3/256 times (3ⁿ times the byte,
	// modulo 256).
	at := 0
	for _, run := range []struct{ from, bytes, digits int }{{0, 32, 5}, {32, 16, 5}, {48, 4, 4}} {
		power := uint8(1)
		for range run.digits {
			for _, b := range src[run.from : run.from+run.bytes] {
				codes[at] = uint8(uint16(b*power) * 3 >> 8)
				at++
			}
			power *= 3
		}
	}
	return binary.LittleEndian.Uint16(src[52:])
}

func decodeTernary(dst []float32, dt DType, src []byte) {
	var codes [256]uint8
	scale := F16ToF32(ternaryCodes(&codes, src, dt))
	for i, c := range codes[:dt.Block()] {
		dst[i] = scale * float32(int(c)-1)
	}
}

// recodeLevels stores the levels as codes of q8_b32t2. Scales are rounded to f16. If a
// scale is outside the range of f16, the values are encoded again.
func recodeLevels(dst []byte, dt DType, src []byte, st DType) {
	var codes [32]int8
	size := dt.BlockBytes()
	for sub := range st.Block() / 32 {
		out := dst[sub*size:][:size]
		scale := signedCodes(&codes, src, st, sub)
		if a := math.Abs(float64(scale)); a != 0 && (a > MaxF16 || a < 1.0/(1<<14)) {
			var values [32]float32
			for i, c := range codes {
				values[i] = scale * float32(c)
			}
			encodeSigned(out, dt, values[:], rounding{})
			continue
		}
		binary.LittleEndian.PutUint16(out, F32ToF16(scale))
		for i, c := range codes {
			out[2+i] = uint8(c)
		}
	}
}

// recodeTernary stores ternary codes in q2_b32 with base −d and scale d.
func recodeTernary(dst []byte, dt DType, src []byte, st DType) {
	var codes [256]uint8
	scale := ternaryCodes(&codes, src, st)
	size := dt.BlockBytes()
	for b := range st.Block() / 32 {
		affine[dt].putBlock(dst[b*size:][:size], scale, scale^0x8000, codes[32*b:][:32])
	}
}
