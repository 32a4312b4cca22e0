package ir_test

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// good uses every construct and is valid. The cases below break it.
var good = wrap(`%r = repeat 0..4 (%c = %x) {
%f = fuse {
%n = rmsnorm %c, @v {eps=1e-5}
%m = matmul %n, @wl
%res = add %m, %c
yield %res
}
kv_append %kv, %f, %f
%a = attention %f, %kv {heads=2, kv_heads=2, causal, window=[0, 1, 2, 3]}
%p = par 2 {
%pm = matmul %a, @wl2
%ps = all_reduce %pm
yield %ps
}
yield %p
}
%last = rows %r, %out_rows
yield %last`)

func TestVerifyAccepts(t *testing.T) {
	t.Parallel()
	if err := ir.Verify(parse(t, good)); err != nil {
		t.Error(err)
	}
}

func module(decls string) string { return "module m {\n" + decls + "\n}\n" }

// TestVerifyRejectsParts verifies texts that parse but violate a rule of TP groups or
// their parts.
func TestVerifyRejectsParts(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"send in par", wrap("%p = par 2 {\nsend %x {to=1}\nyield %x\n}"), "is not allowed in a par region"},
		{"rank outside par", wrap("%s = rank_cols %x {bounds=[0, 4, 4, 8]}"), "is outside a par region"},
		{"rank bounds", wrap("%p = par 2 {\n%s = rank_cols %x {bounds=[0, 4]}\nyield %s\n}"), "bounds has 2 numbers for 2 ranks"},
		{"slopes", wrap("%p = par 2 {\nkv_append %one, %x, %x\n%a = attention %x, %one {heads=2, kv_heads=2, alibi=[1, 1, 1, 1, 1, 1]}\nyield %a\n}"), "alibi has 6 slopes for 2 heads"},
		{"part misfit", module("weight @a : f32[8, 2]\nweight @b[2] : f32[6, 2] from part_rows(@a, 0, 6, 6, 9)"), "transform part_rows(@a, 0, 6, 6, 9) does not fit shape [8, 2]"},
		{"part of odd numbers", module("weight @a : f32[8, 2]\nweight @b[2] : f32[6, 2] from part_rows(@a, 0, 6, 8)"), "does not fit shape"},
		{"experts around what", module("weight @a[4] : f32[8, 2]\nweight @b[2, 2] : f32[8, 2] from part_experts(scale(@a, 2), 0, 2, 2, 4)"), "must have exactly one operand, a weight"},
		{"experts too many", module("weight @a[4] : f32[8, 2]\nweight @b[2, 2] : f32[8, 2] from part_experts(@a, 0, 2, 2, 5)"), "selects more experts than the 4 of @a"},
		{"experts without bounds", module("weight @a[4] : f32[8, 2]\nweight @b[2, 2] : f32[8, 2] from part_experts(@a, 2, 2, 4)"), "needs lo and hi of each rank"},
		{"experts ranks", module("weight @a[4] : f32[8, 2]\nweight @b[3, 2] : f32[8, 2] from part_experts(@a, 0, 2, 2, 4)"), "has parts for 2 ranks"},
		{"experts indices", module("weight @a[4] : f32[8, 2]\nweight @b[2] : f32[8, 2] from expert_rows(@a, 2)"), "has 1 indices, expected one more than the 1 of @a"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := ir.Parse("t.ir", []byte(c.text), ops.Table)
			if err != nil {
				t.Fatalf("cannot be read: %v", err)
			}
			if err = ir.Verify(m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v\nexpected …%s…", err, c.want)
			}
		})
	}
}

