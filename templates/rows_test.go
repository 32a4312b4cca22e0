package templates

import (
	"bytes"
	"fmt"
	"math"
	"math/rand/v2"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
)

// rowShim gives the row and packing functions names that a library exports.
const rowShim = `#include "ifl_pack.h"
#include "ifl_rows.h"
#define EXPORT(type, name, params, args) type t_##name params; type t_##name params { ifl_##name args; }
EXPORT(void, row_rmsnorm, (float *y, const float *x, const float *w, int n, float eps, float base), (y, x, w, n, eps, base))
EXPORT(void, row_layernorm, (float *y, const float *x, const float *w, const float *b, int n, float eps, float base), (y, x, w, b, n, eps, base))
EXPORT(void, row_l2norm, (float *y, const float *x, int n, float eps), (y, x, n, eps))
EXPORT(void, row_rope, (float *x, const float *cs, int heads, int width, int dim, int offset, int adjacent), (x, cs, heads, width, dim, offset, adjacent))
EXPORT(void, rope_table, (float *cs, int pos, int dim, const float *freqs, float scale), (cs, pos, dim, freqs, scale))
EXPORT(void, pack_f32, (uint8_t *tile, const float *x, int k, int mt, int m), (tile, x, k, mt, m))
EXPORT(void, pack_a8_b16, (uint8_t *tile, const float *x, int k, int mt, int m), (tile, x, k, mt, m))
EXPORT(void, pack_a8_b32, (uint8_t *tile, const float *x, int k, int mt, int m), (tile, x, k, mt, m))
EXPORT(void, pack_a8_b64, (uint8_t *tile, const float *x, int k, int mt, int m), (tile, x, k, mt, m))
EXPORT(void, pack_a8_b16_outliers, (uint8_t *tile, const float *x, int k, int mt, int m, int outliers), (tile, x, k, mt, m, outliers))
EXPORT(void, pack_a8_b32_outliers, (uint8_t *tile, const float *x, int k, int mt, int m, int outliers), (tile, x, k, mt, m, outliers))
EXPORT(void, pack_a8_b64_outliers, (uint8_t *tile, const float *x, int k, int mt, int m, int outliers), (tile, x, k, mt, m, outliers))
EXPORT(void, pack_bf16, (uint8_t *tile, const float *x, int k, int mt, int m), (tile, x, k, mt, m))
EXPORT(void, pack_tile_f32, (uint8_t *tile, const float *const rows[], int k, int mt), (tile, rows, k, mt))
EXPORT(void, pack_tile_a8_b16, (uint8_t *tile, const float *const rows[], int k, int mt), (tile, rows, k, mt))
EXPORT(void, pack_tile_a8_b32, (uint8_t *tile, const float *const rows[], int k, int mt), (tile, rows, k, mt))
EXPORT(void, pack_tile_a8_b64, (uint8_t *tile, const float *const rows[], int k, int mt), (tile, rows, k, mt))
EXPORT(void, pack_tile_bf16, (uint8_t *tile, const float *const rows[], int k, int mt), (tile, rows, k, mt))
`

type rowFuncs struct {
	rmsnorm   func(y, x, w *float32, n int32, eps, base float32)
	layernorm func(y, x, w, b *float32, n int32, eps, base float32)
	l2norm    func(y, x *float32, n int32, eps float32)
	rope      func(x, cs *float32, heads, width, dim, offset, adjacent int32)
	ropeTable func(cs *float32, pos, dim int32, freqs *float32, scale float32)
}

func TestRows(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cc string, isa ISA) {
		lib := library(t, cc, isa, map[string]string{"rows": rowShim})
		var f rowFuncs
		purego.RegisterLibFunc(&f.rmsnorm, lib, "t_row_rmsnorm")
		purego.RegisterLibFunc(&f.layernorm, lib, "t_row_layernorm")
		purego.RegisterLibFunc(&f.l2norm, lib, "t_row_l2norm")
		purego.RegisterLibFunc(&f.rope, lib, "t_row_rope")
		purego.RegisterLibFunc(&f.ropeTable, lib, "t_rope_table")
		for _, n := range []int{1, 7, 16, 20, 64, 80, 100, 576, 4097} {
			checkNorms(t, &f, n)
		}
		for _, adjacent := range []int32{0, 1} {
			checkRope(t, &f, 3, 64, 64, 0, adjacent)
			checkRope(t, &f, 2, 80, 20, 0, adjacent)
			checkRope(t, &f, 5, 48, 34, 14, adjacent)
		}
		for _, act := range []string{"f32", "bf16", "a8_b16", "a8_b32", "a8_b64", "a8_b16+3", "a8_b32+1", "a8_b32+4", "a8_b64+2", "a8_b64+4"} {
			for _, k := range []int{1, 20, 32, 64, 96, 100, 576} {
				for mt := 1; mt <= 16; mt++ {
					checkPack(t, lib, act, k, mt)
				}
			}
		}
	})
}

func randomRow(n int, seed uint64) []float32 {
	r := rand.New(rand.NewPCG(seed, uint64(n)))
	x := make([]float32, n)
	for i := range x {
		x[i] = float32(r.NormFloat64() * 3)
	}
	return x
}

