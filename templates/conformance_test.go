package templates

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
)

// tolerance bounds the error of a matmul, as a share of Σ|w|·|x| where a
// quantized weight counts as |scale·code| + |base|: float32 sums of at most
// 600 terms (plain types, activations that are not rounded) or 36 (blocks,
// exact inside).
func tolerance(dt tensor.DType, act string) float64 {
	if dt.IsBlock() && act != "f32" {
		return 1e-6
	}
	return 4e-6
}

var rowCounts = []int{1, 2, 3, 5, 8, 13, 16, 17, 31, 64, 100}

// sampled says whether the quick test compiles a kernel: the embed kernel of
// one type for each format, because it checks how codes are unpacked, and the
// products of one type or two for each body of code.
func sampled(k *Kernel, dt tensor.DType, isa ISA) bool {
	switch {
	case isa.Act != "":
		return k.act == isa.Act
	case irtest.All():
		return true
	case k.act == "f32":
		return dt == tensor.Q4B64 && isa.Name != "portable" || dt == tensor.Q8B32T2 && k.Impl == "gemv"
	case k.act != "":
		return true
	case isa.Name == "portable":
		return dt == tensor.F16 || dt == tensor.Q3HB64 && k.Impl != "gemm"
	case k.Op == "embed":
		return dt != tensor.Q8B32 && dt != tensor.Q8B64 && dt != tensor.Q4B32 && dt != tensor.BF16
	case tensor.TrellisOf(dt) != nil: // types of --quant, whose code vectors are used in another order
		return k.Impl == "gemv" || k.Impl == "flat_gemm" && dt == tensor.Q4TB32
	case k.Impl == "flat_gemm":
		return dt == tensor.F16 || dt == tensor.Q4B64
	default:
		return dt == tensor.F16 || dt == tensor.Q8B32T2 || dt == tensor.Q4B64 && k.Impl == "gemv" || dt == tensor.BF16 && k.Impl == "gemm"
	}
}

func widths(dt tensor.DType) []int {
	ks := []int{32, 64, 96, 160, 576}
	if !dt.IsBlock() {
		ks = append(ks, 1, 7, 20)
	} else {
		ks = append(ks, 33, 100)
	}
	if !irtest.All() {
		return []int{ks[2], ks[4], ks[len(ks)-1]}
	}
	return ks
}

// TestMatmul compares every implementation of every type with a float64
// product, and bit by bit with each other: over row counts, panels and tiles.
func TestMatmul(t *testing.T) {
	t.Parallel()
	c := load1(t)
	onEachOf(t, runnable(), func(t *testing.T, cc string, isa ISA) {
		sources := map[string]string{}
		type operands struct {
			dt  tensor.DType
			act string
		}
		impls := map[operands][]*Kernel{}
		for _, k := range c.Kernels() {
			for _, dt := range k.Types {
				if (k.Op == "matmul" || k.Op == "embed") && sampled(k, dt, isa) {
					sources[k.Symbol(dt)] = source(t, k, dt, isa.Name)
					impls[operands{dt, k.Act(dt)}] = append(impls[operands{dt, k.Act(dt)}], k)
				}
			}
		}
		lib := library(t, cc, isa, sources)
		for _, dt := range computeTypes {
			for _, act := range []string{Act(dt), Act(dt) + "+3", "bf16", "f32"} {
				kind, outliers := outliersOf(act)
				if act == "f32" && !dt.IsBlock() {
					continue // their own
				}
				for _, width := range widths(dt) {
					if ks := impls[operands{dt, kind}]; len(ks) > 0 && (outliers == 0 || dt.IsBlock()) {
						t.Run(fmt.Sprintf("%s·%s/%d", dt, act, width), func(t *testing.T) { newMatmulCase(dt, act, 5, width).check(t, lib, ks) })
					}
				}
			}
		}
	})
}

// A matmulCase is a test case: weights, activations, and y = x·wᵀ in float64.
type matmulCase struct {
	dt     tensor.DType
	act    string
	panels int
	w      *matrix
	x      []float32
	rows   int
	want   []float64
	bound  []float64
}

func newMatmulCase(dt tensor.DType, act string, panels, k int) *matmulCase {
	r := rand.New(rand.NewPCG(7, uint64(k)))
	rows := slices.Max(rowCounts)
	if !irtest.All() {
		rows = 33
	}
	p := &matmulCase{dt: dt, act: act, panels: panels, rows: rows, w: randomMatrix(r, dt, 16*panels, k), x: make([]float32, rows*k)}
	for i := range p.x {
		p.x[i] = float32(r.NormFloat64())
	}
	if _, outliers := outliersOf(act); outliers > 0 {
		for i := range rows { // half of them in columns of their own, as large ones are
			p.x[i*k+[]int{k / 2, r.IntN(k)}[i%2]] *= 25
		}
	}
	_, xs := packRows(act, p.x, rows, k, 1)
	n := p.w.rows
	p.want, p.bound = make([]float64, rows*n), make([]float64, rows*n)
	for t := range rows {
		for i := range n {
			for c := range k {
				p.want[t*n+i] += p.w.value[i*k+c] * xs[t*k+c]
				p.bound[t*n+i] += p.w.size[i*k+c] * math.Abs(xs[t*k+c])
			}
		}
	}
	return p
}

