package tensor

import (
	"fmt"
	"math"
	"math/rand"
	"testing"

	"pgregory.net/rapid"
)

// squaredError returns the sum of squared errors, weighted by importance unless it is nil.
func squaredError(a, b, importance []float32) float64 {
	var sum float64
	for i := range a {
		d := float64(a[i]) - float64(b[i])
		w := 1.0
		if importance != nil {
			w = float64(importance[i])
		}
		sum += d * d * w
	}
	return sum
}

// shapes are distributions of weights, and some unusual ones.
var shapes = map[string]func(rng *rand.Rand) float32{
	"gaussian": func(rng *rand.Rand) float32 { return float32(rng.NormFloat64() * 0.02) },
	"outliers": withOutliers,
	"laplace":  func(rng *rand.Rand) float32 { return float32(rng.ExpFloat64() * (rng.Float64() - 0.5)) },
	"constant": func(*rand.Rand) float32 { return 0.37 },
	"two":      func(rng *rand.Rand) float32 { return float32(rng.Intn(2)) * 0.3 },
	"tiny":     func(rng *rand.Rand) float32 { return float32(rng.NormFloat64() * 1e-7) },
	"nothing":  func(rng *rand.Rand) float32 { return float32(rng.NormFloat64() * 1e-20) },
	"large":    func(rng *rand.Rand) float32 { return float32(rng.NormFloat64() * 2e4) },
	"huge":     func(rng *rand.Rand) float32 { return float32(rng.NormFloat64() * 1e30) },
	"far":      func(rng *rand.Rand) float32 { return 1000 + float32(rng.NormFloat64()) },
	"uneven":   func(rng *rand.Rand) float32 { return float32(math.Pow(rng.NormFloat64(), 5)) },
	"four bit": func(rng *rand.Rand) float32 { return -0.11 + float32(0.013*float32(rng.Intn(16))) },
}

// withOutliers is Gaussian, with one of fifty values eight times as large.
func withOutliers(rng *rand.Rand) float32 {
	x := float32(rng.NormFloat64() * 0.02)
	if rng.Intn(50) == 0 {
		x *= 8
	}
	return x
}

// TestSearchIsNeverWorse checks that the search never has a larger error than the plain
// rule, with and without importance.
func TestSearchIsNeverWorse(t *testing.T) {
	t.Parallel()
	for name, shape := range shapes {
		rng := rand.New(rand.NewSource(5))
		src, importance := make([]float32, 64*60), make([]float32, 64*60)
		for i := range src {
			src[i] = shape(rng)
			importance[i] = float32(math.Abs(rng.NormFloat64()))
		}
		for _, dt := range blockTypes {
			plain := decode(t, dt, encodePlain(t, dt, src))
			even := decode(t, dt, encode(t, dt, src))
			raw := make([]byte, dt.RowBytes(len(src)))
			if err := EncodeWeighted(raw, dt, src, importance); err != nil {
				t.Fatal(err)
			}
			weighted := decode(t, dt, raw)
			b := dt.Block()
			for at := 0; at < len(src); at += b {
				x, w := src[at:at+b], importance[at:at+b]
				if p, s := squaredError(x, plain[at:at+b], nil), squaredError(x, even[at:at+b], nil); s > p*(1+1e-12) {
					t.Errorf("%s, %s: block %d: squared error %g, plain %g", name, dt, at/b, s, p)
				}
				if p, s := squaredError(x, plain[at:at+b], w), squaredError(x, weighted[at:at+b], w); s > p*(1+1e-12) {
					t.Errorf("%s, %s: block %d: weighted squared error %g, plain %g", name, dt, at/b, s, p)
				}
			}
		}
	}
}

// TestSearchOnAnyBits checks arbitrary float32 bits and importances: no panic, no
// infinite result, and never a larger error than the plain rule.
func TestSearchOnAnyBits(t *testing.T) {
	t.Parallel()
	rapid.Check(t, func(rt *rapid.T) {
		src, importance := make([]float32, 64), make([]float32, 64)
		common := rapid.Uint32Range(0, 255).Draw(rt, "exponent")
		for i := range src {
			bits := rapid.Uint32().Draw(rt, "bits")
			src[i] = math.Float32frombits(bits)
			if common > 0 { // one exponent for all values, as in real blocks
				src[i] = math.Float32frombits(bits&0x80ffffff | common<<23&0x7f000000)
			}
			if x := src[i]; x-x != 0 {
				src[i] = 0
			}
			importance[i] = math.Float32frombits(rapid.Uint32Range(0, 0x7f7fffff).Draw(rt, "importance"))
		}
		for _, dt := range blockTypes {
			plain := decode(t, dt, encodePlain(t, dt, src))
			raw := make([]byte, dt.RowBytes(64))
			for _, w := range [][]float32{nil, importance} {
				if err := EncodeWeighted(raw, dt, src, w); err != nil {
					rt.Fatal(err)
				}
				got, b := decode(t, dt, raw), dt.Block()
				for at := 0; at < len(src); at += b {
					var wb []float32
					if w != nil {
						wb = w[at : at+b]
					}
					if p, s := squaredError(src[at:at+b], plain[at:at+b], wb), squaredError(src[at:at+b], got[at:at+b], wb); !(s <= p*(1+1e-9)) {
						rt.Fatalf("%s: squared error %g, plain %g", dt, s, p)
					}
				}
			}
		}
	})
}

