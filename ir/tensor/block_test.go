package tensor

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand"
	"slices"
	"testing"
)

var (
	scalarTypes  = []DType{Q8B32, Q8B64, Q8B32T2, Q6B64, Q5B64, Q5B32, Q4B32, Q4B64, Q3HB64, Q3B32, Q2B32, Q6B16T2, Q4B16T2, Q2B16}
	trellisTypes = []DType{Q6TB32, Q5TB32, Q4TB32, Q3TB32, Q2TB32}
	blockTypes   = append(slices.Clone(scalarTypes), trellisTypes...)
)

func encode(t testing.TB, dt DType, src []float32) []byte {
	t.Helper()
	dst := make([]byte, dt.RowBytes(len(src)))
	if err := Encode(dst, dt, src); err != nil {
		t.Fatal(err)
	}
	return dst
}

func encodePlain(t testing.TB, dt DType, src []float32) []byte {
	t.Helper()
	dst := make([]byte, dt.RowBytes(len(src)))
	if err := EncodePlain(dst, dt, src); err != nil {
		t.Fatal(err)
	}
	return dst
}

func decode(t testing.TB, dt DType, src []byte) []float32 {
	t.Helper()
	dst := make([]float32, len(src)/dt.BlockBytes()*dt.Block())
	if err := Decode(dst, dt, src); err != nil {
		t.Fatal(err)
	}
	return dst
}

func meanError(a, b []float32) float64 {
	var sum float64
	for i := range a {
		sum += math.Abs(float64(a[i]) - float64(b[i]))
	}
	return sum / float64(len(a))
}

// TestReportExample checks the report's Table 2: twelve weights as one block at 4, 3 and
// 3.5 bits, by equations 1 to 3.
func TestReportExample(t *testing.T) {
	t.Parallel()
	w := []float32{-1, -0.9, -0.6, -0.4, -0.2, 0, 0.1, 0.5, 0.7, 1, 1.3, 1.5}
	for _, c := range []struct {
		maxCode int
		codes   []uint8
		mean    float64
	}{
		{15, []uint8{0, 1, 2, 4, 5, 6, 7, 9, 10, 12, 14, 15}, 0.031},
		{7, []uint8{0, 0, 1, 2, 2, 3, 3, 4, 5, 6, 6, 7}, 0.075},
		{10, []uint8{0, 0, 2, 2, 3, 4, 4, 6, 7, 8, 9, 10}, 0.046},
	} {
		l := affineLayout{maxCode: c.maxCode}
		scale, base := l.fit(w)
		s, b := F16ToF32(scale), F16ToF32(base)
		back := make([]float32, len(w))
		for i, x := range w {
			q := nearestCode(float64(x), float64(s), float64(b), c.maxCode)
			if q != c.codes[i] {
				t.Errorf("%d levels: weight %v has code %d, want %d", c.maxCode+1, x, q, c.codes[i])
			}
			back[i] = b + s*float32(q)
		}
		if got := meanError(w, back); math.Abs(got-c.mean) > 0.0006 {
			t.Errorf("%d levels: mean error %.4f, want %.3f", c.maxCode+1, got, c.mean)
		}
	}
}

func TestBitsPerWeight(t *testing.T) {
	t.Parallel()
	want := map[DType]float64{
		Q8B32: 9, Q8B64: 8.5, Q8B32T2: 8.5, Q6B64: 6.5, Q5B64: 5.5, Q5B32: 6, Q4B32: 5, Q4B64: 4.5, Q3HB64: 4, Q3B32: 4, Q2B32: 3,
		Q6B16T2: 7, Q4B16T2: 5, Q2B16: 4,
		Q6TB32: 6.5, Q5TB32: 5.5, Q4TB32: 4.25, Q3TB32: 3.25, Q2TB32: 2.25,
		GQ4_0: 4.5, GQ4_1: 5, GQ5_0: 5.5, GQ5_1: 6, GQ8_0: 8.5, GQ2K: 2.625, GQ3K: 3.4375, GQ4K: 4.5, GQ5K: 5.5, GQ6K: 6.5625,
		GIQ4NL: 4.5, GIQ4XS: 4.25, GMXFP4: 4.25, GNVFP4: 4.5, GTQ1: 1.6875, GTQ2: 2.0625,
	}
	for dt, bits := range want {
		if got := 8 * float64(dt.BlockBytes()) / float64(dt.Block()); got != bits {
			t.Errorf("%s: %v bits a weight, want %v", dt, got, bits)
		}
	}
	for _, dt := range blockTypes {
		l := affine[dt]
		if l == nil {
			continue
		}
		n := affineHead
		for _, p := range l.planes {
			stored := dt.Block()
			if l.paired {
				stored /= 2
			}
			n += stored * int(p.bits) / 8
		}
		if n != dt.BlockBytes() {
			t.Errorf("%s: planes and head take %d bytes, the type %d", dt, n, dt.BlockBytes())
		}
	}
}

