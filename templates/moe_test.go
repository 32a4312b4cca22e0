package templates

import (
	"math"
	"math/rand/v2"
	"runtime"
	"testing"
	"unsafe"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// moeShim runs the experts of a flat description on a pool, each thread with
// the memory that the contract gives it and guards behind.
const moeShim = `
#include "ifl_heads.h"
#include "ifl_moe.h"
#include "ifl_pool.h"
#include <stdlib.h>
typedef struct {
  ifl_pool *pool;
  int32_t rows, experts, top_k, in, hidden, act, d, f, threads, bad;
  float limit, alpha;
  const float *x, *route;
  float *out;
  int64_t ldx, ldr, ldo;
  const uint8_t *w[3];
  const float *bias[3];
  int64_t bytes[3];
  ifl_impl impls[3];
  const uint8_t *choice[3];
} job;
enum { GUARD = 64 };
typedef struct { const job *j; uint8_t *shared; int *bad; } run;
static ifl_expert_matrix matrix_of(const job *j, int i, int n, int k) {
  ifl_expert_matrix m = {.n = n, .k = k, .impls = j->impls, .choice = j->choice[i], .w = j->w[i], .stride = j->bytes[i],
                         .panel = j->bytes[i] / ((n + 15) / 16), .bias = j->bias[i], .bias_stride = (n + 15) & ~15};
  return m;
}
static uint8_t *room(int64_t n) {
  uint8_t *p = aligned_alloc(64, (size_t)ifl_round64(n + GUARD));
  memset(p, 0xff, (size_t)ifl_round64(n + GUARD));
  return p;
}
static int intact(const uint8_t *p, int64_t n) {
  for (int64_t i = n; i < n + GUARD; i++) if (p[i] != 0xff) return 0;
  return 1;
}
static void worker(void *arg, int tid, int threads) {
  run *r = arg;
  const job *j = r->j;
  const int64_t y = (int64_t)2 * j->rows * 64 * 4, mm = (int64_t)(j->d > j->f ? j->d : j->f) * IFL_MM_SCRATCH_PER_K + 4096;
  ifl_experts p = {.pool = j->pool, .tid = tid, .threads = threads, .rows = j->rows, .experts = j->experts, .top_k = j->top_k, .x = j->x, .ldx = j->ldx,
                   .route = j->route, .ldr = j->ldr, .out = j->out, .ldo = j->ldo, .act_in = (ifl_act_kind)j->in, .act_hidden = (ifl_act_kind)j->hidden,
                   .gate = matrix_of(j, 0, j->f, j->d), .up = matrix_of(j, 1, j->f, j->d), .down = matrix_of(j, 2, j->d, j->f),
                   .act = (ifl_expert_act)j->act, .limit = j->limit, .alpha = j->alpha, .shared = r->shared, .y = (float *)room(y), .mm = room(mm)};
  ifl_run_experts(&p);
  if (!intact((uint8_t *)p.y, y) || !intact(p.mm, mm)) *r->bad = 1;
  free(p.y);
  free(p.mm);
}
void shim_experts(job *j);
void shim_experts(job *j) {
  const int64_t n = ifl_experts_bytes(j->rows, j->experts, j->top_k, j->d, j->f, (ifl_act_kind)j->in, (ifl_act_kind)j->hidden);
  int bad = 0;
  run r = {j, room(n), &bad};
  ifl_pool_run(j->pool, worker, &r);
  j->bad = bad | !intact(r.shared, n);
  free(r.shared);
}
typedef struct { int32_t n, k, score, norm, groups, top_groups, top2; float scale; const float *logits, *bias; float *out; } routing;
void shim_route(const routing *r);
void shim_route(const routing *r) {
  ifl_row_route(r->out, r->logits, r->bias, r->n, r->k, (ifl_route_score)r->score, r->norm, r->scale, r->groups, r->top_groups, r->top2, NULL);
}
void shim_mixer(float *out, const float *logits, int n);
void shim_mixer(float *out, const float *logits, int n) { ifl_row_sparsemixer(out, logits, n, 0.05f, 1.5f); }
void shim_join(float *out, const float *a, const float *b, int heads, int wa, int wb, int b_heads);
void shim_join(float *out, const float *a, const float *b, int heads, int wa, int wb, int b_heads) { ifl_row_join_heads(out, a, b, heads, wa, wb, b_heads); }
void shim_cols(float *out, const float *x, int heads, int width, int lo, int n);
void shim_cols(float *out, const float *x, int heads, int width, int lo, int n) { ifl_row_head_cols(out, x, heads, width, lo, n); }
void shim_sinusoid(float *out, int pos, const double *f, int half, int divide, int pairs);
void shim_sinusoid(float *out, int pos, const double *f, int half, int divide, int pairs) { ifl_row_sinusoid(out, pos, f, half, divide, pairs); }
`

// cExperts and cRouting are the shim's job and routing.
type cExperts struct {
	pool                                                   uintptr
	rows, experts, topK, in, hidden, act, d, f, tasks, bad int32
	limit, alpha                                           float32
	x, route, out                                          *float32
	ldx, ldr, ldo                                          int64
	w                                                      [3]*byte
	bias                                                   [3]*float32
	bytes                                                  [3]int64
	impls                                                  [3]cImpl
	choice                                                 [3]*byte
}

// cImpl is ifl_impl.
type cImpl struct {
	run  uintptr
	tile int32
}

type cRouting struct {
	n, k, score, norm, groups, topGroups, top2 int32
	scale                                      float32
	logits, bias, out                          *float32
}

var (
	routeScores = []string{"softmax", "sigmoid", "sqrtsoftplus", "softmax_topk"}
	expertActs  = []string{"silu", "gelu", "gelu_tanh", "relu", "relu2", "swiglu_oai"}
	actKinds    = []string{"f32", "a8_b32", "a8_b64", "bf16", "a8_b16"}
)

// moeTypes are the weight types of the tests of experts: one of each kind of
// activations, and both plain ones.
func moeTypes(isa ISA) []tensor.DType {
	if irtest.All() || isa.Name == runnable()[0].Name {
		return []tensor.DType{tensor.F32, tensor.F16, tensor.Q8B32T2, tensor.Q4B64, tensor.Q6B16T2}
	}
	return []tensor.DType{tensor.Q4B64}
}

type moeLib struct {
	lib   uintptr
	impls map[tensor.DType][]*Kernel
	pools [4]uintptr
}

func openMoE(t *testing.T, cc string, isa ISA) *moeLib {
	m := &moeLib{impls: map[tensor.DType][]*Kernel{}}
	sources := map[string]string{"pool": ThreadPool(), "moe": moeShim}
	for _, dt := range moeTypes(isa) {
		for _, k := range load1(t).Candidates("matmul", dt) {
			if k.Impl == "gemm" && !irtest.All() {
				continue // takes long to compile, and has the tiles of flat_gemm
			}
			sources[k.Symbol(dt)] = source(t, k, dt, isa.Name)
			m.impls[dt] = append(m.impls[dt], k)
		}
	}
	m.lib = library(t, cc, isa, sources)
	open, closePool := symbol(t, m.lib, "ifl_pool_open"), symbol(t, m.lib, "ifl_pool_close")
	for n := 1; n < len(m.pools); n++ {
		if m.pools[n], _, _ = purego.SyscallN(open, uintptr(n), 0); m.pools[n] == 0 {
			t.Fatalf("a pool of %d did not start", n)
		}
		t.Cleanup(func() { purego.SyscallN(closePool, m.pools[n]) })
	}
	return m
}

// attrsOf makes attributes of names and values.
func attrsOf(pairs ...any) ir.Attrs {
	var a ir.Attrs
	for i := 0; i < len(pairs); i += 2 {
		a.Set(pairs[i].(string), pairs[i+1])
	}
	return a
}

// evalOp is the interpreter's result of an op on matrices.
func evalOp(t *testing.T, def *ir.OpDef, attrs ir.Attrs, in ...*tensor.Tensor) []float64 {
	t.Helper()
	o := &ir.Op{Def: def, Attrs: attrs}
	for _, x := range in {
		v := &ir.Value{Name: "x", Kind: ir.Input}
		v.Type.Elem = x.DType
		for _, n := range x.Shape[max(0, len(x.Shape)-2):] {
			v.Type.Shape = append(v.Type.Shape, ir.N(n))
		}
		o.Args = append(o.Args, ir.A(v))
	}
	out, err := def.Eval(o, in)
	if err != nil {
		t.Fatal(err)
	}
	return out[0].F
}

func wide(x []float32) []float64 {
	out := make([]float64, len(x))
	for i, v := range x {
		out[i] = float64(v)
	}
	return out
}

func ten(f []float64, shape ...int) *tensor.Tensor {
	return &tensor.Tensor{DType: tensor.F32, Shape: shape, F: f}
}

// TestMoE compares the headers of experts, routing and heads with the
// interpreter.
func TestMoE(t *testing.T) {
	t.Parallel()
	onEach(t, func(t *testing.T, cc string, isa ISA) {
		m := openMoE(t, cc, isa)
		r := rand.New(rand.NewPCG(5, 5))
		for range 400 {
			m.checkRoute(t, r)
			m.checkMixer(t, r)
		}
		m.checkHeads(t, r)
		cases := len(expertActs)
		if irtest.All() {
			cases = 40
		}
		for _, dt := range moeTypes(isa) {
			for n := range cases {
				c := randomMoE(r, dt, expertActs[n%len(expertActs)])
				t.Run(c.String(), func(t *testing.T) { c.check(t, m) })
			}
		}
	})
}

// checkRoute draws logits, half of the time with many equal ones.
func (m *moeLib) checkRoute(t *testing.T, r *rand.Rand) {
	t.Helper()
	size, groups := 2+r.IntN(9), 1+r.IntN(8)
	n := size * groups
	top := 1 + r.IntN(groups)
	k := 1 + r.IntN(min(size*top, 12))
	score := r.IntN(3)
	if score == 2 || r.IntN(2) == 0 {
		groups, top = 0, 0
	}
	logits, bias := normal(r, n, 2), normal(r, n, 0.3)
	if r.IntN(2) == 0 {
		for i := range logits {
			logits[i], bias[i] = float32(math.Round(float64(logits[i]))), float32(math.Round(float64(bias[i])))
		}
	}
	top2, norm, biased := r.IntN(2) == 0, r.IntN(2) == 0, r.IntN(2) == 0
	c := &cRouting{n: int32(n), k: int32(k), score: int32(score), groups: int32(groups), topGroups: int32(top), scale: 1.5, logits: &logits[0]}
	a := attrsOf("top_k", k, "score", routeScores[score], "norm", norm, "scale", 1.5, "groups", groups, "top_groups", top, "group_score", "max")
	in := []*tensor.Tensor{ten(wide(logits), 1, n)}
	if top2 {
		a.Set("group_score", "top2")
		c.top2 = 1
	}
	if norm {
		c.norm = 1
	}
	if biased {
		c.bias = &bias[0]
		in = append(in, ten(wide(bias), n))
	}
	got := make([]float32, n)
	c.out = &got[0]
	purego.SyscallN(symbol(t, m.lib, "shim_route"), uintptr(unsafe.Pointer(c)))
	runtime.KeepAlive(c)
	for e, want := range evalOp(t, ops.Route, a, in...) {
		if g := float64(got[e]); (g == 0) != (want == 0) || !(math.Abs(g-want) <= 2e-6*math.Abs(want)) {
			t.Fatalf("route of %v with bias %v %v (%v): expert %d has %g, want %g", logits, biased, bias, a, e, g, want)
		}
	}
}

// checkMixer draws logits, half of the time with many equal ones.
func (m *moeLib) checkMixer(t *testing.T, r *rand.Rand) {
	t.Helper()
	logits := normal(r, 2+r.IntN(14), 2)
	if r.IntN(2) == 0 {
		for i := range logits {
			logits[i] = float32(math.Round(float64(logits[i])))
		}
	}
	got := make([]float32, len(logits))
	purego.SyscallN(symbol(t, m.lib, "shim_mixer"), uintptr(unsafe.Pointer(&got[0])), uintptr(unsafe.Pointer(&logits[0])), uintptr(len(logits)))
	a := attrsOf("top_k", 2, "score", "sparsemixer", "jitter", 0.05, "scale", 1.5)
	for e, want := range evalOp(t, ops.Route, a, ten(wide(logits), 1, len(logits))) {
		if g := float64(got[e]); (g == 0) != (want == 0) || !(math.Abs(g-want) <= 2e-6*math.Abs(want)) {
			t.Fatalf("sparsemixer of %v: expert %d has %g, want %g", logits, e, g, want)
		}
	}
}

func (m *moeLib) checkHeads(t *testing.T, r *rand.Rand) {
	t.Helper()
	const heads, wa, wb = 3, 20, 7
	a, b := normal(r, heads*wa, 1), normal(r, heads*wb, 1)
	same := func(what string, got []float32, want []float64) {
		t.Helper()
		for i, w := range want {
			if float64(got[i]) != float64(float32(w)) {
				t.Fatalf("%s: column %d is %g, want %g", what, i, got[i], w)
			}
		}
	}
	for _, n := range []int{1, heads} {
		got := make([]float32, heads*(wa+wb))
		purego.SyscallN(symbol(t, m.lib, "shim_join"), address(got), address(a), address(b), heads, wa, wb, uintptr(n))
		same("join_heads", got, evalOp(t, ops.JoinHeads, attrsOf("heads", heads, "b_heads", n), ten(wide(a), 1, heads*wa), ten(wide(b[:n*wb]), 1, n*wb)))
	}
	got := make([]float32, heads*9)
	purego.SyscallN(symbol(t, m.lib, "shim_cols"), address(got), address(a), heads, wa, 4, 9)
	same("head_cols", got, evalOp(t, ops.HeadCols, attrsOf("heads", heads, "lo", 4, "hi", 13), ten(wide(a), 1, heads*wa)))
	for i := range 4 {
		m.checkSinusoid(t, []string{"half_minus_1", "dim"}[i%2], []string{"half", "pairs"}[i/2])
	}
}

func (m *moeLib) checkSinusoid(t *testing.T, exponent, layout string) {
	t.Helper()
	const dim, offset = 40, 2
	a := attrsOf("dim", dim, "offset", offset, "layout", layout, "exponent", exponent)
	var f []float64
	for c, v := range ops.SinusoidFreqs(&ir.Op{Def: ops.Sinusoid, Attrs: a}) {
		if exponent == "dim" {
			f = append(f, math.Pow(10000, 2*float64(c)/dim))
		} else {
			f = append(f, float64(v))
		}
	}
	flag := map[string]uintptr{"dim": 1, "pairs": 1}
	for _, pos := range []int{0, 1, 7, 511, 130000} {
		got := make([]float32, dim)
		purego.SyscallN(symbol(t, m.lib, "shim_sinusoid"), address(got), uintptr(pos+offset), address(f), dim/2, flag[exponent], flag[layout])
		want := evalOp(t, ops.Sinusoid, a, &tensor.Tensor{DType: tensor.I32, Shape: []int{1}, F: []float64{float64(pos)}})
		for i, w := range want {
			if math.Abs(float64(got[i])-w) > 1e-7 {
				t.Fatalf("sinusoid %s %s at %d: column %d is %g, want %g", exponent, layout, pos, i, got[i], w)
			}
		}
	}
}
