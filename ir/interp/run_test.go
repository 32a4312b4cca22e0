package interp_test

import (
	"math"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

func parse(t *testing.T, text string) *ir.Module {
	t.Helper()
	m, err := ir.Parse("test.ir", []byte(text), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	if err := ir.Verify(m); err != nil {
		t.Fatal(err)
	}
	return m
}

func random(t *testing.T, m *ir.Module) interp.Weights {
	t.Helper()
	src, err := interp.Random(1, m)
	if err != nil {
		t.Fatal(err)
	}
	return interp.NewWeights(m, src)
}

func run(t *testing.T, m *ir.Module, s interp.Step, w interp.Weights, st *interp.States) *tensor.Tensor {
	t.Helper()
	out, err := interp.Run(m, m.Graphs[0].Name, &s, w, st)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

func same(t *testing.T, what string, got, want []float64, tol float64) {
	t.Helper()
	if len(got) != len(want) {
		t.Fatalf("%s: %d numbers, expected %d", what, len(got), len(want))
	}
	for i := range got {
		if d := math.Abs(got[i] - want[i]); !(d <= tol) {
			t.Fatalf("%s: entry %d is %g, expected %g", what, i, got[i], want[i])
		}
	}
}

const llama = `module llama {
  weight @embed : f16[32, 8] from "embed"
  weight @norm[2] : f32[8] from "l.{i}.norm"
  weight @wq[2] : f32[8, 8] from "l.{i}.q"
  weight @wk[2] : f32[4, 8] from "l.{i}.k"
  weight @wv[2] : f32[4, 8] from "l.{i}.v"
  weight @wo[2] : f32[8, 8] from "l.{i}.o"
  state %kv[2] : rows {k: f16[1, 4], v: f16[1, 4]} paged 64
  graph decode (T tokens, R out_rows, S sequences) {
    input %ids : i32[T]
    input %pos : i32[T]
    input %out_rows : i32[R]
    %cs = rope_table %pos {dim=4}
    %x0 = embed %ids, @embed
    %xn = repeat 0..2 (%x = %x0) {
      %h = rmsnorm %x, @norm {eps=1e-05}
      %q = matmul %h, @wq
      %k = matmul %h, @wk
      %v = matmul %h, @wv
      %qr = rope %q, %cs {heads=2}
      %kr = rope %k, %cs {heads=1}
      kv_append %kv, %kr, %v
      %a = attention %qr, %kv {heads=2, kv_heads=1, causal, window=[3, 0]}
      %o = matmul %a, @wo
      %x1 = add %x, %o
      yield %x1
    }
    %last = rows %xn, %out_rows
    %logits = matmul %last, @embed
    yield %logits
  }
}
`

// TestChunksAndBatches checks that a sequence has the same logits in one step, token by
// token, in chunks, and in a batch with other sequences.
func TestChunksAndBatches(t *testing.T) {
	m := parse(t, llama)
	w := random(t, m)
	ids := []int{3, 1, 4, 1, 5, 9}
	whole := run(t, m, interp.Step{IDs: ids}, w, nil)
	st := interp.NewStates()
	for i, id := range ids {
		one := run(t, m, interp.Step{IDs: []int{id}}, w, st)
		same(t, "one token", one.F, whole.F[i*32:(i+1)*32], 1e-12)
	}
	st.Truncate(0, 2)
	tail := run(t, m, interp.Step{IDs: ids[2:], OutRows: []int{3}}, w, st)
	same(t, "after truncation", tail.F, whole.F[5*32:], 1e-12)

	st = interp.NewStates()
	run(t, m, interp.Step{IDs: []int{3, 7, 1, 7}, Seq: []int{5, 8, 5, 8}}, w, st)
	mixed := run(t, m, interp.Step{IDs: []int{7, 4, 1}, Seq: []int{8, 5, 5}, OutRows: []int{2}}, w, st)
	same(t, "beside another", mixed.F, whole.F[3*32:4*32], 1e-12)
}

// TestTree checks that the branches of a speculation tree see only their ancestors.
func TestTree(t *testing.T) {
	m := parse(t, llama)
	w := random(t, m)
	st := interp.NewStates()
	run(t, m, interp.Step{IDs: []int{3, 1}}, w, st)
	tree := interp.Step{
		IDs: []int{4, 6, 1}, Pos: []int{2, 2, 3}, Slot: []int{2, 3, 4},
		Mask: [][]bool{{true, false, false}, {false, true, false}, {false, true, true}},
	}
	got := run(t, m, tree, w, st)
	left := run(t, m, interp.Step{IDs: []int{3, 1, 4}}, w, nil)
	right := run(t, m, interp.Step{IDs: []int{3, 1, 6, 1}}, w, nil)
	same(t, "left branch", got.F[:32], left.F[2*32:], 1e-12)
	same(t, "right branch", got.F[32:], right.F[2*32:], 1e-12)
}

// TestLongRopeBySequence checks that the length of a token's own sequence, not that of
// others in the batch, selects short or long rotary frequencies.
func TestLongRopeBySequence(t *testing.T) {
	t.Parallel()
	m := parse(t, `module m {
graph g (T tokens) {
input %pos : i32[T]
%t = rope_table %pos {dim=2, freqs=[1], long_freqs=[0.5], long_from=3}
yield %t
}
}
`)
	got := run(t, m, interp.Step{Pos: []int{0, 1, 2, 0, 1, 2, 3}, Seq: []int{0, 0, 0, 1, 1, 1, 1}}, nil, nil)
	same(t, "short", got.F[4:6], []float64{math.Cos(2), math.Sin(2)}, 0)
	same(t, "long", got.F[10:12], []float64{math.Cos(1), math.Sin(1)}, 0)
}