func checkNorms(t *testing.T, f *rowFuncs, n int) {
	t.Helper()
	x, w, b := randomRow(n, 1), randomRow(n, 2), randomRow(n, 3)
	const eps, base = 1e-5, 1
	var sum, squares, spread float64
	for _, v := range x {
		sum += float64(v)
		squares += float64(v) * float64(v)
	}
	mean := sum / float64(n)
	for _, v := range x {
		spread += (float64(v) - mean) * (float64(v) - mean)
	}
	rms := math.Sqrt(squares/float64(n) + eps)
	dev := math.Sqrt(spread/float64(n) + eps)
	run := func(name string, call func(y, x *float32), want func(i int) float64, scale float64) {
		y := append(make([]float32, n), 99)
		in := append([]float32(nil), x...)
		call(&y[0], &in[0])
		if y[n] != 99 {
			t.Errorf("%s of %d: wrote behind the row", name, n)
		}
		for i := range x {
			if d := math.Abs(float64(y[i]) - want(i)); !(d <= 1e-6*(math.Abs(want(i))+scale)) {
				t.Fatalf("%s of %d: element %d is %g, want %g", name, n, i, y[i], want(i))
			}
		}
		call(&in[0], &in[0])
		for i := range x {
			if math.Float32bits(in[i]) != math.Float32bits(y[i]) {
				t.Fatalf("%s of %d in place: element %d is %g, elsewhere %g", name, n, i, in[i], y[i])
			}
		}
	}
	run("rmsnorm", func(y, x *float32) { f.rmsnorm(y, x, &w[0], int32(n), eps, base) }, func(i int) float64 { return float64(x[i]) / rms * (float64(w[i]) + base) }, 0)
	run("rmsnorm without weight", func(y, x *float32) { f.rmsnorm(y, x, nil, int32(n), eps, 0) }, func(i int) float64 { return float64(x[i]) / rms }, 0)
	if n == 1 {
		return // a single number has no spread: what is left is rounding
	}
	run("layernorm", func(y, x *float32) { f.layernorm(y, x, &w[0], &b[0], int32(n), eps, 0) },
		func(i int) float64 { return (float64(x[i])-mean)/dev*float64(w[i]) + float64(b[i]) }, 3)
	run("layernorm without weights", func(y, x *float32) { f.layernorm(y, x, nil, nil, int32(n), eps, 0) },
		func(i int) float64 { return (float64(x[i]) - mean) / dev }, 1)
	run("l2norm", func(y, x *float32) { f.l2norm(y, x, int32(n), eps) }, func(i int) float64 { return float64(x[i]) / math.Sqrt(squares) }, 0)
}

func checkRope(t *testing.T, f *rowFuncs, heads, width, dim, offset, adjacent int32) {
	t.Helper()
	const pos, scale = 12345, 1.25
	half := int(dim / 2)
	freqs, cs := make([]float32, half), make([]float32, dim)
	for i := range freqs {
		freqs[i] = float32(math.Pow(10000, -2*float64(i)/float64(dim)))
	}
	f.ropeTable(&cs[0], pos, dim, &freqs[0], scale)
	x := randomRow(int(heads*width), 4)
	want := make([]float64, len(x))
	for i, v := range x {
		want[i] = float64(v)
	}
	for h := range int(heads) {
		for i := range half {
			s, c := math.Sincos(float64(pos * freqs[i]))
			a := h*int(width) + int(offset) + i
			b := a + half
			if adjacent == 1 {
				a, b = a+i, a+i+1
			}
			va, vb := float64(x[a]), float64(x[b])
			want[a], want[b] = (va*c-vb*s)*scale, (vb*c+va*s)*scale
		}
	}
	f.rope(&x[0], &cs[0], heads, width, dim, offset, adjacent)
	for i, v := range x {
		if d := math.Abs(float64(v) - want[i]); !(d <= 4e-6) {
			t.Fatalf("rope %d heads of %d, %d from %d, adjacent %d: channel %d is %g, want %g", heads, width, dim, offset, adjacent, i, v, want[i])
		}
	}
}

// checkPack compares a packed tile, by rows and whole, with the reference.
func checkPack(t *testing.T, lib uintptr, act string, k, mt int) {
	t.Helper()
	x := randomRow(mt*k, 5)
	clear(x[:min(k, 32)]) // a block of zeros has scale 0
	x[mt*k/2] *= 30
	want, _ := packRows(act, x, mt, k, mt)
	byRow, whole := aligned(len(want)), aligned(len(want))
	rows := make([]*float32, mt)
	kind, outliers := outliersOf(act)
	name, results := "t_pack_"+kind, map[string][]byte{"row by row": byRow}
	if outliers > 0 {
		name += "_outliers"
	}
	pack := symbol(t, lib, name)
	for m := range mt {
		rows[m] = &x[m*k]
		purego.SyscallN(pack, uintptr(unsafe.Pointer(&byRow[0])), uintptr(unsafe.Pointer(rows[m])), uintptr(k), uintptr(mt), uintptr(m), uintptr(outliers))
	}
	if outliers == 0 {
		purego.SyscallN(symbol(t, lib, "t_pack_tile_"+act), uintptr(unsafe.Pointer(&whole[0])), uintptr(unsafe.Pointer(&rows[0])), uintptr(k), uintptr(mt))
		results["whole"] = whole
	}
	name = fmt.Sprintf("%s, %d columns, tile of %d", act, k, mt)
	for how, got := range results {
		if !bytes.Equal(got, want) {
			at := 0
			for got[at] == want[at] {
				at++
			}
			t.Fatalf("%s, %s: byte %d of %d is %d, want %d", name, how, at, len(want), got[at], want[at])
		}
	}
}
