package interp_test

import (
	"testing"

	"github.com/iflowc/iflowc/ir/interp"
)

const parHead = `module m {
weight @embed : f32[16, 8] from "embed"
weight @wq[2] : f32[8, 8] from "l.{i}.q"
weight @wk[2] : f32[8, 8] from "l.{i}.k"
weight @wv[2] : f32[8, 8] from "l.{i}.v"
weight @wo[2] : f32[8, 8] from "l.{i}.o"
weight @bo[2] : f32[8] from "l.{i}.bo"
`

const parWhole = parHead + `state %kv[2] : rows {k: f16[2, 4], v: f16[2, 4]} paged 64
graph g (T tokens) {
input %ids : i32[T]
%x = embed %ids, @embed
%y = repeat 0..2 (%c = %x) {
%q = matmul %c, @wq
%k = matmul %c, @wk
%v = matmul %c, @wv
kv_append %kv, %k, %v
%a = attention %q, %kv {heads=2, kv_heads=2, causal}
%o = matmul %a, @wo
%b = add %o, @bo
%r = add %b, %c
yield %r
}
yield %y
}
}
`

const parSplit = parHead + `weight @wqp[2, 2] : f32[4, 8] from part_rows(@wq, 2)
weight @wkp[2, 2] : f32[4, 8] from part_rows(@wk, 2)
weight @wvp[2, 2] : f32[4, 8] from part_rows(@wv, 2)
weight @wop[2, 2] : f32[8, 4] from part_cols(@wo, 2)
weight @wop2[2, 2] : f32[4, 8] from part_rows(@wo, 2)
state %kvp[2, 2] : rows {k: f16[1, 4], v: f16[1, 4]} paged 64
graph g (T tokens) {
input %ids : i32[T]
%x = embed %ids, @embed
%y = repeat 0..2 (%c = %x) {
%p = par 2 {
%q = matmul %c, @wqp
%k = matmul %c, @wkp
%v = matmul %c, @wvp
kv_append %kvp, %k, %v
%a = attention %q, %kvp {heads=1, kv_heads=1, causal}
%o = matmul %a, @wop
%s = all_reduce %o
%b = add %s, @bo
%r = add %b, %c
yield %r
}
yield %p
}
yield %y
}
}
`

const parGathered = parHead + `weight @wop2[2, 2] : f32[4, 8] from part_rows(@wo, 2)
graph g (T tokens) {
input %ids : i32[T]
%x = embed %ids, @embed
%y = repeat 0..2 (%c = %x) {
%p = par 2 {
%o = matmul %c, @wop2
%s = all_gather %o {ranks=2}
yield %s
}
yield %p
}
yield %y
}
}
`

const parPlain = parHead + `graph g (T tokens) {
input %ids : i32[T]
%x = embed %ids, @embed
%y = repeat 0..2 (%c = %x) {
%o = matmul %c, @wo
yield %o
}
yield %y
}
}
`

// TestParEqualsWhole checks that a layer partitioned over two ranks by heads, with the
// residual after the all-reduce, equals the whole layer.
func TestParEqualsWhole(t *testing.T) {
	t.Parallel()
	whole := parse(t, parWhole)
	split := parse(t, parSplit)
	gathered := parse(t, parGathered)
	plain := parse(t, parPlain)
	w := random(t, whole)
	sw, ss := interp.NewStates(), interp.NewStates()
	for _, ids := range [][]int{{3, 1, 4}, {1}, {5, 9}} {
		want := run(t, whole, interp.Step{IDs: ids}, w, sw)
		got := run(t, split, interp.Step{IDs: ids}, random(t, split), ss)
		same(t, "two ranks", got.F, want.F, 1e-12)
	}
	want := run(t, plain, interp.Step{IDs: []int{1, 2}}, random(t, plain), nil)
	same(t, "gathered columns", run(t, gathered, interp.Step{IDs: []int{1, 2}}, random(t, gathered), nil).F, want.F, 1e-12)
}
