package interp_test

import (
	"math"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
)

const translator = `module m {
  weight @embed : f32[32, 8] from "embed"
  weight @q[2] : f32[8, 8] from "l.{i}.q"
  weight @k[2] : f32[8, 8] from "l.{i}.k"
  weight @v[2] : f32[8, 8] from "l.{i}.v"
  weight @xq[2] : f32[8, 8] from "l.{i}.xq"
  weight @xk[2] : f32[8, 8] from "l.{i}.xk"
  weight @xv[2] : f32[8, 8] from "l.{i}.xv"
  state %enc[2] : rows {k: f64[2, 4], v: f64[2, 4]} paged 64 source
  state %cross[2] : rows {k: f64[2, 4], v: f64[2, 4]} paged 64 source
  state %kv[2] : rows {k: f64[2, 4], v: f64[2, 4]} paged 64
  graph encode (T tokens) {
    input %ids : i32[T]
    input %pos : i32[T]
    %s = sinusoid %pos {dim=8}
    %e = embed %ids, @embed
    %x0 = add %e, %s
    %y = repeat 0..2 (%x = %x0) {
      %qs = matmul %x, @q
      %ks = matmul %x, @k
      %vs = matmul %x, @v
      kv_append %enc, %ks, %vs
      %a = attention %qs, %enc {heads=2, kv_heads=2}
      %r = add %x, %a
      yield %r
    }
    %hidden = repeat 0..2 (%h = %y) {
      %kx = matmul %h, @xk
      %vx = matmul %h, @xv
      kv_append %cross, %kx, %vx
      yield %h
    }
    yield %hidden
  }
  graph decode (T tokens) {
    input %ids : i32[T]
    input %pos : i32[T]
    %s = sinusoid %pos {dim=8}
    %e = embed %ids, @embed
    %x0 = add %e, %s
    %y = repeat 0..2 (%x = %x0) {
      %qs = matmul %x, @q
      %ks = matmul %x, @k
      %vs = matmul %x, @v
      kv_append %kv, %ks, %vs
      %a = attention %qs, %kv {heads=2, kv_heads=2, causal}
      %x1 = add %x, %a
      %qx = matmul %x1, @xq
      %c = attention %qx, %cross {heads=2, kv_heads=2, cross}
      %x2 = add %x1, %c
      yield %x2
    }
    yield %y
  }
}
`

func runGraph(t *testing.T, m *ir.Module, graph string, s interp.Step, w interp.Weights, st *interp.States) *tensor.Tensor {
	t.Helper()
	out, err := interp.Run(m, graph, &s, w, st)
	if err != nil {
		t.Fatal(err)
	}
	return out[0]
}

// TestEncoderDecoder compares an encoder-decoder with an independent computation layer by
// layer.
func TestEncoderDecoder(t *testing.T) {
	t.Parallel()
	m := parse(t, translator)
	w := random(t, m)
	src, tgt := []int{7, 3, 9, 30}, []int{2, 5, 11}
	weight := func(name string, index ...int) *tensor.Tensor {
		x, err := w.Weight(m.Weight(name), index)
		if err != nil {
			t.Fatal(err)
		}
		return x
	}
	linear := func(x *tensor.Tensor, name string, layer int) *tensor.Tensor {
		out := tensor.New(tensor.F32, x.Shape[0], 8)
		for i := range out.F {
			for k := range 8 {
				out.F[i] += x.At(i/8, k) * weight(name, layer).At(i%8, k)
			}
		}
		return out
	}
	first := func(ids []int) *tensor.Tensor { return embedded(weight("embed"), ids) }
	attended := func(x, rows *tensor.Tensor, prefix string, layer int, see func(t, u int) bool) *tensor.Tensor {
		none := func(h, t, u int) float64 { return 0 }
		y := attend(linear(x, prefix+"q", layer), linear(rows, prefix+"k", layer), linear(rows, prefix+"v", layer), 2, 2, 0.5, 0, see, none, nil)
		out := x.Clone()
		for i := range out.F {
			out.F[i] += y[i]
		}
		return out
	}
	all := func(t, u int) bool { return true }
	hidden := first(src)
	for layer := range 2 {
		hidden = attended(hidden, hidden, "", layer, all)
	}
	want := first(tgt)
	for layer := range 2 {
		want = attended(want, want, "", layer, func(t, u int) bool { return u <= t })
		want = attended(want, hidden, "x", layer, all)
	}

	st := interp.NewStates()
	same(t, "encoded", runGraph(t, m, "encode", interp.Step{IDs: src}, w, st).F, hidden.F, 1e-6)
	if st.SourceLen(0) != 4 || st.Len(0) != 0 {
		t.Errorf("after encoding: %d rows of the source and %d of the sequence, expected 4 and 0", st.SourceLen(0), st.Len(0))
	}
	same(t, "first token", runGraph(t, m, "decode", interp.Step{IDs: tgt[:1]}, w, st).F, want.F[:8], 1e-6)
	same(t, "next tokens", runGraph(t, m, "decode", interp.Step{IDs: tgt[1:]}, w, st).F, want.F[8:], 1e-6)
	if st.SourceLen(0) != 4 || st.Len(0) != 3 {
		t.Errorf("after decoding: %d rows of the source and %d of the sequence, expected 4 and 3", st.SourceLen(0), st.Len(0))
	}
}