// TestSearchGains checks that the search reduces the error of the plain rule for types
// with few codes, and that importance reduces the weighted error.
func TestSearchGains(t *testing.T) {
	t.Parallel()
	src := gaussian(1<<14, 6)
	rng := rand.New(rand.NewSource(7))
	importance := make([]float32, 256)
	for i := range importance {
		importance[i] = float32(math.Pow(rng.NormFloat64(), 4))
	}
	everywhere := make([]float32, len(src))
	for i := range everywhere {
		everywhere[i] = importance[i%len(importance)]
	}
	for dt, most := range map[DType]float64{Q8B32: 0.85, Q8B32T2: 0.87, Q6B64: 0.9, Q5B64: 0.88, Q5B32: 0.85, Q4B32: 0.84, Q4B64: 0.86, Q3HB64: 0.82, Q3B32: 0.84, Q2B32: 0.88} {
		plain := decode(t, dt, encodePlain(t, dt, src))
		even := decode(t, dt, encode(t, dt, src))
		raw := make([]byte, dt.RowBytes(len(src)))
		if err := EncodeWeighted(raw, dt, src, importance); err != nil {
			t.Fatal(err)
		}
		weighted := decode(t, dt, raw)
		ratio := squaredError(src, even, nil) / squaredError(src, plain, nil)
		counted := squaredError(src, weighted, everywhere) / squaredError(src, even, everywhere)
		t.Logf("%s: squared error %.3f of plain's; where it counts %.3f of that", dt, ratio, counted)
		if ratio > most {
			t.Errorf("%s: squared error %.3f of plain's, want %.2f at most", dt, ratio, most)
		}
		if counted > 0.95 {
			t.Errorf("%s: importance leaves %.3f of the weighted error", dt, counted)
		}
	}
}

// TestSearchOnLadders checks weights that are already quantized to 16 levels per 32
// weights: the search reduces the squared error by a third in blocks of 64.
func TestSearchOnLadders(t *testing.T) {
	t.Parallel()
	src := gaussian(1<<14, 8)
	for at := 0; at < len(src); at += 32 {
		run := src[at : at+32]
		low, high := extremes(run)
		scale, base := F16ToF32(F32ToF16(float32((high-low)/15))), F16ToF32(F32ToF16(float32(low)))
		for i, x := range run {
			run[i] = base + scale*float32(nearestCode(float64(x), float64(scale), float64(base), 15))
		}
	}
	for _, dt := range []DType{Q8B64, Q6B64, Q5B64} {
		ratio := squaredError(src, decode(t, dt, encode(t, dt, src)), nil) / squaredError(src, decode(t, dt, encodePlain(t, dt, src)), nil)
		t.Logf("%s: squared error %.3f of plain's", dt, ratio)
		if ratio > 0.62 {
			t.Errorf("%s: squared error %.3f of plain's, want 0.62 at most", dt, ratio)
		}
	}
}

// TestErrorOrdering checks the order of the report's Table 3 as weight error, on Gaussian
// weights with outliers. q8_b32t2 and q8_b32 are in the same class.
func TestErrorOrdering(t *testing.T) {
	t.Parallel()
	for name, shape := range map[string]func(*rand.Rand) float32{"gaussian": shapes["gaussian"], "outliers": withOutliers} {
		rng := rand.New(rand.NewSource(3))
		src := make([]float32, 1<<15)
		for i := range src {
			src[i] = shape(rng)
		}
		for _, eight := range []DType{Q8B32, Q8B32T2} {
			last := -1.0
			for _, dt := range []DType{F32, F16, eight, Q6B64, Q5B32, Q5B64, Q4B32, Q4B64, Q3HB64, Q3B32, Q2B32} {
				e := squaredError(src, decode(t, dt, encode(t, dt, src)), nil)
				if e <= last {
					t.Errorf("%s: %s: squared error %v is not above the type before it (%v)", name, dt, e, last)
				}
				last = e
			}
		}
	}
}

func TestImportanceIsChecked(t *testing.T) {
	t.Parallel()
	src, dst := make([]float32, 64), make([]byte, 40)
	for _, bad := range [][]float32{make([]float32, 31), make([]float32, 48), make([]float32, 128)} {
		if err := EncodeWeighted(dst, Q4B32, src, bad); err == nil {
			t.Errorf("importance of %d columns was taken for 64 values", len(bad))
		}
	}
	for _, x := range []float64{-1, math.NaN(), math.Inf(1)} {
		bad := make([]float32, 32)
		bad[3] = float32(x)
		if err := EncodeWeighted(dst, Q4B32, src, bad); err == nil {
			t.Errorf("an importance of %v was taken", x)
		}
	}
	// If all weights are zero, the columns have equal weight.
	rows := gaussian(64, 9)
	if err := EncodeWeighted(dst, Q4B32, rows, make([]float32, 32)); err != nil {
		t.Fatal(err)
	}
	if got := squaredError(rows, decode(t, Q4B32, dst), nil); got > 64*0.003*0.003 {
		t.Errorf("importance of zeros: squared error %v", got)
	}
}

func BenchmarkEncode(b *testing.B) {
	src := gaussian(1<<16, 1)
	for _, dt := range blockTypes {
		dst := make([]byte, dt.RowBytes(len(src)))
		for name, encode := range map[string]func([]byte, DType, []float32) error{"plain": EncodePlain, "search": Encode} {
			b.Run(fmt.Sprintf("%s/%s", dt, name), func(b *testing.B) {
				b.SetBytes(int64(4 * len(src)))
				for range b.N {
					if err := encode(dst, dt, src); err != nil {
						b.Fatal(err)
					}
				}
				b.ReportMetric(float64(b.Elapsed().Nanoseconds())/float64(b.N)/float64(len(src)), "ns/weight")
			})
		}
	}
}
