package ops_test

import (
	"os"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

const misfitHead = `module m {
weight @e : f32[32, 8]
weight @w : f32[8, 12]
weight @v : f32[8]
weight @v4 : f32[4]
weight @q : q4_b32[8, 32]
weight @cube : f32[2, 2, 2]
weight @eg[4] : f32[6, 8]
weight @none[4] : f32[]
weight @ed[4] : f32[8, 6]
weight @ev[4] : f32[6]
weight @eo[4] : f32[8]
weight @eb[4] : f32[8, 32]
weight @rel : f32[8, 2]
state %kv : rows {k: f32[2, 4], v: f32[2, 3]} paged 64
state %c : rows {c: f32[8]} paged 64
state %src : rows {k: f32[2, 4], v: f32[2, 3]} paged 64 source
graph g (T tokens, R out_rows) {
input %ids : i32[T]
input %pos : i32[T]
input %out_rows : i32[R]
input %act : a8_b32[T, 32]
%x = embed %ids, @e
%r = rows %x, %out_rows
%v3, %v5 = split %x {sizes=[3, 5]}
%v6 = concat %v3, %v3
%v1, %v7 = split %x {sizes=[1, 7]}
%r1, %r7 = split %r {sizes=[1, 7]}
%x4, %y4 = split %x {sizes=[4, 4]}
%t = rope_table %pos {dim=4}
`

var misfits = []struct{ stmt, want string }{
	{"%y = embed %x, @e", "%x is f32[T, 8], expected i32[rows]"},
	{"%y = embed %ids, @v", "@v is f32[8], expected [ids, columns]"},
	{"%y = rows %x, %x", "%x is f32[T, 8], expected i32[rows]"},
	{"%y = rows %ids, %out_rows", "%ids is i32[T], expected f32[rows, columns]"},
	{"%y = matmul %x, @w", "the last sizes must agree"},
	{"%y = matmul %ids, @e", "expected f32, a8_b16, a8_b32, a8_b64 or bf16"},
	{"%y = matmul %x, @cube", "the last sizes must agree"},
	{"%y = silu %act", "%act is a8_b32[T, 32], expected f32[rows, columns]"},
	{"%y = add %x, @v4", "@v4 is f32[4], expected 8 elements"},
	{"%y = add %x, %r", "they must be equal"},
	{"%y = add %v1, %x", "they must be equal; the operand with one column must be the second"},
	{"%y = add %x, %r1", "%x has T rows but %r1 has R"},
	{"%y = add %x, %v3", "they must be equal"},
	{"%y = rmsnorm %x, @v4 {eps=1}", "@v4 is f32[4], expected 8 elements"},
	{"%y = rmsnorm %x, @v {eps=1, heads=2}", "@v is f32[8], expected 4 elements"},
	{"%y = rmsnorm %x {eps=1, heads=3}", "8 columns, not divisible by heads=3"},
	{"%y = rmsnorm %x {eps=1, heads=0}", "not divisible by heads=0"},
	{"%a, %b = split %x {sizes=[4, 5]}", "sizes [4 5] with panel=0 need 9 columns but %x has 8"},
	{"%a, %b = split %x {sizes=[8, 0]}", "size 0 is not between 1 and"},
	{"%a, %b = split %x {sizes=[3, 5], panel=2}", "sizes [3 5] differ"},
	{"%a, %b = split %x {sizes=[3, 3], panel=16}", "need 32 columns"},
	{"%y = unfold %ids {before=1, after=1}", "%ids is i32[T], expected f32[rows, columns]"},
	{"%y = unfold %x {before=-1, after=1}", "before=-1 and after=1, expected 0 or more"},
	{"%y = unfold %x {before=1, after=1023}", "at most 1024 rows"},
	{"%y = concat %x, %r", "%x has T rows but %r has R"},
	{"%y = rope_table %pos {dim=5}", "dim=5, expected an even number"},
	{"%y = rope_table %pos {dim=4, freqs=[1]}", "freqs has 1 entries, expected dim/2 = 2"},
	{"%y = rope_table %pos {dim=2, long_freqs=[1]}", "long_freqs and long_from must be set together"},
	{"%y = rope %x, %t {heads=4}", "offset=0 and 4 rotated columns do not fit a head of 2"},
	{"%y = rope %x, %t {heads=2, offset=1}", "do not fit a head of 4"},
	{"%y = rope %r, %t {heads=2}", "%r has R rows but %t has T"},
	{"kv_append %kv, %x", "1 values for the 2 fields of %kv"},
	{"kv_append %kv, %x, %x", "%x has 8 columns but field v: f32[2, 3] has 6 elements"},
	{"%y = attention %x, %kv {heads=3, kv_heads=2}", "heads=3 is not a multiple of kv_heads=2"},
	{"%y = attention %x, %kv {heads=4, kv_heads=4}", "expected field k of shape [4, width]"},
	{"%y = attention %x, %c {heads=2, kv_heads=2}", "expected field k"},
	{"%y = attention %x, %kv {heads=4, kv_heads=2}", "%x has 8 columns, expected heads·head_dim = 4·4"},
	{"%y = attention %x, %kv, @e, @e {heads=2, kv_heads=2, causal, rel_keys, rel_queries, rel_buckets=8}", "neither causal nor cross"},
	{"%y = attention %x, %kv {heads=2, kv_heads=2, alibi=[1]}", "alibi has 1 slopes for 2 heads"},
	{"%y = attention %x, %kv {heads=2, kv_heads=2, window=-1}", "window or rel_buckets is negative"},
	{"%y = attention %x, %kv {heads=2, kv_heads=2, sinks}", "2 arguments, expected 3: rel_buckets, rel_keys, rel_queries, sinks and selected each require one"},
	{"%y = attention %x, %kv, @v4 {heads=2, kv_heads=2, sinks}", "@v4 is f32[4], expected 2 elements"},
	{"%y = attention %x, %kv, @rel {heads=2, kv_heads=2}", "3 arguments, expected 2: rel_buckets"},
	{"%y = attention %x, %kv {heads=2, kv_heads=2, rel_buckets=8}", "2 arguments, expected 3"},
	{"%y = attention %x, %kv, @rel {heads=2, kv_heads=2, rel_buckets=16}", "@rel is f32[8, 2], expected [rel_buckets, heads] = [16, 2]"},
	{"%y = attention %x, %kv, @rel {heads=2, kv_heads=2, rel_buckets=8, rel_max=4}", "rel_buckets=8 and rel_max=4"},
	{"%y = attention %x, %kv {heads=2, kv_heads=2, cross}", "cross on %kv, which is not a source state"},
	{"%y = attention %x, %src {heads=2, kv_heads=2, cross, causal}", "cross cannot be combined with causal"},
	{"%y = attention %x, %src {heads=2, kv_heads=2, cross, window=3}", "cross cannot be combined with causal, window"},
	{"%y = route %x {top_k=9}", "top_k=9 of 8 experts, expected 1 to 8"},
	{"%y = route %x, @v4 {top_k=1}", "@v4 is f32[4], expected 8 elements"},
	{"%y = route %x {top_k=1, groups=3, top_groups=1}", "8 experts are not divisible by groups=3"},
	{"%y = route %x {top_k=1, groups=4}", "top_groups=0 of groups=4"},
	{"%y = route %x {top_k=5, groups=4, top_groups=2}", "top_k=5 but top_groups=2 contain only 4 experts"},
	{"%y = route %x {top_k=1, groups=8, top_groups=2, group_score=top2}", "groups of one expert"},
	{"%y = attention %x, %kv, %x {heads=2, kv_heads=2, sinks}", "rel_buckets and sinks require weights, selected a value"},
	{"%y = attention %x, %kv, %x {heads=2, kv_heads=2, selected}", "selected requires causal"},
	{"%y = select_rows %x, %x, %kv {heads=2, top=3}", "%x has 8 columns, expected 2"},
	{"%y = select_rows %x, %x4, %kv {heads=4, top=3}", "expected field k of shape [1, 2]"},
	{"%y = fill %x {cols=0}", "cols=0, expected at least 1"},
	{"%y = experts %x, %x4, @eg", "1 weights, expected 2 with gated=false and biased=false"},
	{"%y = experts %x, %x4, @eg, @eg, @ed, @ev {gated, biased}", "4 weights, expected 6"},
	{"%y = experts %x, %x4, @w, @ed", "@w needs 4 as its last index, the expert"},
	{"%y = experts %x, %v5, @eg, @ed", "@eg needs 5 as its last index, the expert"},
	{"%y = experts %x, %x4, @ed, @ed", "@ed is f32[8, 6], expected f32[8, 8]"},
	{"%y = experts %x, %x4, @eg, @eg", "@eg is f32[6, 8], expected f32[8, 6]"},
	{"%y = experts %x, %x4, @none, @ed", "@none is f32[], expected [F, 8]"},
	{"%y = experts %x, %x4, @eg, @ed, @ev, @ev {biased}", "@ev is f32[6], expected f32[8]"},
	{"%y = experts %x, %x4, @eg, @ed, @eo, @eo {biased}", "@eo is f32[8], expected f32[6]"},
	{"%y = experts %r, %x4, @eg, @ed", "%r has R rows but %x4 has T"},
	{"%y = experts %x, %x4, @eg, @ed {act=swiglu_oai}", "swiglu_oai requires gated"},
	{"%y = experts %x, %x4, @eg, @ed {act_type=a8_b32}", "act_type must equal the type of quantized x"},
	{"%y = experts %act, %x4, @eb, @ed", "act_type must equal the type of quantized x"},
	{"%y = experts %act, %x4, @eb, @ed {act_type=a8_b64}", "act_type must equal the type of quantized x"},
	{"%y = experts %act, %x4, @eb, @ed {act_type=a8_b32}", "@eb has 8 rows, which are not whole blocks of a8_b32"},
	{"%y = join_heads %x, %v3 {heads=3}", "not divisible by heads=3"},
	{"%y = join_heads %x, %x4 {heads=4, b_heads=2}", "b_heads=2, expected 1 or heads=4"},
	{"%y = join_heads %x, %r {heads=2}", "%x has T rows but %r has R"},
	{"%y = head_cols %x {heads=2, lo=2, hi=5}", "columns 2..5 of heads of 4"},
	{"%y = head_cols %x {heads=2, lo=2, hi=2}", "columns 2..2 of heads of 4"},
	{"%y = sinusoid %pos {dim=5}", "dim=5 and offset=0, expected an even number from 4"},
	{"%y = sinusoid %x {dim=4}", "%x is f32[T, 8], expected i32[rows]"},
	{"%y = quantize_act %x {type=a8_b32}", "8 columns, which are not whole blocks of 32"},
	{"%y = quantize_act %x {type=q4_b32}", "type=q4_b32, expected a8_b16, a8_b32, a8_b64 or bf16"},
	{"%y = all_gather %x {ranks=2, bounds=[0, 8]}", "bounds has 2 numbers for 2 ranks"},
	{"%y = all_gather %x {ranks=2, bounds=[0, 8, 9, 17]}", "columns 9..17 of rank 1"},
	{"%y = all_gather %x {ranks=2, bounds=[0, 8, 0, 8]}", "columns 0..8 of rank 1"},
	{"%y = recv %x {from=1, cols=0}", "cols=0, expected 1"},
	{"send %ids {to=1}", "expected f32[rows, columns]"},
	{"%y = rank_cols %x {bounds=[0, 4, 4]}", "bounds has 3 numbers"},
	{"%y = rank_cols %x {bounds=[0, 4, 4, 9]}", "columns 4..9 of %x, which has 8"},
	{"%y = all_gather %x {ranks=0}", "ranks=0, expected 1"},
}

// TestInferErrors checks the messages for invalid statements.
func TestInferErrors(t *testing.T) {
	t.Parallel()
	for _, c := range misfits {
		_, err := ir.Parse("t.ir", []byte(misfitHead+c.stmt+"\n}\n}\n"), ops.Table)
		if err == nil || !strings.Contains(err.Error(), c.want) || !strings.HasPrefix(err.Error(), "t.ir:31:1: op ") {
			t.Errorf("%s\n\terror is %v\n\texpected t.ir:31:1: op …%s…", c.stmt, err, c.want)
		}
	}
	if _, err := ir.Parse("t.ir", []byte(misfitHead+"%y = attention %x, %kv {heads=2, kv_heads=2} : f32[T, 6]\n%z = matmul %act, @q : f32[T, 8]\n}\n}\n"), ops.Table); err != nil {
		t.Error(err)
	}
}

func TestTableIsSound(t *testing.T) {
	t.Parallel()
	seen := map[string]bool{}
	for _, d := range ops.Table {
		if seen[d.Name] || d.Doc == "" || d.Infer == nil {
			t.Errorf("op %q: twice in the table, without Doc, or without Infer", d.Name)
		}
		seen[d.Name] = true
		byInterp := d.Is(ir.HasBody) || d.Is(ir.Writes) || d.Is(ir.Reads) || d.Is(ir.AcrossRows)
		if (d.Eval == nil) != byInterp {
			t.Errorf("op %s: ops have an Eval, but for those with bodies, on states and across rows", d.Name)
		}
		for _, a := range d.Attrs {
			if a.Doc == "" || a.Required && a.Default != nil {
				t.Errorf("op %s: attribute %s: without Doc, or required with a default", d.Name, a.Name)
			}
		}
	}
}

// TestDocIsFresh checks that docs/ops.md is the output of go generate ./ir/ops.
func TestDocIsFresh(t *testing.T) {
	t.Parallel()
	got, err := os.ReadFile("../../docs/ops.md")
	if err != nil {
		t.Fatal(err)
	}
	if d := ir.Diff(string(got), ops.Markdown()); d != "" {
		t.Errorf("docs/ops.md is stale; run go generate ./ir/ops\n%s", d)
	}
}
