package templates

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
)

// attentionShim calls a kernel on every worker of a pool, and the inline
// functions of ifl_kv.h and ifl_attn.h.
const attentionShim = `
#include "ifl_attn.h"
#include "ifl_pool.h"
typedef struct { const ifl_attention *a; void (*kernel)(const ifl_attention *); } job;
static void worker(void *p, int tid, int threads) {
  job *j = p;
  ifl_attention a = *j->a;
  a.tid = tid, a.threads = threads;
  j->kernel(&a);
}
void shim_run(ifl_pool *pool, void (*kernel)(const ifl_attention *), const ifl_attention *a);
void shim_run(ifl_pool *pool, void (*kernel)(const ifl_attention *), const ifl_attention *a) {
  job j = {a, kernel};
  ifl_pool_run(pool, worker, &j);
}
int64_t shim_scratch(int threads, int tokens, int heads, int dim, int vdim, int pages);
int64_t shim_scratch(int threads, int tokens, int heads, int dim, int vdim, int pages) {
  return ifl_attention_scratch(threads, tokens, heads, dim, vdim, pages);
}
int64_t shim_page_bytes(int kv_heads, int dim, int vdim, int elem_bytes);
int64_t shim_page_bytes(int kv_heads, int dim, int vdim, int elem_bytes) {
  if (elem_bytes < 0) return ifl_kv_page_bytes_q4_b32t2(kv_heads, dim, vdim);
  return elem_bytes ? ifl_kv_page_bytes(kv_heads, dim, vdim, elem_bytes) : ifl_kv_page_bytes_q8_b32t2(kv_heads, dim, vdim);
}
typedef struct { int32_t type, slot, seq, head, kv_heads, dim, vdim; const float *k, *v; } put;
void shim_put(const ifl_step *s, uint8_t *state, const put *p);
void shim_put(const ifl_step *s, uint8_t *state, const put *p) {
  static const int bytes[] = {4, 2, 2, 0, -1};
  uint8_t *page = state + ifl_kv_page(s, p->seq, p->slot) * shim_page_bytes(p->kv_heads, p->dim, p->vdim, bytes[p->type]);
  int row = p->slot % IFL_PAGE_ROWS;
  if (p->type == 0) ifl_kv_put_f32(page, row, p->head, p->kv_heads, p->dim, p->vdim, p->k, p->v);
  if (p->type == 1) ifl_kv_put_f16(page, row, p->head, p->kv_heads, p->dim, p->vdim, p->k, p->v);
  if (p->type == 2) ifl_kv_put_bf16(page, row, p->head, p->kv_heads, p->dim, p->vdim, p->k, p->v);
  if (p->type == 3) ifl_kv_put_q8_b32t2(page, row, p->head, p->kv_heads, p->dim, p->vdim, p->k, p->v);
  if (p->type == 4) ifl_kv_put_q4_b32t2(page, row, p->head, p->kv_heads, p->dim, p->vdim, p->k, p->v);
}
void shim_move(uint8_t *to, int i, const uint8_t *from, int j, int kv_heads, int dim, int vdim, int type);
void shim_move(uint8_t *to, int i, const uint8_t *from, int j, int kv_heads, int dim, int vdim, int type) {
  static const int bytes[] = {4, 2, 2, 0, -1};
  ifl_kv_move(to, i, from, j, kv_heads, dim, vdim, bytes[type]);
}
void shim_convert(int n, const float *x, uint16_t *f16, uint16_t *bf16);
void shim_convert(int n, const float *x, uint16_t *f16, uint16_t *bf16) {
  for (int i = 0; i < n; i += 16) {
    ifl_store_h(f16 + i, ifl_kv_f16(ifl_load(x + i)));
    ifl_store_h(bf16 + i, ifl_kv_bf16(ifl_load(x + i)));
  }
}
`

// stateTypes are the element types of the state, in the order of shim_put.
var stateTypes = []tensor.DType{tensor.F32, tensor.F16, tensor.BF16, tensor.Q8B32T2, tensor.Q4B32T2}

// sampleStates are the types to test: the best variant with all of them, the
// others, which share the text, with f16; with IFLOWC_TEST_ALL all.
func sampleStates(isa ISA) []tensor.DType {
	if irtest.All() || isa.Name == runnable()[0].Name {
		return stateTypes
	}
	return []tensor.DType{tensor.F16}
}

// cStep, cAttention and cPut are ifl_step, ifl_attention and the shim's put.
type cStep struct {
	abi, entry, tokens, outRows, seqs, maskWords                 int32
	id, pos, seq, slot, types, outRow, first, past, pageAt, page *int32
	mask                                                         *uint64
	adapter                                                      *int32
	out                                                          [8]*float32
	xpageAt, xpage, xrows                                        *int32
	cellAt, cellFrom, cell                                       *int32
}

type cAttention struct {
	step                      *cStep
	pool                      uintptr
	tid, threads              int32
	q                         *float32
	ldq                       int64
	out                       *float32
	ldo                       int64
	state                     *byte
	pageBytes                 int64
	heads, kvHeads, dim, vdim int32
	scale, softcap            float32
	window, causal            int32
	alibi, sinks              *float32
	scratch                   *byte
	scratchBytes              int64
	rel                       *float32
	ldrel                     int64
	relBucket                 *int16
	relMax, global            int32
	relKeys                   *float32
	ldkeys                    int64
	relQueries                *float32
	ldqueries                 int64
	selected                  *float32
	lds                       int64
	top, every, lse           int32
	calib                     *float64
}