// check runs every implementation. The first row count of the first one is
// compared with the reference and everything else, bit by bit, with that.
func (p *matmulCase) check(t *testing.T, lib uintptr, impls []*Kernel) {
	t.Helper()
	var first []float32
	for _, k := range impls {
		f := symbol(t, lib, k.Symbol(p.dt))
		if k.Op == "embed" {
			p.checkEmbed(t, f, k)
			continue
		}
		for _, rows := range rowCounts {
			if rows > p.rows {
				continue
			}
			y := p.run(t, f, k, rows, p.panels)
			if first == nil {
				first = p.run(t, f, k, p.rows, p.panels)
				p.compare(t, first)
			}
			p.same(t, k, rows, "together", y, first)
			p.same(t, k, rows, "panel by panel", p.run(t, f, k, rows, 1), first)
		}
	}
}

// run computes `rows` rows, `together` panels a call, and checks that nothing
// else is written.
func (p *matmulCase) run(t *testing.T, f uintptr, k *Kernel, rows, together int) []float32 {
	t.Helper()
	const guard = float32(-12345)
	n := p.w.rows
	ldy := n + 16
	act, _ := packRows(p.act, p.x, rows, p.w.k, k.Tile)
	y := floats(aligned(4 * rows * ldy))
	for i := range y {
		y[i] = guard
	}
	scratch := aligned(max(80*p.w.k, 80*16))
	panel := len(p.w.packed) / p.panels
	for q := 0; q < p.panels; q += together {
		purego.SyscallN(f, uintptr(unsafe.Pointer(&p.w.packed[q*panel])), uintptr(p.w.k), uintptr(together),
			uintptr(unsafe.Pointer(&act[0])), uintptr(rows), uintptr(unsafe.Pointer(&y[16*q])), uintptr(ldy), uintptr(unsafe.Pointer(&scratch[0])))
	}
	out := make([]float32, 0, rows*n)
	for r := range rows {
		out = append(out, y[r*ldy:r*ldy+n]...)
		for _, v := range y[r*ldy+n : (r+1)*ldy] {
			if v != guard {
				t.Fatalf("%s, %d rows: wrote behind row %d", k.Name, rows, r)
			}
		}
	}
	return out
}

func (p *matmulCase) compare(t *testing.T, y []float32) {
	t.Helper()
	for i, v := range y {
		if d := math.Abs(float64(v) - p.want[i]); !(d <= tolerance(p.dt, p.act)*p.bound[i]) {
			t.Fatalf("row %d, output %d: %g, want %g within %g", i/p.w.rows, i%p.w.rows, v, p.want[i], tolerance(p.dt, p.act)*p.bound[i])
		}
	}
}

func (p *matmulCase) same(t *testing.T, k *Kernel, rows int, how string, y, want []float32) {
	t.Helper()
	for i, v := range y {
		if math.Float32bits(v) != math.Float32bits(want[i]) {
			t.Fatalf("%s, %d rows, panels %s: row %d, output %d is %g, elsewhere %g: the order of summation differs", k.Name, rows, how, i/p.w.rows, i%p.w.rows, v, want[i])
		}
	}
}

// checkEmbed compares every dequantized row with the exact values, rounded.
func (p *matmulCase) checkEmbed(t *testing.T, f uintptr, k *Kernel) {
	t.Helper()
	out := make([]float32, p.w.k+1)
	for row := range p.w.rows {
		out[p.w.k] = 77
		purego.SyscallN(f, uintptr(unsafe.Pointer(&p.w.packed[0])), uintptr(p.w.k), uintptr(row), uintptr(unsafe.Pointer(&out[0])))
		for c, v := range out[:p.w.k] {
			if v != float32(p.w.value[row*p.w.k+c]) {
				t.Fatalf("%s: row %d, column %d: %g, want %g", k.Name, row, c, v, p.w.value[row*p.w.k+c])
			}
		}
		if out[p.w.k] != 77 {
			t.Fatalf("%s: wrote behind column %d", k.Name, p.w.k)
		}
	}
}

func load1(t testing.TB) *Catalog {
	t.Helper()
	c, err := Load()
	if err != nil {
		t.Fatal(err)
	}
	return c
}

func source(t testing.TB, k *Kernel, dt tensor.DType, isa string) string {
	t.Helper()
	s, err := k.Source(dt, isa)
	if err != nil {
		t.Fatal(err)
	}
	return s
}
