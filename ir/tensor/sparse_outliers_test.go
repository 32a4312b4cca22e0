package tensor

import (
	"math/rand"
	"slices"
	"testing"
)

// matrixOf returns a Matrix of values in memory.
func matrixOf(x []float32, cols int) Matrix {
	return Matrix{Rows: len(x) / cols, Cols: cols, Row: func(r int, to []float32) { copy(to, x[r*cols:]) }}
}

// withSparse decodes blocks and adds sparse outliers.
func withSparse(t *testing.T, dt DType, cols int, raw []byte, ds []SparseOutlier) []float32 {
	t.Helper()
	out := decode(t, dt, raw)
	for _, d := range ds {
		out[d.Row*cols+d.Col] += d.Value
	}
	return out
}

// TestSparseErrorFalls checks that the error does not increase with the number of
// outliers, and that kept entries are exact to the last bits.
func TestSparseErrorFalls(t *testing.T) {
	t.Parallel()
	const rows, cols = 24, 256
	for name, shape := range map[string]func(*rand.Rand) float32{"gaussian": shapes["gaussian"], "outliers": withOutliers, "constant": shapes["constant"]} {
		rng := rand.New(rand.NewSource(4))
		src := make([]float32, rows*cols)
		for i := range src {
			src[i] = shape(rng)
		}
		importance := make([]float32, cols)
		for i := range importance {
			importance[i] = rng.Float32()
		}
		everywhere := slices.Repeat(importance, rows)
		for _, dt := range []DType{Q8B32T2, Q6B64, Q4B32, Q4B64, Q3HB64, Q2B32} {
			last, plain := squaredError(src, decode(t, dt, encode(t, dt, src)), nil), 0.0
			plain = last
			for _, ratio := range []float64{0, 0.001, 0.005, 0.01, 0.05} {
				n := SparseCount(rows, cols, ratio)
				raw, ds, err := EncodeSparse(dt, matrixOf(src, cols), n, nil)
				if err != nil {
					t.Fatal(err)
				}
				if len(ds) > n {
					t.Fatalf("%s, %s: %d outliers, want %d at most", name, dt, len(ds), n)
				}
				got := withSparse(t, dt, cols, raw, ds)
				e := squaredError(src, got, nil)
				if e > last*(1+1e-9) {
					t.Errorf("%s, %s: squared error %g with %v of the entries kept, %g with fewer", name, dt, e, ratio, last)
				}
				last = e
				for i, d := range ds {
					at := d.Row*cols + d.Col
					if diff := got[at] - src[at]; diff > 1e-6 || diff < -1e-6 {
						t.Errorf("%s, %s: kept entry %d,%d is %v, want %v", name, dt, d.Row, d.Col, got[at], src[at])
					}
					if i > 0 && (ds[i-1].Row > d.Row || ds[i-1].Row == d.Row && ds[i-1].Col >= d.Col) {
						t.Fatalf("%s, %s: outliers %v and %v are out of order", name, dt, ds[i-1], d)
					}
				}
			}
			t.Logf("%s, %s: %.3f of the squared error left by a twentieth", name, dt, last/plain)
			if name == "gaussian" && last > 0.8*plain {
				t.Errorf("%s: a twentieth of the entries kept leaves %.2f of the squared error", dt, last/plain)
			}
			weighted := func(n int) float64 {
				raw, ds, err := EncodeSparse(dt, matrixOf(src, cols), n, importance)
				if err != nil {
					t.Fatal(err)
				}
				return squaredError(src, withSparse(t, dt, cols, raw, ds), everywhere)
			}
			if a, b := weighted(0), weighted(64); b > a*(1+1e-9) {
				t.Errorf("%s, %s: weighted squared error %g with outliers, %g without", name, dt, b, a)
			}
		}
	}
}

// TestSparseIsDeterministic checks that the result does not depend on the scheduling of
// goroutines, and that NaN and infinities are handled.
func TestSparseIsDeterministic(t *testing.T) {
	t.Parallel()
	src := gaussian(64*128, 8)
	src[5], src[700] = float32(nan()), 3e38
	a, da, err := EncodeSparse(Q4B64, matrixOf(src, 128), 40, nil)
	if err != nil {
		t.Fatal(err)
	}
	for range 3 {
		b, db, err := EncodeSparse(Q4B64, matrixOf(src, 128), 40, nil)
		if err != nil || !slices.Equal(a, b) || !slices.Equal(da, db) {
			t.Fatalf("encoded anew, the blocks or outliers differ (%v)", err)
		}
	}
}

func nan() float64 { zero := 0.0; return zero / zero }

func TestSparseRefuses(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		dt         DType
		cols       int
		importance []float32
	}{{F16, 64, nil}, {A8B32, 64, nil}, {Q4B64, 96, nil}, {Q4B32, MaxSparseCols + 32, nil}, {Q4B32, 64, make([]float32, 32)}} {
		if _, _, err := EncodeSparse(c.dt, Matrix{Rows: 1, Cols: c.cols, Row: func(int, []float32) {}}, 1, c.importance); err == nil {
			t.Errorf("%s with %d columns was encoded", c.dt, c.cols)
		}
	}
}