type cPut struct {
	kind, slot, seq, head, kvHeads, dim, vdim int32
	k, v                                      *float32
}

// attentionLib is the kernels of one instruction set, and pools of 1 to 4.
type attentionLib struct {
	kernels                                  map[tensor.DType]uintptr
	pools                                    [5]uintptr
	run, scratch, pageBytes, putRow, convert uintptr
	move                                     uintptr
}

func openAttention(t *testing.T, cc string, isa ISA) *attentionLib {
	c := load1(t)
	sources := map[string]string{"pool": ThreadPool(), "shim": attentionShim}
	types := sampleStates(isa)
	for _, dt := range types {
		for _, k := range c.Candidates("attention", dt) {
			sources[k.Symbol(dt)] = "#define IFL_ATTN_LONG 192 /* so that short cases have units of all heads */\n" + source(t, k, dt, isa.Name)
		}
	}
	lib := library(t, cc, isa, sources)
	a := &attentionLib{kernels: map[tensor.DType]uintptr{}}
	for _, dt := range types {
		a.kernels[dt] = symbol(t, lib, c.Candidates("attention", dt)[0].Symbol(dt))
	}
	a.run, a.scratch = symbol(t, lib, "shim_run"), symbol(t, lib, "shim_scratch")
	a.pageBytes, a.putRow = symbol(t, lib, "shim_page_bytes"), symbol(t, lib, "shim_put")
	a.convert, a.move = symbol(t, lib, "shim_convert"), symbol(t, lib, "shim_move")
	open, closePool := symbol(t, lib, "ifl_pool_open"), symbol(t, lib, "ifl_pool_close")
	for n := 1; n < len(a.pools); n++ {
		a.pools[n], _, _ = purego.SyscallN(open, uintptr(n), 0)
		if a.pools[n] == 0 {
			t.Fatalf("a pool of %d did not start", n)
		}
		t.Cleanup(func() { purego.SyscallN(closePool, a.pools[n]) })
	}
	return a
}

// TestAttention compares random cases with a float64 reference, and their
// splits over threads and steps with each other, bit by bit.
func TestAttention(t *testing.T) {
	t.Parallel()
	cases := 15
	if irtest.All() {
		cases = 400
	}
	onEach(t, func(t *testing.T, cc string, isa ISA) {
		lib := openAttention(t, cc, isa)
		lib.checkRounding(t)
		for i, dt := range stateTypes {
			if lib.kernels[dt] == 0 {
				continue
			}
			r := rand.New(rand.NewPCG(uint64(i), 11))
			for n := range cases {
				c := randomAttention(r, lib, i)
				got := c.call(lib, dt, c.whole(), 1)
				if err := c.compare(got); err != nil {
					t.Fatalf("%s case %d: %v\n%s", dt, n, err, c)
				}
				for threads := 2; threads < len(lib.pools); threads++ {
					if other := c.call(lib, dt, c.whole(), threads); !sameBits(got, other) {
						t.Fatalf("%s case %d: %d threads give other bits than one\n%s", dt, n, threads, c)
					}
				}
				if c.tree {
					if err := c.comparePaths(r, lib, dt, i, got); err != nil {
						t.Fatalf("%s case %d: %v\n%s", dt, n, err, c)
					}
				}
				if c.tree || !c.causal && !c.cross {
					continue
				}
				for _, most := range []int{1, 1 + r.IntN(20)} { // one token after the other on one thread: many short steps
					if !sameBits(got, c.inParts(r, lib, dt, most, min(4, most))) {
						t.Fatalf("%s case %d: steps of at most %d tokens give other bits than one step\n%s", dt, n, most, c)
					}
				}
			}
		}
	})
}

func sameBits(a, b []float32) bool {
	return slices.EqualFunc(a, b, func(x, y float32) bool { return math.Float32bits(x) == math.Float32bits(y) })
}

// checkRounding compares the element conversions of ifl_kv.h with the
// tensor package over the edges of both formats and random bits.
func (lib *attentionLib) checkRounding(t *testing.T) {
	r := rand.New(rand.NewPCG(3, 3))
	var bits []uint32
	for e := range uint32(256) {
		for _, m := range []uint32{0, 1, 0xfff, 0x1000, 0x1001, 0x1fff, 0x3000, 0x7fff, 0x8000, 0x8001, 0x400000, 0x7fefff, 0x7ff000, 0x7fffff} {
			bits = append(bits, e<<23|m, 1<<31|e<<23|m)
		}
	}
	for range 20000 {
		bits = append(bits, r.Uint32())
	}
	bits = bits[:len(bits)/16*16]
	f16, bf16 := make([]uint16, len(bits)), make([]uint16, len(bits))
	purego.SyscallN(lib.convert, uintptr(len(bits)), address(bits), address(f16), address(bf16))
	for i, b := range bits {
		x := math.Float32frombits(b)
		want := tensor.F32ToF16(x)
		if want&0x7fff == 0x7c00 {
			want-- // saturated
		}
		nan := x != x
		if got := f16[i]; got != want && !(nan && got&0x7fff > 0x7c00) {
			t.Fatalf("f16 of %08x (%g) is %04x, want %04x", b, x, got, want)
		}
		if got, want := bf16[i], tensor.F32ToBF16(x); got != want && !(nan && got&0x7fff > 0x7f80) {
			t.Fatalf("bf16 of %08x (%g) is %04x, want %04x", b, x, got, want)
		}
	}
}