// TestEveryQ3HPair checks that every pair of eleven levels survives storage in seven
// bits.
func TestEveryQ3HPair(t *testing.T) {
	t.Parallel()
	l := affine[Q3HB64]
	for a := range uint8(11) {
		for b := range uint8(11) {
			codes, want, got := make([]uint8, 64), make([]uint8, 64), make([]uint8, 64)
			for i := range codes {
				codes[i] = [2]uint8{a, b}[i%2]
				if i >= 32 {
					codes[i] = [2]uint8{b, a}[i%2]
				}
			}
			copy(want, codes)
			block := make([]byte, Q3HB64.BlockBytes())
			l.putBlock(block, 1, 2, codes)
			scale, base := BlockCodes(Q3HB64, block, got)
			if !bytes.Equal(got, want) || scale != 1 || base != 2 {
				t.Fatalf("pair %d, %d: got %v", a, b, got)
			}
			v := 11*a + b
			if block[4]&1 != v>>6 || block[8]&3 != v>>4&3 || block[16]&15 != v&15 {
				t.Fatalf("pair %d, %d is not stored as 11·a+b split 1+2+4: % x", a, b, block)
			}
		}
	}
}

// ramp returns exact values with codes 0, 1, …, maxCode, 0, …: base −2 and scale ½ (rule
// A), or cell centers of the same scale (rule B).
func ramp(dt DType) []float32 {
	src := make([]float32, dt.Block())
	for i := range src {
		src[i] = -2 + 0.5*float32(i%(MaxCode(dt)+1))
	}
	return src
}

func TestGoldenBytes(t *testing.T) {
	t.Parallel()
	golden := map[DType]string{
		// base 0xc000 (−2), scale 0x3800 (½); then planes, high bits first.
		Q4B32: "00c00038" + "1032547698badcfe" + "1032547698badcfe",
		Q4B64: "00c00038" + "1032547698badcfe" + "1032547698badcfe" + "1032547698badcfe" + "1032547698badcfe",
		Q5B64: "00c00038" + "0000ffff0000ffff" + "1032547698badcfe" + "1032547698badcfe" + "1032547698badcfe" + "1032547698badcfe",
		Q5B32: "00c00038" + "0000ffff" + "1032547698badcfe" + "1032547698badcfe",
		Q6B64: "00c00038" + "0000000055555555aaaaaaaaffffffff" + "1032547698badcfe" + "1032547698badcfe" + "1032547698badcfe" + "1032547698badcfe",
	}
	for dt, want := range golden {
		if got := hex.EncodeToString(encodePlain(t, dt, ramp(dt))); got != want {
			t.Errorf("%s:\n got %s\nwant %s", dt, got, want)
		}
	}
	// Rule B over 0…8 in eight cells: scale 1 (0x3c00), base ½ (0x3800).
	src := make([]float32, 32)
	for i := range src {
		src[i] = float32(i%8) + 0.25
		if i%8 == 0 {
			src[i] = 0
		}
		if i%8 == 7 {
			src[i] = 8
		}
	}
	if got, want := hex.EncodeToString(encodePlain(t, Q3B32, src)), "0038003c"+"f0f0f0f0"+"e4e4e4e4e4e4e4e4"; got != want {
		t.Errorf("q3_b32:\n got %s\nwant %s", got, want)
	}
	for i := range src {
		src[i] = float32(i%4) + float32(i%4)/3
	}
	if got, want := hex.EncodeToString(encodePlain(t, Q2B32, src)), "0038003c"+"e4e4e4e4e4e4e4e4"; got != want {
		t.Errorf("q2_b32:\n got %s\nwant %s", got, want)
	}
	for i := range src {
		src[i] = float32(i*8-127) / 2
	}
	src[31] = 63.5
	got := encodePlain(t, Q8B32T2, src)
	if got[0] != 0 || got[1] != 0x38 || int8(got[2]) != -127 || int8(got[33]) != 127 || int8(got[3]) != -119 {
		t.Errorf("q8_b32t2: % x", got)
	}
}

func gaussian(n int, seed int64) []float32 {
	rng := rand.New(rand.NewSource(seed))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(rng.NormFloat64() * 0.02)
	}
	return x
}

