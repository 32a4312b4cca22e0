package ir_test

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

func TestWalkOrder(t *testing.T) {
	t.Parallel()
	g := parse(t, good).Graphs[0]
	var all, outer []string
	for o := range g.All() {
		all = append(all, o.Def.Name)
	}
	g.Walk(func(b *ir.Block, i int, o *ir.Op) bool {
		if b.Ops[i] != o {
			t.Errorf("op %s is not at place %d of its block", o.Def.Name, i)
		}
		outer = append(outer, o.Def.Name)
		return o.Def == ir.Repeat
	})
	if got, want := strings.Join(all, " "), "embed repeat fuse rmsnorm matmul add kv_append attention par matmul all_reduce rows"; got != want {
		t.Errorf("all ops are %s, expected %s", got, want)
	}
	if got, want := strings.Join(outer, " "), "embed repeat fuse kv_append attention par rows"; got != want {
		t.Errorf("walked %s, expected %s", got, want)
	}
	for range g.All() { // breaking out must work
		break
	}
	if n := len(g.FindOps("matmul")); n != 2 || g.FindOp("none") != nil {
		t.Errorf("%d matmuls, expected 2", n)
	}
}

func TestUsesAndReplace(t *testing.T) {
	t.Parallel()
	m := parse(t, good)
	g := m.Graphs[0]
	f := g.FindOp("fuse").Result()
	uses := ir.Uses(g)[f]
	if len(uses) != 3 || uses[0].Op.Def != ops.KVAppend || uses[0].Arg != 1 || uses[1].Arg != 2 || uses[2].Op.Def != ops.Attention {
		t.Errorf("uses of %s are %v", f, uses)
	}
	if y := ir.Uses(g)[g.FindOp("par").Result()]; len(y) != 1 || y[0].Op != nil || y[0].Block != g.FindOp("repeat").Body {
		t.Errorf("uses of the yielded value are %v", y)
	}
	g.ReplaceUses(f, g.FindOp("repeat").Body.Params[0])
	if n := len(ir.Uses(g)[f]); n != 0 {
		t.Errorf("%d uses left", n)
	}
	if err := ir.Verify(m); err != nil {
		t.Error(err)
	}
}

func TestNewOp(t *testing.T) {
	t.Parallel()
	m := parse(t, good)
	x := m.Graphs[0].FindOp("embed").Result()
	o, err := ir.NewOp(ops.RMSNorm, []ir.Arg{ir.A(x)}, ir.Attrs{{Name: "heads", Val: 2}, {Name: "base", Val: 0.0}, {Name: "eps", Val: 1e-5}}, "n")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := o.String(), "%n = rmsnorm %x {eps=1e-05, heads=2} : f32[T, 8]"; got != want {
		t.Errorf("op is %s, expected %s", got, want)
	}
	if o.Has("base") || o.Float("base") != 0 || o.Int("heads") != 2 || o.Result().Op != o {
		t.Error("attributes or back pointer are wrong")
	}
	o.SetAttr("heads", 1)
	if o.Has("heads") || o.Int("heads") != 1 {
		t.Error("a default is kept in the attributes")
	}
	o.Result().Type.Shape[1] = ir.N(99)
	if x.Type.Cols() != 8 {
		t.Error("the result shares its shape with the argument")
	}
	if err := o.Reinfer(); err != nil || o.Result().Type.Cols() != 8 {
		t.Errorf("Reinfer: %v, %s", err, o.Result().Type)
	}
	for _, c := range []struct {
		def   *ir.OpDef
		args  []ir.Arg
		attrs ir.Attrs
		names []string
		want  string
	}{
		{ops.RMSNorm, []ir.Arg{ir.A(x)}, nil, []string{"n"}, "op rmsnorm: attribute eps is missing"},
		{ops.Silu, []ir.Arg{ir.A(x)}, nil, nil, "op silu yields 1 values but 0 names"},
		{ops.Silu, nil, nil, []string{"n"}, "op silu: 0 arguments, expected (x)"},
		{ir.Fuse, nil, nil, []string{"n"}, "op fuse: missing or unexpected body"},
		{ops.Scale, []ir.Arg{ir.A(x)}, ir.Attrs{{Name: "by", Val: 2}}, []string{"n"}, "attribute by: 2 is not a number"},
	} {
		if _, err := ir.NewOp(c.def, c.args, c.attrs, c.names...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("error is %v, expected …%s…", err, c.want)
		}
	}
}

