package templates

import (
	"fmt"
	"math/rand/v2"
	"reflect"
	"runtime"
	"strings"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// cellShim runs an op on fixed-size states for some number of threads, one after
// the other: no op waits for another thread. It returns the number of floats that were
// written behind the scratch of an op.
const cellShim = `
#include "ifl_recurrence.h"
#include "ifl_scan.h"
#include <stdlib.h>
#define RUN(name)                                                        \
  int shim_##name(ifl_##name *a, int threads);                           \
  int shim_##name(ifl_##name *a, int threads) {                          \
    a->cells.threads = threads;                                          \
    for (a->cells.tid = 0; a->cells.tid < threads; a->cells.tid++) ifl_run_##name(a); \
    return 0;                                                            \
  }
RUN(conv)
RUN(lru)
enum { BEHIND = 4096 };
#define RUN_IN(name, floats)                                             \
  int shim_##name(ifl_##name *a, int threads);                           \
  int shim_##name(ifl_##name *a, int threads) {                          \
    const int64_t n = floats;                                            \
    int over = 0;                                                        \
    a->scratch = aligned_alloc(64, (size_t)(n + BEHIND + 15) / 16 * 64); \
    a->cells.threads = threads;                                          \
    for (int i = 0; i < BEHIND; i++) a->scratch[n + i] = (float)i;           \
    for (a->cells.tid = 0; a->cells.tid < threads; a->cells.tid++) ifl_run_##name(a); \
    for (int i = 0; i < BEHIND; i++) over += a->scratch[n + i] != (float)i;  \
    free(a->scratch);                                                    \
    return over;                                                         \
  }
RUN_IN(scan, ifl_scan_floats(a->states))
RUN_IN(recurrence, ifl_recurrence_floats(a->dim, a->vdim))
`

// cCells to cRecurrence are the structs of ifl_cells.h, ifl_scan.h and
// ifl_recurrence.h.
type cCells struct {
	step       *cStep
	_          [2]int32 // thread and number of threads, which the shim sets
	base       *float32
	start, row int64
}

type cConv struct {
	cells      cCells
	x          *float32
	ldx        int64
	out        *float32
	ldo        int64
	w          *float32
	ldw        int64
	bias       *float32
	cols, taps int32
	silu       int32
}

type cLRU struct {
	cells cCells
	x     *float32
	ldx   int64
	logA  *float32
	lda   int64
	out   *float32
	ldo   int64
	cols  int32
}

type cScan struct {
	cells               cCells
	x, dt, b, c         *float32
	ldx, lddt, ldb, ldc int64
	a                   *float32
	out                 *float32
	ldo                 int64
	channels, states    int32
	_                   *float32 // scratch, which the shim sets
}

type cRecurrence struct {
	cells                                  cCells
	q, k, v                                *float32
	ldq, ldk, ldv                          int64
	decay                                  *float32
	lddecay                                int64
	beta                                   *float32
	ldbeta                                 int64
	erase, write                           *float32
	lderase, ldwrite                       int64
	slopes                                 *float32
	slopeScale                             float32
	skip                                   *float32
	out                                    *float32
	ldo                                    int64
	heads, keyHeads, dim, vdim, decays, dl int32
	scale                                  float32
	_                                      *float32 // scratch, which the shim sets
}

// A cellOp is an op on a fixed-size state, with its weights.
type cellOp struct {
	op         *ir.Op
	text       string
	call       string
	cols       []int       // columns of each argument that is a value
	weights    [][]float64 // by argument; nil for values
	packed     [][]float32 // the same as the kernel reads them
	gauge      []func(r *rand.Rand) float64
	start, row int64
	silu       bool // the kernel applies silu to the result
}

// cellModule parses a module with one op on state %s; args are its arguments, as
// columns of values or shapes of weights ("[4, 20]").
func cellModule(state, op, attrs string, args ...string) (*ir.Op, string) {
	var decls, values, list strings.Builder
	fmt.Fprintf(&decls, "weight @ids : f32[9, 1]\nstate %%s : fixed {%s}\n", state)
	for i, a := range args {
		if strings.HasPrefix(a, "[") {
			fmt.Fprintf(&decls, "weight @a%d : f32%s\n", i, a)
			fmt.Fprintf(&list, ", @a%d", i)
			continue
		}
		fmt.Fprintf(&decls, "weight @a%d : f32[9, %s]\n", i, a)
		fmt.Fprintf(&values, "%%a%d = embed %%ids, @a%d\n", i, i)
		fmt.Fprintf(&list, ", %%a%d", i)
	}
	text := fmt.Sprintf("module m {\n%sgraph decode (T tokens, R out_rows, S sequences) {\ninput %%ids : i32[T]\n%s%%y = %s %%s%s %s\nyield %%y\n}\n}\n", decls.String(), values.String(), op, list.String(), attrs)
	m, err := ir.Parse("cells.ir", []byte(text), ops.Table)
	if err == nil {
		err = ir.Verify(m)
	}
	if err != nil {
		panic(fmt.Sprintf("%v\n%s", err, text))
	}
	return m.Graphs[0].FindOps(op)[0], text
}

func newCellOp(r *rand.Rand, state, op, attrs string, args ...string) *cellOp {
	c := &cellOp{}
	c.op, c.text = cellModule(state, op, attrs, args...)
	for _, a := range c.op.Args[1:] {
		if a.Kind != ir.Weight {
			c.cols, c.weights, c.packed = append(c.cols, a.Type.Cols()), append(c.weights, nil), append(c.packed, nil)
			c.gauge = append(c.gauge, func(r *rand.Rand) float64 { return r.NormFloat64() })
			continue
		}
		rows, cols := 1, a.Type.Cols()
		if len(a.Type.Shape) == 2 {
			rows = a.Type.Shape[0].N
		}
		w, p := make([]float64, rows*cols), alignedFloats(rows*round16(cols))
		for j := range w {
			f := float32(r.NormFloat64())
			w[j], p[j/cols*round16(cols)+j%cols] = float64(f), f
		}
		c.cols, c.weights, c.packed = append(c.cols, 0), append(c.weights, w), append(c.packed, p)
	}
	return c
}

// decaying draws logarithms of decays, mostly small.
func decaying(r *rand.Rand) float64 {
	switch r.IntN(8) {
	case 0:
		return 0
	case 1:
		return -20 * r.Float64()
	}
	return -0.5 * r.Float64()
}

func randomConv(r *rand.Rand) *cellOp {
	taps, cols := 2+r.IntN(5), 1+r.IntN(70)
	args := []string{fmt.Sprint(cols), fmt.Sprintf("[%d, %d]", taps, cols)}
	if r.IntN(2) == 0 {
		args = append(args, fmt.Sprintf("[%d]", cols))
	}
	c := newCellOp(r, fmt.Sprintf("x: f32[%d, %d]", taps-1, cols), "short_conv", "", args...)
	c.call, c.start, c.row = "conv", int64((taps-1)*round16(cols)), int64(round16(cols))
	c.silu = r.IntN(2) == 0
	return c
}

func randomShift(r *rand.Rand) *cellOp {
	cols := 1 + r.IntN(70)
	c := newCellOp(r, fmt.Sprintf("x: f32[%d]", cols), "token_shift", "", fmt.Sprint(cols))
	c.call, c.start, c.row = "conv", int64(round16(cols)), int64(round16(cols))
	return c
}

func randomLRU(r *rand.Rand) *cellOp {
	cols := 1 + r.IntN(70)
	c := newCellOp(r, fmt.Sprintf("h: f32[%d]", cols), "rg_lru", "", fmt.Sprint(cols), fmt.Sprint(cols))
	c.call, c.row = "lru", int64(round16(cols))
	c.gauge[1] = decaying
	return c
}

func randomScan(r *rand.Rand) *cellOp {
	cols, states := 1+r.IntN(70), 1+r.IntN(20)
	c := newCellOp(r, fmt.Sprintf("h: f32[%d, %d]", cols, states), "selective_scan", "",
		fmt.Sprint(cols), fmt.Sprint(cols), fmt.Sprint(states), fmt.Sprint(states), fmt.Sprintf("[%d, %d]", cols, states))
	c.call, c.start, c.row = "scan", int64(round16(cols)/16*(32*states+16)), int64(2*round16(cols)+round16(states))
	c.gauge[1] = func(r *rand.Rand) float64 { return -decaying(r) / 5 }
	w, p := c.weights[4], alignedFloats(round16(cols)*states)
	for i := range w {
		w[i] = -max(w[i], -w[i])
		p[(i/states/16*states+i%states)*16+i/states%16] = float32(w[i]) // panels of 16 channels
	}
	c.packed[4] = p
	return c
}

func randomRecurrence(r *rand.Rand) *cellOp {
	keyHeads, group := 1+r.IntN(2), 1+r.IntN(3)
	heads, dim, vdim := keyHeads*group, pick(r, 4, 16, 24, 33), pick(r, 5, 16, 40, 130)
	decay, delta := pick(r, "none", "fixed", "head", "channel"), pick(r, "none", "rule", "vectors")
	attrs := []string{fmt.Sprintf("heads=%d, key_heads=%d, scale=0.5", heads, keyHeads)}
	args := []string{fmt.Sprint(keyHeads * dim), fmt.Sprint(keyHeads * dim), fmt.Sprint(heads * vdim)}
	row := keyHeads*round16(dim) + heads*round16(vdim)
	var gauge []func(*rand.Rand) float64
	add := func(cols int, f func(*rand.Rand) float64) {
		args, gauge = append(args, fmt.Sprint(cols)), append(gauge, f)
	}
	small := func(r *rand.Rand) float64 { return 0.3 * r.NormFloat64() }
	switch decay {
	case "fixed":
		list := make([]string, heads)
		for h := range list {
			list[h] = fmt.Sprintf("%.3f", -r.Float64())
		}
		attrs = append(attrs, "slopes=["+strings.Join(list, ", ")+"], slope_scale=0.5")
	case "head":
		add(heads, decaying)
		row += round16(heads)
	case "channel":
		add(heads*dim, decaying)
		row += heads * round16(dim)
	}
	if r.IntN(2) == 0 || delta == "rule" {
		attrs = append(attrs, "beta")
		add(heads, func(r *rand.Rand) float64 { return r.Float64() })
	}
	if delta == "vectors" {
		add(heads*dim, small)
		add(heads*dim, small)
		row += heads * (round16(dim) + round16(vdim))
	}
	if r.IntN(2) == 0 {
		attrs = append(attrs, "skip")
		args = append(args, fmt.Sprintf("[%d]", heads))
	}
	attrs = append(attrs, "decay="+decay, "delta="+delta)
	c := newCellOp(r, fmt.Sprintf("s: f32[%d, %d, %d]", heads, dim, vdim), "linear_recurrence", "{"+strings.Join(attrs, ", ")+"}", args...)
	c.gauge[1] = small // keys: with the delta rule, those of norm above √2 make the state grow
	copy(c.gauge[3:], gauge)
	c.call, c.start, c.row = "recurrence", int64(heads*round16(vdim)*dim), int64(row)
	return c
}

func narrow(f []float64) []float32 {
	out := make([]float32, len(f))
	for i := range f {
		out[i] = float32(f[i])
	}
	return out
}

// run calls the kernel for a step with the rows of its arguments.
func (c *cellOp) run(t *testing.T, lib map[string]uintptr, step *cStep, base []float32, rows [][]float32, out []float32, threads int) {
	cells := cCells{step: step, base: &base[0], start: c.start, row: c.row}
	at := func(i int) *float32 {
		if i < 0 || i >= len(rows) {
			return nil
		}
		if rows[i] == nil {
			return &c.packed[i][0]
		}
		return &rows[i][0]
	}
	ld := func(i int) int64 {
		if i < 0 || i >= len(rows) {
			return 0
		}
		return int64(round16(c.cols[i]))
	}
	ldo := int64(round16(c.op.Results[0].Type.Cols()))
	var p any
	shape := c.op.Args[0].State.Fields[0].Shape
	switch c.call {
	case "conv":
		a := &cConv{cells: cells, x: at(0), ldx: ld(0), out: &out[0], ldo: ldo, w: at(1), ldw: ldo, bias: at(2), cols: int32(c.cols[0]), taps: 2}
		if len(shape) == 2 {
			a.taps = int32(shape[0] + 1)
		}
		if c.silu {
			a.silu = 1
		}
		p = a
	case "lru":
		p = &cLRU{cells: cells, x: at(0), ldx: ld(0), logA: at(1), lda: ld(1), out: &out[0], ldo: ldo, cols: int32(c.cols[0])}
	case "scan":
		p = &cScan{cells: cells, x: at(0), dt: at(1), b: at(2), c: at(3), ldx: ld(0), lddt: ld(1), ldb: ld(2), ldc: ld(3), a: at(4), out: &out[0], ldo: ldo,
			channels: int32(shape[0]), states: int32(shape[1])}
	case "recurrence":
		s := ops.RecurrenceShapeOf(c.op)
		word := func(attr string, words ...string) (n int32) {
			for i, w := range words {
				if c.op.Word(attr) == w {
					n = int32(i)
				}
			}
			return n
		}
		a := &cRecurrence{cells: cells, q: at(0), k: at(1), v: at(2), ldq: ld(0), ldk: ld(1), ldv: ld(2), decay: at(s.Decay - 1), lddecay: ld(s.Decay - 1), beta: at(s.Beta - 1), ldbeta: ld(s.Beta - 1),
			erase: at(s.Erase - 1), write: at(s.Write - 1), lderase: ld(s.Erase - 1), ldwrite: ld(s.Write - 1), skip: at(s.Skip - 1), out: &out[0], ldo: ldo,
			heads: int32(s.Heads), keyHeads: int32(s.KeyHeads), dim: int32(s.KeyDim), vdim: int32(s.ValueDim), scale: 0.5,
			decays: word("decay", "none", "fixed", "head", "channel"), dl: word("delta", "none", "rule", "vectors")}
		if f := c.op.Floats("slopes"); len(f) > 0 {
			a.slopes, a.slopeScale = &narrow(f)[0], 0.5
		}
		p = a
	}
	over, _, _ := purego.SyscallN(lib[c.call], reflect.ValueOf(p).Pointer(), uintptr(threads))
	runtime.KeepAlive(p) // and what it refers to
	if int32(over) != 0 {
		t.Errorf("%s wrote %d floats behind its scratch", c.call, int32(over))
	}
}