// TestRoundTripBound checks that values encoded by the plain rules differ by at most half
// a step of the stored scale, plus the f16 rounding of scale and base at the ends of the
// range.
func TestRoundTripBound(t *testing.T) {
	t.Parallel()
	src := gaussian(64*200, 1)
	for _, dt := range scalarTypes {
		raw := encodePlain(t, dt, src)
		back := decode(t, dt, raw)
		b, size := dt.Block(), dt.BlockBytes()
		for i := range src {
			block := raw[i/b*size:][:size]
			var codes [64]uint8
			s, _ := BlockCodes(dt, block, codes[:b])
			step := float64(F16ToF32(s))
			top := 0.0
			for _, x := range src[i/b*b:][:b] {
				top = max(top, math.Abs(float64(x)))
			}
			if d := math.Abs(float64(src[i] - back[i])); d > math.Abs(step)/2+top*0x1p-9 {
				t.Fatalf("%s: element %d: %v became %v, step %v", dt, i, src[i], back[i], step)
			}
		}
	}
}

// TestCodesAreNearest checks that the codes are optimal for the stored scale and base.
func TestCodesAreNearest(t *testing.T) {
	t.Parallel()
	src := gaussian(64*50, 2)
	for _, dt := range scalarTypes {
		raw := encode(t, dt, src)
		b, size := dt.Block(), dt.BlockBytes()
		var codes [64]uint8
		for i := range src {
			s, z := BlockCodes(dt, raw[i/b*size:][:size], codes[:b])
			scale, base := float64(F16ToF32(s)), float64(F16ToF32(z))
			if !HasBase(dt) {
				base = -float64(Zero(dt)) * scale
			}
			got := math.Abs(base + scale*float64(codes[i%b]) - float64(src[i]))
			for c := range MaxCode(dt) + 1 {
				if dt == Q8B32T2 && c == 0 {
					continue // −128 is not used
				}
				if other := math.Abs(base + scale*float64(c) - float64(src[i])); other < got-1e-12 {
					t.Fatalf("%s: element %d (%v): code %d misses by %v, %d by %v", dt, i, src[i], codes[i%b], got, c, other)
				}
			}
		}
	}
}

func TestAbsurdRanges(t *testing.T) {
	t.Parallel()
	inf, nan := float32(math.Inf(1)), float32(math.NaN())
	fill := map[string][]float32{
		"zeros": {0}, "equal": {0.37}, "equal negative": {-3}, "infinite": {inf, -inf}, "one infinite": {inf, 1, 2, 3}, "nan": {nan},
		"some nan": {nan, 1, -1}, "huge": {1e38, -1e38}, "past f16": {1e6, -1e6, 5}, "tiny": {1e-30, -1e-30}, "subnormal": {1e-7, -2e-7},
		"max": {math.MaxFloat32, -math.MaxFloat32},
	}
	for name, pattern := range fill {
		src := make([]float32, 64)
		for i := range src {
			src[i] = pattern[i%len(pattern)]
		}
		for _, dt := range append([]DType{A8B16, A8B32, A8B64}, blockTypes...) {
			for i, x := range decode(t, dt, encode(t, dt, src)) {
				if x != x || math.IsInf(float64(x), 0) && !dt.IsActivation() {
					t.Fatalf("%s of %s: element %d is %v", dt, name, i, x)
				}
			}
		}
		if name == "zeros" || name == "equal" || name == "equal negative" {
			for _, dt := range blockTypes {
				if TrellisOf(dt) != nil && name != "zeros" {
					continue // no base, so not exact
				}
				if e := meanError(src, decode(t, dt, encode(t, dt, src))); e > 1e-3*math.Abs(float64(src[0])) {
					t.Errorf("%s of %s: mean error %v", dt, name, e)
				}
			}
		}
	}
}

func TestSizesAreChecked(t *testing.T) {
	t.Parallel()
	if err := Decode(make([]float32, 31), Q4B32, make([]byte, 20)); err == nil {
		t.Error("31 elements of q4_b32 were decoded")
	}
	if err := Decode(make([]float32, 32), Q4B32, make([]byte, 19)); err == nil {
		t.Error("19 bytes of q4_b32 were decoded")
	}
	if err := Decode(nil, Invalid, nil); err == nil {
		t.Error("the invalid type was decoded")
	}
	if err := Encode(make([]byte, 18), GQ4_0, make([]float32, 32)); err == nil {
		t.Error("q4_0 was encoded")
	}
	if err := Transcode(make([]byte, 20), Q4B32, make([]byte, 36), GQ4_0); err == nil {
		t.Error("two blocks were transcoded into one")
	}
}
