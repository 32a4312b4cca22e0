package templates

import (
	"fmt"
	"math"
	"strings"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
)

// functions are the elementary functions of ifl_math.h with their exact
// values and the range to test.
var functions = []struct {
	name   string
	exact  func(float64) float64
	lo, hi float64
}{
	{"exp", math.Exp, -87, 88.7},
	{"exp", math.Exp, -1, 1},
	{"log", math.Log, 1e-42, 3},
	{"log", math.Log, 0.5, 2},
	{"log", math.Log, 1, 1e9},
	{"log1p", math.Log1p, 0, 1},
	{"log1p", math.Log1p, 0, 1e-4},
	{"tanh", math.Tanh, -12, 12},
	{"tanh", math.Tanh, -1e-3, 1e-3},
	{"erf", math.Erf, -5, 5},
	{"erf", math.Erf, -1e-3, 1e-3},
	{"sigmoid", sigmoid, -80, 80},
	{"sigmoid", sigmoid, -4, 4},
	{"sqrt", math.Sqrt, 0, 1e9},
	{"floor", math.Floor, -1e3, 1e3},
	{"floor", math.Floor, -1e9, 1e9},
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// vectorShim calls every function of ifl_vec.h on 16 numbers from memory.
func vectorShim() string {
	var b strings.Builder
	b.WriteString("#include \"ifl_vec.h\"\n")
	for _, f := range []string{"exp", "log", "log1p", "tanh", "erf", "sigmoid", "sqrt", "floor", "abs"} {
		fmt.Fprintf(&b, "void t_%s(const float *x, float *y, int n);\nvoid t_%s(const float *x, float *y, int n) { for (int i = 0; i < n; i += 16) ifl_store(y + i, ifl_%s(ifl_load(x + i))); }\n", f, f, f)
	}
	for _, f := range []string{"f16", "bf16"} {
		fmt.Fprintf(&b, "void t_%[1]s(const float *x, uint16_t *h, float *y);\nvoid t_%[1]s(const float *x, uint16_t *h, float *y) { ifl_store_%[1]s(h, ifl_load(x)); ifl_store(y, ifl_load_%[1]s(h)); y[15] = ifl_from_%[1]s_1(h[15]); }\n", f)
	}
	b.WriteString(`void t_reduce(const float *x, const float *z, float *y);
void t_reduce(const float *x, const float *z, float *y) {
  ifl_v16 a = ifl_load(x), b = ifl_load(z);
  y[0] = ifl_sum(a), y[1] = ifl_max_of(a);
  ifl_store(y + 16, ifl_max(a, b)), ifl_store(y + 32, ifl_min(a, b)), ifl_store(y + 48, ifl_fma(a, b, a));
  ifl_store_n(y + 64, ifl_load_n(x, 5), 7), ifl_store(y + 80, ifl_select(ifl_first(3), a, b));
  for (int i = 0; i < 16; i++) y[96 + i] = ifl_fma1(x[i], z[i], x[i]);
}
`)
	return b.String()
}

// TestVectors measures the relative error of every elementary function and
// checks conversions, reductions and special values.
func TestVectors(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cc string, isa ISA) {
		lib := library(t, cc, isa, map[string]string{"vector": vectorShim()})
		for _, f := range functions {
			checkFunction(t, symbol(t, lib, "t_"+f.name), f.name, f.exact, f.lo, f.hi)
		}
		checkSpecial(t, lib)
		checkHalf(t, symbol(t, lib, "t_f16"), tensor.F32ToF16, tensor.F16ToF32)
		checkHalf(t, symbol(t, lib, "t_bf16"), tensor.F32ToBF16, tensor.BF16ToF32)
		checkReduce(t, symbol(t, lib, "t_reduce"))
	})
}

// errorBound is the largest relative error of a function. erf is computed in one
// path, with two roundings more.
func errorBound(name string) float64 {
	if name == "erf" {
		return 4e-7
	}
	return 2e-7
}