func TestPerLayer(t *testing.T) {
	t.Parallel()
	a := parse(t, good).Graphs[0].FindOp("attention")
	if a.IntAt("window", 2) != 2 || len(a.Ints("window")) != 4 {
		t.Error("per-layer list is read wrongly")
	}
	third := a.AtIteration(3)
	if third.Int("window") != 3 || len(a.Ints("window")) != 4 {
		t.Error("AtIteration gives the wrong entry or changes the op")
	}
	if third.AtIteration(0) != third {
		t.Error("AtIteration copies where nothing is per layer")
	}
	if third.IntAt("window", 0) != 3 || len(third.Ints("window")) != 1 {
		t.Error("one number for all layers is read wrongly")
	}
}

func TestAnnotations(t *testing.T) {
	t.Parallel()
	var ns ir.Annotations
	ns.Set(ir.Words("slot", "2"))
	ns.Set(ir.Annotation{Name: "kernel", Args: []ir.AnnotationArg{{Val: "gemv"}, {Of: "rows", From: 3, Val: "flat"}, {Of: "rows", From: 96, Val: "gemm"}}})
	ns.Set(ir.Words("slot", "a b"))
	if got, want := ns[0].String()+" "+ns[1].String(), `!slot("a b") !kernel(gemv, rows>=3: flat, rows>=96: gemm)`; got != want {
		t.Errorf("annotations are %s, expected %s", got, want)
	}
	for rows, want := range map[int]string{1: "gemv", 2: "gemv", 3: "flat", 95: "flat", 96: "gemm"} {
		if got := ns.Get("kernel").Word(rows); got != want {
			t.Errorf("%d rows use %s, expected %s", rows, got, want)
		}
	}
	ns.Delete("slot")
	if ns.Get("slot") != nil || len(ns) != 1 {
		t.Error("annotation is not deleted")
	}
}

func TestNames(t *testing.T) {
	t.Parallel()
	n := ir.NewNames(parse(t, good))
	for _, c := range [][2]string{{"x", "x_1"}, {"x", "x_2"}, {"new", "new"}, {"new", "new_1"}, {"kv", "kv_1"}, {"wl", "wl_1"}, {"c", "c_1"}, {"ids", "ids_1"}} {
		if got := n.Fresh(c[0]); got != c[1] {
			t.Errorf("fresh name for %s is %s, expected %s", c[0], got, c[1])
		}
	}
}

// TestCloneIsDeep checks that changes of a clone do not affect the module.
func TestCloneIsDeep(t *testing.T) {
	t.Parallel()
	m := parse(t, good)
	m.Weights[1].Transform = &tensor.Transform{Op: "scale", Args: []*tensor.Transform{tensor.Source("w")}, Nums: []float64{2}}
	before := m.String()
	c := m.Clone()
	c.Weights[1].Transform.Args[0].Name = "other"
	c.Weights[1].Transform.Nums[0] = 3
	c.Weights[3].Count[0].Hi = 9
	c.States[0].State.Fields[0].Shape[0] = 7
	g := c.Graphs[0]
	g.Dims[0].Name = "Q"
	g.FindOp("attention").Attrs.Set("heads", 1)
	g.FindOp("attention").Ints("window")[0] = 5
	g.FindOp("matmul").Args[1].Index = []ir.Index{ir.ConstIndex(1)}
	g.FindOp("matmul").Result().Type.Shape[1].N = 3
	g.FindOp("add").Annotations.Set(ir.Words("k"))
	g.Body.Remove(0)
	if d := ir.Diff(before, m.String()); d != "" {
		t.Errorf("the module changed with its clone:\n%s", d)
	}
}

// TestFuseWithoutResults parses and prints a region with writes and no results.
func TestFuseWithoutResults(t *testing.T) {
	t.Parallel()
	m := parse(t, wrap("fuse {\n%k = matmul %x, @w\nkv_append %one, %k, %k\n} !slot(1)\nyield %x"))
	if err := ir.Verify(m); err != nil {
		t.Error(err)
	}
	again := parse(t, m.String())
	if d := ir.Diff(m.String(), again.String()); d != "" {
		t.Error(d)
	}
	ir.DCE(again)
	if again.Graphs[0].FindOp("kv_append") == nil {
		t.Error("DCE dropped a region that writes a state")
	}
}

func TestDiff(t *testing.T) {
	t.Parallel()
	if d := ir.Diff("a\nb\n", "a\nb\n"); d != "" {
		t.Errorf("equal texts differ: %s", d)
	}
	got := ir.Diff("1\n2\n3\n4\n5\n6\n7\n8\n9", "1\n2\n3\n4\nfive\n6\n7\n8\n9")
	if want := "…\n 3\n 4\n-5\n+five\n 6\n 7\n"; got != want {
		t.Errorf("difference is\n%s\nexpected\n%s", got, want)
	}
}
