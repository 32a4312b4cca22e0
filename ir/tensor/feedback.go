package tensor

import (
	"fmt"
	"math"
)

// A Feedback makes later columns of a row make up for the rounding of earlier
// ones. What rounding costs a product x·w is the square of e·x, so with the
// second moments H = Σ xxᵀ of the inputs it is e·H·eᵀ; when column c has its
// code, the columns behind it move to where that is least (Frantar et al. 2022,
// "GPTQ", eq. 3, by the Cholesky form of §3.3). Columns interact within
// diagonal squares of H.
type Feedback struct {
	cols, square int
	follow       [][]float32 // of each square: row c says how far the columns behind c move for an error of 1
	weight       []float32   // of each column's squared error, when those behind it make up for it
}

// damping is the share of the mean diagonal added to it, so that directions the
// calibration text hardly has do not carry errors away (GPTQ §3.3, step 3).
const damping = 0.01

// NewFeedback factors the second moments of cols inputs: square×square sums for
// each run of that many columns, row-major, of which the upper triangle counts.
// square is whole blocks of every type; the last square may be used in part.
func NewFeedback(moments []float32, square, cols int) (*Feedback, error) {
	if square <= 0 || square%64 != 0 || cols <= 0 {
		return nil, fmt.Errorf("second moments in squares of %d for %d columns: expected whole blocks of 64", square, cols)
	}
	parts := (cols + square - 1) / square
	if len(moments) != parts*square*square {
		return nil, fmt.Errorf("second moments of %d columns in squares of %d are %d numbers, found %d", cols, square, parts*square*square, len(moments))
	}
	f := &Feedback{cols: cols, square: square, weight: make([]float32, cols)}
	for p := range parts {
		n := min(square, cols-p*square)
		h := make([]float64, n*n)
		for i := range n {
			for j := i; j < n; j++ {
				x := float64(moments[p*square*square+i*square+j])
				if x-x != 0 {
					return nil, fmt.Errorf("second moment of columns %d and %d is %v", p*square+i, p*square+j, x)
				}
				h[i*n+j] = x
			}
		}
		follow, err := factor(h, n, f.weight[p*square:][:n])
		if err != nil {
			return nil, err
		}
		f.follow = append(f.follow, follow)
	}
	return f, nil
}

// factor overwrites the upper triangle of h. With h = R·Rᵀ, R upper triangular,
// and U = R⁻¹ it gives U[c][j]/U[c][c], and weights 1/U[c][c]².
func factor(h []float64, n int, weight []float32) ([]float32, error) {
	mean := 0.0
	for i := range n {
		mean += h[i*n+i] / float64(n)
	}
	if !(mean > 0) {
		mean = 1 // nothing was seen: all columns alike
	}
	for i := range n {
		h[i*n+i] += damping * mean
	}
	for j := n - 1; j >= 0; j-- {
		rj := h[j*n+j+1 : j*n+n]
		d := h[j*n+j] - dot(rj, rj)
		if !(d > 0) {
			return nil, fmt.Errorf("second moments are not positive definite at column %d", j)
		}
		d = math.Sqrt(d)
		h[j*n+j] = d
		for i := range j {
			h[i*n+j] = (h[i*n+j] - dot(h[i*n+j+1:i*n+n], rj)) / d
		}
	}
	u := make([]float64, n*n)
	out := make([]float32, n*n)
	for i := n - 1; i >= 0; i-- {
		row := u[i*n : i*n+n]
		for k := i + 1; k < n; k++ {
			subtract(row[k:], h[i*n+k], u[k*n+k:k*n+n])
		}
		inverse := 1 / h[i*n+i]
		row[i] = inverse
		weight[i] = float32(h[i*n+i] * h[i*n+i])
		for j := i + 1; j < n; j++ {
			out[i*n+j] = float32(row[j]) // U[i][j]/U[i][i]: the factor 1/R[i][i] of both falls out
			row[j] *= inverse
		}
	}
	return out, nil
}

// subtract takes factor·b from a, which is as long.
func subtract[T float32 | float64](a []T, factor T, b []T) {
	a = a[:len(b)]
	i := 0
	for ; i+4 <= len(b); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		x[0] -= factor * y[0]
		x[1] -= factor * y[1]
		x[2] -= factor * y[2]
		x[3] -= factor * y[3]
	}
	for ; i < len(b); i++ {
		a[i] -= factor * b[i]
	}
}

func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return s0 + s1 + s2 + s3
}

// EncodeFeedback writes one row in a block type that iflowc computes with, like
// EncodeWeighted, with each column's error made up for by those behind it. row
// has the columns of f and is overwritten.
func EncodeFeedback(dst []byte, dt DType, row []float32, f *Feedback) error {
	if err := checkSizes("encode", dt, len(row), len(dst)); err != nil {
		return err
	}
	if len(row) != f.cols {
		return fmt.Errorf("encode %s: a row of %d columns, second moments of %d", dt, len(row), f.cols)
	}
	if blockEncoders[dt] == nil || dt.IsActivation() {
		return fmt.Errorf("encode: %s has no blocks of weights", dt)
	}
	block, size := dt.Block(), dt.BlockBytes()
	for p, follow := range f.follow {
		n := min(f.square, f.cols-p*f.square)
		w := row[p*f.square:][:n]
		for c := 0; c < n; c += block {
			out := dst[(p*f.square+c)/block*size:][:size]
			blockEncoders[dt](out, dt, w[c:c+block], rounding{importance: f.weight[p*f.square+c:][:block]})
			f.block(out, dt, w, c, follow)
		}
	}
	return nil
}

// block returns columns c … of a square their codes under the scale and base that
// stand in out, one after the other, and moves the columns behind each.
func (f *Feedback) block(out []byte, dt DType, w []float32, c int, follow []float32) {
	var codes [64]uint8
	n, block := len(w), dt.Block()
	scale16, base16 := BlockCodes(dt, out, codes[:block])
	scale, base := F16ToF32(scale16), F16ToF32(base16)
	first := 0
	if dt == Q8B32T2 {
		base, first = -128*scale, 1 // the codes are −127 … 127, plus 128
	}
	for i := range block {
		q := max(nearestCode(float64(w[c+i]), float64(scale), float64(base), MaxCode(dt)), uint8(first))
		if scale == 0 {
			q = codes[i]
		}
		codes[i] = q
		miss := w[c+i] - (base + float32(scale*float32(q)))
		if miss == 0 {
			continue
		}
		subtract(w[c+i+1:], miss, follow[(c+i)*n+c+i+1:(c+i+1)*n])
	}
	if dt == Q8B32T2 {
		for i, q := range codes[:block] {
			out[2+i] = q ^ 0x80
		}
		return
	}
	PutBlockCodes(dt, out, scale16, base16, codes[:block])
}