// embedded returns the first layer's input: embeddings plus sines and cosines.
func embedded(table *tensor.Tensor, ids []int) *tensor.Tensor {
	out := tensor.New(tensor.F32, len(ids), 8)
	for p, id := range ids {
		for c := range 4 {
			angle := float64(p) * math.Pow(10000, -float64(c)/3)
			out.F[p*8+c] = table.At(id, c) + math.Sin(angle)
			out.F[p*8+4+c] = table.At(id, 4+c) + math.Cos(angle)
		}
	}
	return out
}

// TestSourcesOfSequences checks that sequences see only their own sources, encoded in one
// batch or separately, and that encoding a source again replaces the old one.
func TestSourcesOfSequences(t *testing.T) {
	t.Parallel()
	m := parse(t, translator)
	w := random(t, m)
	alone := func(src, tgt []int) []float64 {
		st := interp.NewStates()
		runGraph(t, m, "encode", interp.Step{IDs: src}, w, st)
		return runGraph(t, m, "decode", interp.Step{IDs: tgt}, w, st).F
	}
	st := interp.NewStates()
	runGraph(t, m, "encode", interp.Step{IDs: []int{7, 1, 3, 9}, Seq: []int{4, 6, 4, 4}}, w, st)
	got := runGraph(t, m, "decode", interp.Step{IDs: []int{2, 2, 5}, Seq: []int{4, 6, 6}}, w, st).F
	same(t, "sequence 4", got[:8], alone([]int{7, 3, 9}, []int{2}), 1e-12)
	same(t, "sequence 6", got[8:], alone([]int{1}, []int{2, 5}), 1e-12)

	runGraph(t, m, "encode", interp.Step{IDs: []int{8, 1}, Seq: []int{4, 4}}, w, st)
	if st.SourceLen(4) != 2 || st.SourceLen(6) != 1 {
		t.Errorf("sources have %d and %d rows, expected 2 and 1", st.SourceLen(4), st.SourceLen(6))
	}
	st.Truncate(4, 0)
	same(t, "another source", runGraph(t, m, "decode", interp.Step{IDs: []int{2}, Seq: []int{4}}, w, st).F, alone([]int{8, 1}, []int{2}), 1e-12)

	_, err := interp.Run(m, "decode", &interp.Step{IDs: []int{2}, Seq: []int{9}}, w, st)
	if err == nil || !strings.Contains(err.Error(), "sequence 9, position 0) sees no row of %cross[0]") {
		t.Errorf("decoding without a source: error is %v", err)
	}
}

// TestLatentAttention compares a latent attention layer with its parts: one rotary key
// for all heads, concatenated to each head's own part, and keys wider than values.
func TestLatentAttention(t *testing.T) {
	t.Parallel()
	m := parse(t, `module m {
state %kv : rows {k: f64[2, 6], v: f64[2, 3]} paged 64
graph g (T tokens) {
input %pos : i32[T]
input %q : f32[T, 12]
input %kvb : f32[T, 14]
input %kr : f32[T, 2]
%cs = rope_table %pos {dim=2}
%qr = rope %q, %cs {heads=2, offset=4, pairs=adjacent}
%krr = rope %kr, %cs {heads=1, pairs=adjacent}
%kn = head_cols %kvb {heads=2, lo=0, hi=4}
%v = head_cols %kvb {heads=2, lo=4, hi=7}
%k = join_heads %kn, %krr {heads=2}
kv_append %kv, %k, %v
%a = attention %qr, %kv {heads=2, kv_heads=2, causal}
yield %a
}
}
`)
	const n = 5
	q, kvb, kr := noise(5, n, 12), noise(6, n, 14), noise(7, n, 2)
	turned := func(x []float64, p int) []float64 {
		sin, cos := math.Sincos(float64(p))
		return []float64{x[0]*cos - x[1]*sin, x[1]*cos + x[0]*sin}
	}
	qt, k, v := q.Clone(), tensor.New(tensor.F32, n, 12), tensor.New(tensor.F32, n, 6)
	for p := range n {
		for h := range 2 {
			copy(qt.F[p*12+h*6+4:], turned(q.F[p*12+h*6+4:], p))
			copy(k.F[p*12+h*6:], kvb.F[p*14+h*7:][:4])
			copy(k.F[p*12+h*6+4:], turned(kr.F[p*2:], p))
			copy(v.F[p*6+h*3:], kvb.F[p*14+h*7+4:][:3])
		}
	}
	causal := func(t, u int) bool { return u <= t }
	want := attend(qt, k, v, 2, 2, 1/math.Sqrt(6), 0, causal, func(h, t, u int) float64 { return 0 }, nil)
	got := run(t, m, interp.Step{Pos: []int{0, 1, 2, 3, 4}, Extra: map[string]*tensor.Tensor{"q": q, "kvb": kvb, "kr": kr}}, random(t, m), nil)
	same(t, "latent attention", got.F, want, 1e-12)
}