func checkFunction(t *testing.T, f uintptr, name string, exact func(float64) float64, lo, hi float64) {
	t.Helper()
	const n = 1 << 16
	x, y := make([]float32, n), make([]float32, n)
	for i := range x {
		x[i] = float32(lo + (hi-lo)*float64(i)/n)
	}
	purego.SyscallN(f, uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0])), n)
	worst, at := 0.0, float32(0)
	for i, v := range y {
		want := exact(float64(x[i]))
		// Below the smallest normal number the last place is the bound.
		if e := math.Abs(float64(v)-want) / max(math.Abs(want), 0x1p-126); !(e <= worst) {
			worst, at = e, x[i]
		}
	}
	if bound := errorBound(name); !(worst <= bound) {
		t.Errorf("%s on %g … %g: relative error %.3g at %g, want at most %g", name, lo, hi, worst, at, bound)
	}
}

func checkSpecial(t *testing.T, lib uintptr) {
	t.Helper()
	inf, nan := math.Inf(1), math.NaN()
	in := []float64{inf, -inf, nan, 0, math.Copysign(0, -1), 1e38, -1e38, 1e-40, -104, 100, 4194303.5, -0.5, 3e9, -3e9, -1, 1}
	for _, f := range functions {
		var x, y [16]float32
		for i, v := range in {
			x[i] = float32(v)
		}
		purego.SyscallN(symbol(t, lib, "t_"+f.name), uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&y[0])), 16)
		for i, v := range x {
			want, got := float32(f.exact(float64(v))), y[i]
			near := math.Abs(float64(got-want)) <= errorBound(f.name)*math.Abs(float64(want))+0x1p-126
			if got != want && !near && !(got != got && want != want) {
				t.Errorf("%s(%g) = %g, want %g", f.name, v, got, want)
			}
		}
	}
}

func checkHalf(t *testing.T, f uintptr, to func(float32) uint16, from func(uint16) float32) {
	t.Helper()
	var x, y [16]float32
	var h [16]uint16
	step := uint64(65521)
	if irtest.All() {
		step = 257
	}
	for u := uint64(0); u < 1<<32; u += 16 * step {
		for i := range x {
			x[i] = math.Float32frombits(uint32(u + uint64(i)*step))
		}
		purego.SyscallN(f, uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&h[0])), uintptr(unsafe.Pointer(&y[0])))
		for i, v := range x {
			if v != v {
				if y[i] == y[i] {
					t.Fatalf("NaN %#x became %#x", math.Float32bits(v), h[i])
				}
				continue
			}
			if h[i] != to(v) || y[i] != from(h[i]) {
				t.Fatalf("%g (%#x): stored as %#x and read as %g, want %#x and %g", v, math.Float32bits(v), h[i], y[i], to(v), from(h[i]))
			}
		}
	}
}

func checkReduce(t *testing.T, f uintptr) {
	t.Helper()
	var x, z [16]float32
	var y [112]float32
	for i := range x {
		x[i], z[i] = float32(i*i)-40.25, float32(100-i*13)
	}
	purego.SyscallN(f, uintptr(unsafe.Pointer(&x[0])), uintptr(unsafe.Pointer(&z[0])), uintptr(unsafe.Pointer(&y[0])))
	v := x
	for half := 8; half > 0; half /= 2 {
		for i := range half {
			v[i] += v[i+half]
		}
	}
	if y[0] != v[0] || y[1] != x[15] {
		t.Errorf("sum %g, maximum %g; want %g, %g", y[0], y[1], v[0], x[15])
	}
	for i := range x {
		part, pick := float32(0), z[i]
		if i < 5 {
			part = x[i]
		}
		if i < 3 {
			pick = x[i]
		}
		got := [6]float32{y[16+i], y[32+i], y[48+i], y[64+i], y[80+i], y[96+i]}
		want := [6]float32{max(x[i], z[i]), min(x[i], z[i]), x[i]*z[i] + x[i], part, pick, x[i]*z[i] + x[i]}
		if got != want {
			t.Errorf("lane %d: %v, want %v", i, got, want)
		}
	}
}
