package tensor

import (
	"math"
	"testing"
)

// f16Value computes a half-precision number from its definition.
func f16Value(h uint16) float64 {
	exp, frac := int(h>>10&31), float64(h&1023)
	v := math.Ldexp(1+frac/1024, exp-15)
	switch exp {
	case 0:
		v = math.Ldexp(frac, -24)
	case 31:
		v = math.Inf(1)
		if frac != 0 {
			v = math.NaN()
		}
	}
	if h&0x8000 != 0 {
		v = -v
	}
	return v
}

func TestF16EveryValue(t *testing.T) {
	t.Parallel()
	for h := range 1 << 16 {
		want, got := f16Value(uint16(h)), float64(F16ToF32(uint16(h)))
		if want != want {
			if got == got || F32ToF16(float32(got))&0x7fff <= 0x7c00 {
				t.Fatalf("%#04x: NaN became %v", h, got)
			}
			continue
		}
		if got != want || math.Signbit(got) != math.Signbit(want) {
			t.Fatalf("%#04x: got %v, want %v", h, got, want)
		}
		if back := F32ToF16(float32(got)); back != uint16(h) {
			t.Fatalf("%#04x: round trip gives %#04x", h, back)
		}
	}
}

// TestF16RoundsToNearestEven checks halfway points and their neighbors.
func TestF16RoundsToNearestEven(t *testing.T) {
	t.Parallel()
	for h := range uint16(0x7c00) {
		lo, hi := f16Value(h), f16Value(h+1)
		if math.IsInf(hi, 1) {
			hi = 65536
		}
		mid := float32((lo + hi) / 2)
		even := h + h&1
		for _, c := range []struct {
			x    float32
			want uint16
		}{{mid, even}, {math.Nextafter32(mid, 0), h}, {math.Nextafter32(mid, 1e9), h + 1}} {
			if got := F32ToF16(c.x); got != c.want {
				t.Fatalf("%v: got %#04x, want %#04x", c.x, got, c.want)
			}
			if got := F32ToF16(-c.x); got != c.want|0x8000 {
				t.Fatalf("%v: got %#04x, want %#04x", -c.x, got, c.want|0x8000)
			}
		}
	}
	for _, x := range []float32{65520, 1e30, math.MaxFloat32, float32(math.Inf(1))} {
		if got := F32ToF16(x); got != 0x7c00 {
			t.Errorf("%v: got %#04x, want infinity", x, got)
		}
	}
}

func TestBF16EveryValueAndRounding(t *testing.T) {
	t.Parallel()
	for h := range 1 << 16 {
		f := BF16ToF32(uint16(h))
		if f != f {
			if g := BF16ToF32(F32ToBF16(f)); g == g {
				t.Fatalf("%#04x: NaN became %v", h, g)
			}
			continue
		}
		if got := F32ToBF16(f); got != uint16(h) {
			t.Fatalf("%#04x: round trip gives %#04x", h, got)
		}
		if h&0x7fff >= 0x7f80 {
			continue
		}
		bits := math.Float32bits(f)
		even := uint16(h) + uint16(h)&1
		for low, want := range map[uint32]uint16{0x7fff: uint16(h), 0x8000: even, 0x8001: uint16(h) + 1} {
			if got := F32ToBF16(math.Float32frombits(bits | low)); got != want {
				t.Fatalf("%#08x: got %#04x, want %#04x", bits|low, got, want)
			}
		}
	}
}