// TestVerifyRejectsText verifies texts that parse but violate a rule.
func TestVerifyRejectsText(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"no index", wrap("%y = matmul %x, @wl"), "t.ir:14:1: graph g: %y = matmul: @wl has 1 indices but is in 0 repeat and par regions"},
		{"index count", wrap("%y = matmul %x, @wl[1, 1]"), "@wl[1, 1] has 2 indices, expected 1"},
		{"index bounds", wrap("%y = matmul %x, @wl[4]"), "@wl[4]: index 4 is outside 0..4"},
		{"repeat bounds", wrap("%r = repeat 0..5 (%c = %x) {\n%y = matmul %c, @wl\nyield %y\n}"), "@wl: indices 0..5 of the enclosing region are outside 0..4"},
		{"par bounds", wrap("%r = repeat 0..4 (%c = %x) {\n%p = par 3 {\n%y = matmul %c, @wl2\nyield %y\n}\nyield %p\n}"), "@wl2: indices 0..3 of the enclosing region are outside 0..2"},
		{"two roots", wrap("%f = fuse {\n%a = matmul %x, @w\n%b = matmul %x, @w\nyield %a, %b\n}"), "second root in a fuse region, after %a = matmul"},
		{"two roots, two results", wrap("%f, %g = fuse {\n%a = matmul %x, @w\n%b = matmul %x, @w\nyield %a, %b\n}"), "t.ir:16:1: graph g: %b = matmul: second root"},
		{"no root", wrap("%f = fuse {\n%a = silu %x\nyield %a\n}"), "fuse region without a root"},
		{"rows in front", wrap("%f = fuse {\n%l = rows %x, %out_rows\n%a = matmul %l, @w\nyield %a\n}"), "%l = rows: precedes the root of a fuse region but is not row-wise"},
		{"norm behind", wrap("%f = fuse {\n%a = matmul %x, @w\n%n = rmsnorm %a {eps=1e-5}\nyield %n\n}"), "%n = rmsnorm: follows the root of a fuse region but reads more than"},
		{"exchange in fuse", wrap("%p = par 2 {\n%f = fuse {\n%a = matmul %x, @w\n%s = all_reduce %a\nyield %s\n}\nyield %f\n}"), "%s = all_reduce: is not allowed in a fuse region"},
		{"region in fuse", wrap("%f = fuse {\n%a = matmul %x, @w\n%r = repeat 0..2 (%c = %a) {\nyield %c\n}\nyield %r\n}"), "%r = repeat: is not allowed in a fuse region"},
		{"exchange outside par", wrap("%s = all_reduce %x"), "a collective outside a par region must state the number of ranks"},
		{"ranks", wrap("%p = par 2 {\n%s = all_gather %x {ranks=3}\nyield %s\n}"), "ranks=3 in a par region of 2"},
		{"par in par", wrap("%p = par 2 {\n%q = par 2 {\n%s = silu %x\nyield %s\n}\nyield %q\n}"), "nested par regions"},
		{"list outside repeat", wrap("kv_append %one, %x, %x\n%a = attention %x, %one {heads=2, kv_heads=2, window=[1, 2]}"), "attribute window is a list, but the op is not in a repeat"},
		{"list length", wrap("%r = repeat 0..4 (%c = %x) {\nkv_append %kv, %c, %c\n%a = attention %c, %kv {heads=2, kv_heads=2, window=[1, 2]}\nyield %a\n}"), "attribute window has 2 entries for 4 iterations"},
		{"read first", wrap("%a = attention %x, %one {heads=2, kv_heads=2}\nkv_append %one, %x, %x"), "%a = attention: reads %one before it is written"},
		{"read another", wrap("kv_append %kv[0], %x, %x\n%a = attention %x, %kv[1] {heads=2, kv_heads=2}\nkv_append %kv[1], %x, %x"), "reads %kv[1] before it is written"},
		{"never written", wrap("%a = attention %x, %one {heads=2, kv_heads=2}"), "reads %one, which nothing writes"},
		{"graph twice", module("graph g () {\n}\ngraph g () {\n}"), "t.ir:4:1: graph g is declared twice"},
		{"role", module("graph g (T tikens) {\n}"), `dim T has role "tikens", expected tokens, out_rows or sequences`},
		{"dim twice", module("graph g (T tokens, T out_rows) {\n}"), "share a name or a role"},
		{"transform reference", module("weight @a : f32[8] from scale(@b, 2)"), "t.ir:2:1: @a: transform refers to unknown weight @b"},
		{"transform cycle", module("weight @a : f32[8] from scale(@b, 2)\nweight @b : f32[8] from scale(@a, 2)"), "@a: its transform reads itself"},
		{"transform shape", module("weight @a : f32[8, 2]\nweight @b : f32[12, 2] from concat(@a, rows(@a, 0, 2))"), "@b is f32[12, 2] but its transform has shape [10, 2]"},
		{"transform misfit", module("weight @a : f32[8, 2]\nweight @b : f32[4, 2] from rows(@a, 5, 9)"), "transform rows(@a, 5, 9) does not fit shape [8, 2]"},
		{"transform indices", module("weight @a[4] : f32[8]\nweight @b : f32[8] from scale(@a, 2)"), "@b has 0 indices but its transform reads @a, which has 1"},
		{"transform range", module("weight @a[1..4] : f32[8]\nweight @b[4] : f32[8] from scale(@a, 2)"), "@b: indices 0..4 are outside those of @a, 1..4"},
		{"transform type", module("weight @b : f32[1, 32] from quantize(\"x\", q4_b32)"), "@b is f32[1, 32] but its transform quantizes to q4_b32"},
		{"columns differ", module("weight @a : f32[8, 2]\nweight @c : f32[8, 3]\nweight @b : f32[16, 2] from concat(@a, @c)"), "operands [8, 2] and [8, 3] differ in more than rows"},
		{"state page", module("state %s : rows {k: f32[2]} paged 0"), "state %s: page of 0 rows"},
		{"state field twice", module("state %s : rows {k: f32[2], k: f32[2]} paged 1"), `field name "k" is used twice`},
		{"state blocks", module("state %s : rows {k: q8_b32[2, 16]} paged 1"), "the last size is not whole blocks of 32"},
		{"weight overflow", module("weight @a : f32[2000000000, 2000000000, 2000000000]"), "with at most"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := ir.Parse("t.ir", []byte(c.text), ops.Table)
			if err == nil {
				err = ir.Verify(m)
			} else if c.name != "two roots" {
				t.Fatalf("cannot be read: %v", err)
			}
			if c.name == "two roots" {
				c.want = "op fuse yields 2 values but 1 names are given"
			}
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v\nexpected …%s…", err, c.want)
			}
		})
	}
}

