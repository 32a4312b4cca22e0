package templates

import (
	"math"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// TestBest: pieces of rows of logits in any order, with equals, and with numbers
// that are not finite.
func TestBest(t *testing.T) {
	t.Parallel()
	const n, rows = 48, 3
	inf := float32(math.Inf(1))
	type best struct {
		value float32
		at    int32
	}
	shim := `#include "ifl_best.h"
void t_best(ifl_best *best, int rows, const float *y, long ldy, int n0, int cols);
void t_best(ifl_best *best, int rows, const float *y, long ldy, int n0, int cols) { ifl_find_best(best, rows, y, ldy, n0, cols); }
`
	nan, zero := float32(math.NaN()), float32(math.Copysign(0, -1))
	cases := []struct {
		set  map[int]float32 // of logits that else are −1
		want int32
	}{
		{map[int]float32{7: 3}, 7},
		{map[int]float32{47: 3, 7: 2}, 47},
		{map[int]float32{40: 3, 17: 3, 20: 3, 5: 1}, 17},
		{nil, 0},
		{map[int]float32{31: 0, 30: zero}, 30},
		{map[int]float32{7: 3, 20: nan}, -2},
		{map[int]float32{7: 3, 20: inf}, -2},
		{map[int]float32{7: 3, 40: -inf}, -2},
	}
	onEach(t, func(t *testing.T, cc string, isa ISA) {
		find := symbol(t, library(t, cc, isa, map[string]string{"best": shim}), "t_best")
		for _, c := range cases {
			for _, order := range [][]int{{0, 16, 32}, {32, 0, 16}, {16, 32, 0}} {
				y := make([]float32, rows*n)
				for i := range y {
					y[i] = -1
					if v, ok := c.set[i%n]; ok {
						y[i] = v
					}
				}
				got := [rows]best{{at: -1}, {at: -1}, {at: -1}}
				for _, at := range order {
					purego.SyscallN(find, uintptr(unsafe.Pointer(&got[0])), rows, uintptr(unsafe.Pointer(&y[at])), n, uintptr(at), 16)
				}
				for r, b := range got {
					if b.at != c.want {
						t.Errorf("%v in order %v, row %d: %d, expected %d", c.set, order, r, b.at, c.want)
					}
				}
			}
		}
	})
}
