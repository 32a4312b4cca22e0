package tensor

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/calibration"
)

// A Feedback compensates the rounding errors of earlier columns of a row in later
// columns. The error e of a row w causes the squared error (e·x)² of a product x·w. Over
// all inputs this is e·H·eᵀ with the Hessian H = Σ xxᵀ. After column c is rounded, the
// later columns move to the minimum of that error (Frantar et al. 2022, "GPTQ", eq. 3,
// with the Cholesky form of §3.3). Only columns in the same diagonal square of H
// interact.
type Feedback struct {
	cols, square int
	follow       [][]float32 // for each square: row c is the change of the later columns for an error of 1 in column c
	weight       []float32   // weight of each column's squared error after compensation by later columns
	blocks       []blockFactor
}

// damping is the fraction of the mean diagonal that is added to the diagonal, so that
// errors are not moved to directions that are rare in the calibration text (GPTQ §3.3,
// step 3).
const damping = 0.01

// NewFeedback factors the Hessian of cols inputs: one square of square columns after the
// other in the form of calibration.Hessian. The last square may be used in part.
func NewFeedback(moments []float32, square, cols int) (*Feedback, error) {
	if square <= 0 || square%calibration.Tile != 0 || cols <= 0 {
		return nil, fmt.Errorf("second moments in squares of %d for %d columns: expected whole blocks of %d", square, cols, calibration.Tile)
	}
	parts, size := (cols+square-1)/square, calibration.SquareLen(square)
	if len(moments) != parts*size {
		return nil, fmt.Errorf("second moments of %d columns in squares of %d are %d numbers, found %d", cols, square, parts*size, len(moments))
	}
	f := &Feedback{cols: cols, square: square, weight: make([]float32, cols)}
	for p := range parts {
		n := min(square, cols-p*square)
		h := make([]float64, n*n)
		for i := range n {
			for j := i; j < n; j++ {
				x := float64(moments[p*size+calibration.Place(square, i, j)])
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
		for c := 0; c < n; c += trellisBlock {
			f.blocks = append(f.blocks, factorBlock(follow, f.weight[p*square+c:], n, c))
		}
	}
	return f, nil
}

// factor overwrites the upper triangle of h. With h = R·Rᵀ, R upper triangular, and U =
// R⁻¹ it returns U[c][j]/U[c][c], and sets weight to 1/U[c][c]².
func factor(h []float64, n int, weight []float32) ([]float32, error) {
	mean := 0.0
	for i := range n {
		mean += h[i*n+i] / float64(n)
	}
	if !(mean > 0) {
		mean = 1 // no calibration data: all columns are equal
	}
	for i := range n {
		h[i*n+i] += float64(damping * mean)
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
			out[i*n+j] = float32(row[j]) // U[i][j]/U[i][i]: the factor 1/R[i][i] cancels
			row[j] *= inverse
		}
	}
	return out, nil
}

// subtract subtracts factor·b from a, which has the same length. The conversions here and
// in dot prevent fused multiply-adds, so that all CPUs return the same bits.
func subtract[T float32 | float64](a []T, factor T, b []T) {
	a = a[:len(b)]
	i := 0
	for ; i+4 <= len(b); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		x[0] -= T(factor * y[0])
		x[1] -= T(factor * y[1])
		x[2] -= T(factor * y[2])
		x[3] -= T(factor * y[3])
	}
	for ; i < len(b); i++ {
		a[i] -= T(factor * b[i])
	}
}

func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += float64(x[0] * y[0])
		s1 += float64(x[1] * y[1])
		s2 += float64(x[2] * y[2])
		s3 += float64(x[3] * y[3])
	}
	for ; i < len(a); i++ {
		s0 += float64(a[i] * b[i])
	}
	return s0 + s1 + s2 + s3
}

// EncodeFeedback encodes one row in a block type, like EncodeWeighted, with the error of
// each column compensated by later columns. row has the columns of f and is overwritten.
func EncodeFeedback(dst []byte, dt DType, row []float32, f *Feedback) error {
	if err := checkSizes("encode", dt, len(row), len(dst)); err != nil {
		return err
	}
	if len(row) != f.cols {
		return fmt.Errorf("encode %s: row of %d columns, but second moments of %d", dt, len(row), f.cols)
	}
	if blockEncoders[dt] == nil || dt.IsActivation() {
		return fmt.Errorf("encode: %s is not a block type for weights", dt)
	}
	block, size := dt.Block(), dt.BlockBytes()
	for p, follow := range f.follow {
		n := min(f.square, f.cols-p*f.square)
		w := row[p*f.square:][:n]
		for c := 0; c < n; c += block {
			out := dst[(p*f.square+c)/block*size:][:size]
			how := rounding{importance: f.weight[p*f.square+c:][:block]}
			if TrellisOf(dt) != nil {
				f.trellisBlock(out, dt, w, p, c, how)
				continue
			}
			blockEncoders[dt](out, dt, w[c:c+block], how)
			f.block(out, dt, w, c, follow)
		}
	}
	return nil
}

// block assigns columns c … of a square their codes under the scale and base in out, one
// after the other, and updates the later columns after each.
func (f *Feedback) block(out []byte, dt DType, w []float32, c int, follow []float32) {
	var codes [64]uint8
	n, block := len(w), dt.Block()
	scale16, base16 := BlockCodes(dt, out, codes[:block])
	scale, base := F16ToF32(scale16), F16ToF32(base16)
	first := 0
	if l := signed[dt]; l != nil {
		base, first = -float32(l.zero)*scale, int(l.zero)+int(l.low)
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
	PutBlockCodes(dt, out, scale16, base16, codes[:block])
}