// sourced returns a module with a source state %s, an ordinary state %o, weights of
// three experts in two layers, and two graphs of the given statements.
func sourced(encode, decode string) string {
	const inputs = " (T tokens) {\ninput %x : f32[T, 8]\ninput %r : f32[T, 3]\n"
	return "module m {\nweight @w[2, 3] : f32[8, 8]\nstate %s : rows {k: f32[2, 4], v: f32[2, 4]} paged 64 source\n" +
		"state %o : rows {k: f32[2, 4], v: f32[2, 4]} paged 64\ngraph encode" + inputs + encode + "\n}\ngraph decode" + inputs + decode + "\n}\n}\n"
}

func TestVerifySourcesAndExperts(t *testing.T) {
	t.Parallel()
	const write, cross = "kv_append %s, %x, %x", "%a = attention %x, %s {heads=2, kv_heads=2, cross}\nyield %a"
	const self = "\n%a = attention %x, %s {heads=2, kv_heads=2}\nyield %a"
	for _, c := range []struct{ name, text, want string }{
		{"cross", sourced(write, cross), ""},
		{"own rows", sourced(write+self, ""), ""},
		{"nobody writes", sourced("", cross), "graph decode: %a = attention: reads %s, which nothing writes"},
		{"cross within", sourced(write+"\n"+cross, ""), "cross-attends to %s, which the same graph writes"},
		{"no cross", sourced(write, self), "reads source state %s, which the graph does not write, without cross"},
		{"both kinds", sourced(write+"\nkv_append %o, %x, %x", ""), "encode: kv_append: writes %o, but the graph also writes %s; only one of them is a source state"},
		{"neighbors", sourced(write+"\n%y = unfold %x {before=1, after=0}\nyield %y", ""), ""},
		{"neighbors of a part", sourced("", "%y = unfold %x {before=1, after=0}\nyield %y"), "graph decode: %y = unfold: reads other rows of a sequence, which a step may have only in part; the graph must write a source state"},
		{"window", "module m {\nstate %s : rows {k: f32[8]} paged 1 window 4 source\n}", "a source state keeps all rows, but has window 4"},
		{"experts here", sourced("%y = repeat 0..2 (%c = %x) {\n%e = experts %c, %r, @w, @w\nyield %e\n}\nyield %y", ""), ""},
		{"experts of a layer", sourced("%e = experts %x, %r, @w[1], @w[0]\nyield %e", ""), ""},
		{"experts outside", sourced("%e = experts %x, %r, @w, @w\nyield %e", ""), "@w has 1 indices but is in 0 repeat and par regions"},
		{"expert written", sourced("%e = experts %x, %r, @w[1, 2], @w[1, 2]\nyield %e", ""), "@w[1, 2] has 2 indices, expected 1"},
		{"layer beyond", sourced("%y = repeat 0..3 (%c = %x) {\n%e = experts %c, %r, @w, @w\nyield %e\n}\nyield %y", ""), "indices 0..3 of the enclosing region are outside 0..2"},
		{"heads behind a root", sourced("%f = fuse {\n%m = matmul %x, @w[0, 0]\n%j = head_cols %m {heads=2, lo=0, hi=2}\nyield %j\n}\nyield %f", ""), "%j = head_cols: follows the root"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			err := ir.Verify(parse(t, c.text))
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error is %v\nexpected %q", err, c.want)
			}
		})
	}
}

