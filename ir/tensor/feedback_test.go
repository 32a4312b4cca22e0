package tensor

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/calibration"
)

// correlated draws inputs with most of their energy in a few directions and columns of
// different scales, and returns their second moments in squares.
func correlated(r *rand.Rand, cols, square, rows int) (x [][]float32, moments []float32) {
	const directions = 24
	mix := make([]float64, directions*cols)
	for i := range mix {
		mix[i] = r.NormFloat64()
	}
	for range rows {
		v := make([]float32, cols)
		for d := range directions {
			a := r.NormFloat64()
			for c := range v {
				v[c] += float32(a * mix[d*cols+c])
			}
		}
		for c := range v {
			v[c] += float32(r.NormFloat64())
		}
		v[3] *= 20
		x = append(x, v)
	}
	parts, size := (cols+square-1)/square, calibration.SquareLen(square)
	moments = make([]float32, parts*size)
	for _, v := range x[:min(rows, 1000)] { // the rest is held out
		for i := range cols {
			for j := i; j < min(cols, (i/square+1)*square); j++ {
				moments[i/square*size+calibration.Place(square, i%square, j%square)] += v[i] * v[j]
			}
		}
	}
	return x, moments
}

// TestFeedback checks, for every type, that the error of products on held-out inputs is
// far below that of rounding weighted only by importance.
func TestFeedback(t *testing.T) {
	t.Parallel()
	const cols, square = 320, 192
	r := rand.New(rand.NewPCG(4, 5))
	x, moments := correlated(r, cols, square, 1200)
	other := x[1000:]
	f, err := NewFeedback(moments, square, cols)
	if err != nil {
		t.Fatal(err)
	}
	importance := make([]float32, cols)
	for c := range cols {
		importance[c] = moments[c/square*calibration.SquareLen(square)+calibration.Place(square, c%square, c%square)]
	}
	for _, dt := range []DType{Q8B32T2, Q8B32, Q6B64, Q5B64, Q5B32, Q4B32, Q4B64, Q3HB64, Q3B32, Q2B32, Q6B16T2, Q4B16T2, Q2B16, Q6TB32, Q5TB32, Q4TB32, Q3TB32, Q2TB32} {
		var plain, fed float64
		for range 8 {
			w := make([]float32, cols)
			for i := range w {
				w[i] = float32(r.NormFloat64())
			}
			one, two := make([]byte, dt.RowBytes(cols)), make([]byte, dt.RowBytes(cols))
			if err := EncodeWeighted(one, dt, w, importance); err != nil {
				t.Fatal(err)
			}
			if err := EncodeFeedback(two, dt, append([]float32(nil), w...), f); err != nil {
				t.Fatal(err)
			}
			plain += matmulError(t, dt, one, w, other)
			fed += matmulError(t, dt, two, w, other)
		}
		t.Logf("%s: squared error of products %.3f of that without feedback", dt, fed/plain)
		if !(fed < 0.6*plain) {
			t.Errorf("%s: squared error of products is %.3f of that without feedback, expected below 0.6", dt, fed/plain)
		}
	}
}

func matmulError(t *testing.T, dt DType, stored []byte, w []float32, xs [][]float32) float64 {
	t.Helper()
	back := make([]float32, len(w))
	if err := Decode(back, dt, stored); err != nil {
		t.Fatal(err)
	}
	sum := 0.0
	for _, x := range xs {
		e := 0.0
		for c, v := range x {
			e += float64(v) * float64(w[c]-back[c])
		}
		sum += e * e
	}
	return sum
}

// TestFeedbackIndependent checks that uncorrelated columns are not changed, so that the
// result is that of importance alone.
func TestFeedbackIndependent(t *testing.T) {
	t.Parallel()
	const cols = 128
	moments, w := make([]float32, calibration.SquareLen(cols)), make([]float32, cols)
	for c := range cols {
		moments[calibration.Place(cols, c, c)] = 1
		w[c] = float32(math.Sin(float64(c * c)))
	}
	f, err := NewFeedback(moments, cols, cols)
	if err != nil {
		t.Fatal(err)
	}
	for _, dt := range []DType{Q8B32T2, Q6B64, Q3HB64, Q2B32, Q5TB32, Q3TB32} {
		want, got := make([]byte, dt.RowBytes(cols)), make([]byte, dt.RowBytes(cols))
		if err := Encode(want, dt, w); err != nil {
			t.Fatal(err)
		}
		if err := EncodeFeedback(got, dt, append([]float32(nil), w...), f); err != nil {
			t.Fatal(err)
		}
		a, b := make([]float32, cols), make([]float32, cols)
		if Decode(a, dt, want) != nil || Decode(b, dt, got) != nil {
			t.Fatal("cannot decode")
		}
		for c := range a {
			if d := math.Abs(float64(a[c] - b[c])); d > 1e-6 {
				t.Errorf("%s: column %d is %g, without feedback %g", dt, c, b[c], a[c])
			}
		}
	}
}

func TestFeedbackRefuses(t *testing.T) {
	t.Parallel()
	bad := make([]float32, 64*64)
	bad[65] = float32(math.NaN())
	for name, c := range map[string]struct {
		moments      []float32
		square, cols int
	}{"size": {make([]float32, 10), 64, 64}, "square": {make([]float32, 100), 10, 10}, "nan": {bad, 64, 64}} {
		if _, err := NewFeedback(c.moments, c.square, c.cols); err == nil {
			t.Errorf("%s: accepted", name)
		}
	}
}
