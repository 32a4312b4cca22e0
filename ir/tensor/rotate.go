package tensor

import "math"

// rotateMax is the largest segment that [Rotate] rotates; ifl_kv.h has the same.
const rotateMax = 256

// Rotate multiplies each segment of a row by the Hadamard matrix divided by the square
// root of its order. A segment is as long as the largest power of two that divides the
// row's length, at most 256. The matrix is its own inverse, and dot products of two
// rotated rows are those of the rows. Kernels add in the same order.
func Rotate(x []float32) {
	n := min(len(x)&-len(x), rotateMax)
	for at := 0; at < len(x); at += n {
		s := x[at : at+n]
		for h := 1; h < n; h *= 2 {
			for i := 0; i < n; i += 2 * h {
				for j := i; j < i+h; j++ {
					s[j], s[j+h] = s[j]+s[j+h], s[j]-s[j+h]
				}
			}
		}
		f := float32(1 / math.Sqrt(float64(n)))
		for i := range s {
			s[i] *= f
		}
	}
}