// TestVerifyRejectsEdits verifies modules after edits of a faulty pass.
func TestVerifyRejectsEdits(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(m *ir.Module, g *ir.Graph)
		want string
	}{
		{"order", func(_ *ir.Module, g *ir.Graph) { b := g.Body; b.Ops[0], b.Ops[1] = b.Ops[1], b.Ops[0] }, "%r = repeat: %x is used before it is defined"},
		{"op in two places", func(_ *ir.Module, g *ir.Graph) { g.Body.Insert(1, g.Body.Ops[0]) }, "%x is defined in two places"},
		{"name twice", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rows").Result().Name = "x" }, "%x is defined twice"},
		{"bad name", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rows").Result().Name = "a b" }, `name "a b" contains illegal characters`},
		{"stale type", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rmsnorm").Result().Type.Shape[1].N = 16 }, "%n is recorded as f32[T, 16] but the op returns f32[T, 8]"},
		{"back pointer", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rows").Result().Op = nil }, "result %last does not point back to its op"},
		{"inner value outside", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rows").Args[0].Value = g.FindOp("matmul").Result() }, "%m is used outside the region that defines it"},
		{"inner value yielded", func(_ *ir.Module, g *ir.Graph) { g.Body.Yield[0] = g.FindOp("matmul").Result() }, "yield: %m is used outside"},
		{"weight yielded", func(m *ir.Module, g *ir.Graph) { g.Body.Yield[0] = m.Weight("v") }, "yield of @v, which is a weight"},
		{"foreign weight", func(m *ir.Module, g *ir.Graph) { m.Weights = m.Weights[:2] }, "weight @v is not declared in the module"},
		{"foreign dim", func(_ *ir.Module, g *ir.Graph) { g.Inputs[0].Type.Shape[0].Dim = &ir.Dim{Name: "T"} }, "dim T is not one of graph g"},
		{"missing argument", func(_ *ir.Module, g *ir.Graph) { g.FindOp("matmul").Args[1] = ir.Arg{} }, "an argument is missing"},
		{"too few arguments", func(_ *ir.Module, g *ir.Graph) { o := g.FindOp("matmul"); o.Args = o.Args[:1] }, "1 arguments, expected (x, w)"},
		{"no body", func(_ *ir.Module, g *ir.Graph) { g.FindOp("fuse").Body = nil }, "missing or unexpected body"},
		{"yield count", func(_ *ir.Module, g *ir.Graph) { b := g.FindOp("repeat").Body; b.Yield = nil }, "1 initial values, 1 carried values and 0 yields"},
		{"unknown attribute", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rmsnorm").Attrs.Set("foo", 1) }, "unknown attribute foo"},
		{"attribute kind", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rmsnorm").Attrs.Set("eps", 1) }, "attribute eps: 1 is not a number"},
		{"range of a word", func(_ *ir.Module, g *ir.Graph) { g.FindOp("repeat").Attrs.Set("lo", "a") }, "attribute lo: a is not an integer"},
		{"attribute missing", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rmsnorm").Attrs = nil }, "attribute eps is missing"},
		{"kind", func(m *ir.Module, _ *ir.Graph) { m.Weights[0].Kind = ir.Result }, "is listed as a weight but is a value"},
		{"no type", func(m *ir.Module, _ *ir.Graph) { m.Weight("v").Type.Elem = tensor.Invalid }, "@v has no element type"},
		{"no definition", func(_ *ir.Module, g *ir.Graph) { g.FindOp("rows").Def = &ir.OpDef{Name: "foo"} }, "op is not in the table"},
		{"no graph body", func(_ *ir.Module, g *ir.Graph) { g.Body = nil }, "graph g has no body"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m := parse(t, good)
			c.edit(m, m.Graphs[0])
			if err := ir.Verify(m); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v\nexpected …%s…", err, c.want)
			}
		})
	}
}
