package ptx

import (
	"fmt"
	"math"
)

// float returns the value of a floating-point type's bits.
func float(t string, v uint64) float64 {
	switch t {
	case "f16":
		return halfToFloat(uint16(v))
	case "bf16":
		return float64(math.Float32frombits(uint32(v) << 16))
	case "f32":
		return float64(math.Float32frombits(uint32(v)))
	}
	return math.Float64frombits(v)
}

// fbits rounds a number to a floating-point type, to nearest even.
func fbits(t string, x float64) uint64 {
	switch t {
	case "f16":
		return uint64(floatToHalf(x))
	case "bf16":
		return uint64(floatToBF16(float32(x)))
	case "f32":
		return single(float32(x))
	}
	return math.Float64bits(x)
}

// single returns the bits of a result; NaNs are canonical.
func single(x float32) uint64 {
	if x != x {
		return 0x7fffffff
	}
	return uint64(math.Float32bits(x))
}

func halfToFloat(h uint16) float64 {
	sign := 1.0
	if h&0x8000 != 0 {
		sign = -1
	}
	e, m := int(h>>10&31), float64(h&1023)
	switch e {
	case 0:
		return sign * math.Ldexp(m, -24)
	case 31:
		if m != 0 {
			return math.NaN()
		}
		return math.Inf(int(sign))
	}
	return sign * math.Ldexp(1024+m, e-25)
}

func floatToHalf(x float64) uint16 {
	sign := uint16(0)
	if math.Signbit(x) {
		sign = 0x8000
	}
	a := math.Abs(x)
	switch {
	case math.IsNaN(x):
		return 0x7fff
	case a >= 65520:
		return sign | 0x7c00
	case a < math.Ldexp(1, -14):
		return sign | uint16(math.RoundToEven(math.Ldexp(a, 24)))
	}
	f, e := math.Frexp(a) // a = f · 2^e, f in [½, 1)
	m := math.RoundToEven(math.Ldexp(f, 11))
	return sign | uint16((e+13)<<10+int(m))
}

func floatToBF16(x float32) uint16 {
	b := math.Float32bits(x)
	if x != x {
		return 0x7fff
	}
	return uint16((b + 0x7fff + b>>16&1) >> 16)
}

// less compares two values of a type.
func less(t string, a, b uint64) bool {
	switch t[0] {
	case 'f':
		return float(t, a) < float(t, b)
	case 's':
		return signed(t, a) < signed(t, b)
	}
	return a&mask(t) < b&mask(t)
}

// whole rounds a number to an integer by a rounding modifier.
func whole(mode string, x float64) (float64, error) {
	switch mode {
	case "rni":
		return math.RoundToEven(x), nil
	case "rzi":
		return math.Trunc(x), nil
	case "rmi":
		return math.Floor(x), nil
	case "rpi":
		return math.Ceil(x), nil
	}
	return 0, fmt.Errorf("rounding %q is not known", mode)
}

// clamp saturates an integer to a type, as cvt does.
func clamp(t string, x float64) uint64 {
	if x != x {
		return 0
	}
	bits := 8 * width(t)
	lo, hi := 0.0, math.Ldexp(1, bits)
	if t[0] == 's' {
		lo, hi = -math.Ldexp(1, bits-1), math.Ldexp(1, bits-1)
	}
	switch {
	case x < lo && t[0] == 's':
		return uint64(int64(-1) << (bits - 1))
	case x < lo:
		return 0
	case x >= hi:
		return mask(t) >> map[byte]uint{'s': 1, 'u': 0}[t[0]]
	case t[0] == 's':
		return uint64(int64(x))
	}
	return uint64(x)
}
