package ir_test

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// wrap inserts statements into a graph with the usual inputs and declarations. The
// statements begin on line 14.
func wrap(stmts string) string {
	return `module m {
  weight @e : f32[32, 8]
  weight @w : f32[8, 8]
  weight @v : f32[8]
  weight @wl[4] : f32[8, 8]
  weight @wl2[4, 2] : f32[8, 8]
  state %kv[4] : rows {k: f32[2, 4], v: f32[2, 4]} paged 64
  state %one : rows {k: f32[2, 4], v: f32[2, 4]} paged 64
  graph g (T tokens, R out_rows, S sequences) {
    input %ids : i32[T]
    input %pos : i32[T]
    input %out_rows : i32[R]
    %x = embed %ids, @e
` + stmts + `
  }
}
`
}

// TestFormerNames checks that a graph with renamed words parses like one with the new
// words.
func TestFormerNames(t *testing.T) {
	text := wrap("%l = rows %x, %out_rows\nyield %l")
	if d := ir.Diff(parse(t, text).String(), parse(t, strings.ReplaceAll(text, "out_rows", "wanted")).String()); d != "" {
		t.Error(d)
	}
}

func parse(t *testing.T, text string) *ir.Module {
	t.Helper()
	m, err := ir.Parse("t.ir", []byte(text), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	return m
}

func TestParseErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"syntax", wrap("%y = add %x,, %x"), `t.ir:14:13: unexpected token "," (expected a value or weight)`},
		{"strange character", "module m {\n  &\n}", `t.ir:2:3: unexpected text "&"`},
		{"missing colon", "module m {\nweight @a f32[3]\n}", `t.ir:2:11: unexpected token "f32" (expected ":" <type>`},
		{"two statements in a line", wrap("%y = silu %x %z = silu %x"), `t.ir:14:14: unexpected token "%z"`},
		{"early end", "module m {\n", "t.ir:2:1: the text ends too early"},
		{"unknown op", wrap("%y = rmsnom %x {eps=1}"), "t.ir:14:6: unknown op rmsnom (did you mean rmsnorm?)"},
		{"unknown value", wrap("%y = silu %xx"), "t.ir:14:11: %xx is not defined here (did you mean %x?)"},
		{"unknown weight", wrap("%y = matmul %x, @ww"), "t.ir:14:17: unknown weight @ww (did you mean @w?)"},
		{"unknown attribute", wrap("%y = rmsnorm %x {epz=1}"), "t.ir:14:18: op rmsnorm: unknown attribute epz (did you mean eps?)"},
		{"attribute twice", wrap("%y = rmsnorm %x {eps=1, eps=2}"), "t.ir:14:25: op rmsnorm: duplicate attribute eps"},
		{"missing attribute", wrap("%y = rmsnorm %x"), "op rmsnorm: attribute eps is missing"},
		{"fraction for integer", wrap("%y = rmsnorm %x {eps=1, heads=1.5}"), "1.5 is not an integer"},
		{"word for number", wrap("%y = rmsnorm %x {eps=small}"), "attribute eps: expected a number"},
		{"wrong word", wrap("%c = rope_table %pos {dim=4}\n%y = rope %x, %c {heads=2, pairs=both}"), "unknown word both, expected one of half, adjacent"},
		{"twice", wrap("%x = silu %x"), "t.ir:14:1: %x is defined twice, first at t.ir:13:5"},
		{"wrong type", wrap("%y = silu %x : f32[T, 9]"), "t.ir:14:16: %y is declared as f32[T, 9] but op silu returns f32[T, 8]"},
		{"wrong dim", wrap("%y = silu %x : f32[R, 8]"), "%y is declared as f32[R, 8] but op silu returns f32[T, 8]"},
		{"unknown dim", wrap("%y = silu %x : f32[Q, 8]"), "unknown size Q, expected a number or one of the graph's dims [T, R, S]"},
		{"unknown type", wrap("%y = silu %x : f33[T, 8]"), "unknown element type f33"},
		{"results", wrap("%y, %z = silu %x"), "op silu yields 1 values but 2 names are given"},
		{"no result name", wrap("silu %x"), "op silu yields 1 values but 0 names are given"},
		{"argument count", wrap("%y = add %x"), "op add: 1 arguments, expected (a, b)"},
		{"argument kind", wrap("%y = matmul %x, %x"), "argument %x is a value, expected a weight for w"},
		{"state as value", wrap("%y = silu %one"), "argument %one is a state, expected a value"},
		{"index on value", wrap("%y = silu %x[1]"), "only weights and states take an index"},
		{"after yield", wrap("yield %x\n%y = silu %x"), "t.ir:15:1: statement after yield"},
		{"late input", wrap("input %late : i32[T]"), "t.ir:14:1: input %late is inside a region or after an op"},
		{"out of region", wrap("%r = repeat 0..4 (%c = %x) {\n%in = silu %c\nyield %in\n}\n%y = silu %in"), "%in is not defined here"},
		{"carry mismatch", wrap("%r = repeat 0..4 (%c = %x) {\n%in, %b = split %c {sizes=[4, 4]}\nyield %in\n}"), "%c is f32[T, 8] but yield 1 is %in, which is f32[T, 4]"},
		{"empty repeat", wrap("%r = repeat 4..4 (%c = %x) {\nyield %c\n}"), "range 4..4 is empty"},
		{"transform function", "module m {\nweight @a : f32[8] from konkat(\"x\")\n}", "t.ir:2:25: unknown transform function konkat (did you mean concat?)"},
		{"transform numbers", "module m {\nweight @a : f32[8] from rows(\"x\", 1)\n}", "transform rows has 1 numbers, expected 2"},
		{"transform type", "module m {\nweight @a : f32[8] from quantize(\"x\", q9)\n}", "unknown element type q9"},
		{"weight twice", "module m {\nweight @a : f32[8]\nweight @a : f32[8]\n}", "t.ir:3:1: weight @a is declared twice"},
		{"bad count", "module m {\nweight @a[3..3] : f32[8]\n}", "index range 3..3 is empty"},
		{"bad size", "module m {\nweight @a : f32[0]\n}", "size 0 is not positive"},
		{"huge size", "module m {\nweight @a : f32[99999999999999999999]\n}", "is not an integer up to"},
		{"annotation bound", wrap("%y = silu %x !k(a, cols>=3: b)"), "annotation !k: bound on cols, expected rows or layer"},
		{"nesting", "module m {\ngraph g () {\n" + strings.Repeat("fuse {\n", 100), "t.ir:65:6: brackets nest deeper than 64"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			_, err := ir.Parse("t.ir", []byte(c.text), ops.Table)
			if err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v\nexpected …%s…", err, c.want)
			}
		})
	}
}

// TestParseReportsAll checks that each of several errors is reported once, without
// follow-up errors.
func TestParseReportsAll(t *testing.T) {
	t.Parallel()
	_, err := ir.Parse("t.ir", []byte(wrap("%a = sillu %x\n%b = silu %a\n%c = add %b, %a\n%d = matmul %x, @none\n%f = fuse {\n%g = silu %a\nyield %g\n}")), ops.Table)
	if err == nil {
		t.Fatal("no error")
	}
	want := "t.ir:14:6: unknown op sillu (did you mean silu?)\nt.ir:17:17: unknown weight @none (did you mean @one?)"
	if got := err.Error(); !strings.HasPrefix(got, "t.ir:14:6: unknown op sillu") || strings.Count(got, "\n") != 1 {
		t.Errorf("errors are\n%s\nexpected two, like\n%s", got, want)
	}
}

// TestPrintKeeps checks that canonical texts are printed unchanged.
func TestPrintKeeps(t *testing.T) {
	t.Parallel()
	const text = `module m {
  weight @a              : f32[8] from "a \"quoted\" \\ name"
  weight @b[1..3, 2]     : q4_b64[8, 64] from quantize(concat(rows("x.{i}.{j}", 0, 4), transpose(cols("y", 1, 5))), q4_b64)
  weight @c.long_name_for_a_weight_indeed[2] : f16[8, 64] from scale(@d, 0.1)
  weight @d              : f16[8, 64]
  weight @p              : f32[8, 4] from permute_rows("p", 2, "gguf_rope")
  state %kv[2]           : rows {k: f16[1, 8], v: q8_b32[1, 32]} paged 64 window 128
  state %source          : rows {k: f16[1, 8]} paged 16 source
  graph g (T tokens, R out_rows) {
    input %x             : f32[T, 8]
    input %window        : i32[T]
    %y = clamp %x {lo=-inf, hi=1e-300} : f32[T, 8] !kernel(gemv, rows>=3: flat_gemm) !on("dev 0", layer>=15: dev1) !slot(2) !inplace
    %z = scale %y {by=1.2345678925e+08} : f32[T, 8]
    %s = scale %z {by=1e+06} : f32[T, 8]
    %a, %b = split %s {sizes=[4, 4]} : f32[T, 4], f32[T, 4]
    yield %a, %b
  }
}
`
	m := parse(t, text)
	if d := ir.Diff(text, m.String()); d != "" {
		t.Error(d)
	}
	if d := ir.Diff(text, m.Clone().String()); d != "" {
		t.Errorf("the clone differs: %s", d)
	}
}

// TestPrintIsCanonical checks that equivalent spellings print in one form.
func TestPrintIsCanonical(t *testing.T) {
	t.Parallel()
	a := parse(t, wrap("\n# a comment\n  %y = rmsnorm %x,@v {heads=1,base=0.0, eps=0.00001}  # more\n\nyield %y"))
	b := parse(t, wrap("%y = rmsnorm %x, @v {eps=1e-5} : f32[T, 8]\nyield %y"))
	if d := ir.Diff(a.String(), b.String()); d != "" {
		t.Error(d)
	}
	if want := "    %y = rmsnorm %x, @v {eps=1e-05} : f32[T, 8]\n"; !strings.Contains(a.String(), want) {
		t.Errorf("printed\n%s\nexpected the line\n%s", a, want)
	}
}

// TestParseBombs: text that nests, repeats or is too long is refused at little cost.
func TestParseBombs(t *testing.T) {
	for want, text := range map[string]string{
		"brackets nest deeper":    wrap("%m = matmul %x, @wl[" + strings.Repeat("(", 1<<16) + "]\nyield %m"),
		"has more than 16777216":  strings.Repeat(" ", 16<<20) + "x",
		"is defined twice":        wrap(strings.Repeat("%r = rmsnorm %x, @v {eps=1}\n", 300)),
		"99999999999999999999999": wrap("%m = matmul %x, @wl[" + strings.Repeat("9", 1<<12) + "]\nyield %m"),
		"expected 1 to 1024":      wrap("%p = par 999999999 {\n%m = matmul %x, @wl2[1, 0]\n%s = all_reduce %m\nyield %s\n}\nyield %p"),
	} {
		var err error
		_ = hostiletest.Read(t, 16*len(text), func() error { // errors of several lines
			var m *ir.Module
			if m, err = ir.Parse("f.ir", []byte(text), ops.Table); err == nil {
				err = ir.Verify(m)
			}
			return nil
		})
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %.200v, want …%s…", err, want)
		}
	}
}

func FuzzParse(f *testing.F) {
	for _, s := range []string{
		"module m {\n}\n",
		wrap("yield %x"),
		wrap("%r = repeat 0..4 (%c = %x) {\n%f = fuse {\n%n = rmsnorm %c {eps=1e-5}\n%m = matmul %n, @wl\nyield %m\n} !slot(1)\nkv_append %kv, %f, %f\n%a = attention %c, %kv {heads=2, kv_heads=2, causal, window=[0, 1, 2, 3]}\nyield %a\n} : f32[T, 8] !on(a, layer>=2: b)\nyield %r"),
		wrap("%r = repeat 0..2 (%c = %x) {\nkv_append %kv[2*i], %c, %c\n%a = attention %c, %kv[(i+1)*2 - 2] {heads=2, kv_heads=2}\n%m = matmul %a, @wl[3-i%2]\nyield %m\n}\nyield %r"),
		wrap("%m = matmul %x, @wl[((((1))))*2/(i%0)-99999999999]\nyield %m"),
		"module m {\nweight @a[2, 3] : f32[1] from sub(exp(dot(\"x.{2*i+1}\", \"y.{j}\")), \"z\")\n}",
		wrap("%p = par 2 {\n%m = matmul %x, @wl2[1, 0]\n%s = all_reduce %m\nyield %s\n}\nyield %p"),
		"module m {\nweight @a : q4_b32[2, 32] from quantize(concat(\"x\", scale(@b, -1e-3)), q4_b32)\nweight @b : f32[1, 32]\n}",
		"module m {\nweight @w[2, 3] : f32[8, 8]\nstate %s[2] : rows {k: f32[2, 4], v: f32[2, 4]} paged 64 source\ngraph g (T tokens) {\ninput %x : f32[T, 8]\ninput %r : f32[T, 3]\n" +
			"%o = route %r {top_k=2, score=sigmoid, norm}\n%e = experts %x, %o, @w[1], @w[1], @w[0] {gated}\n%a = attention %e, %s[0] {heads=2, kv_heads=2, cross}\n" +
			"%j = join_heads %a, %x {heads=2, b_heads=2}\n%h = head_cols %j {heads=2, lo=1, hi=3}\nyield %h\n}\n}",
	} {
		f.Add(s)
	}
	f.Fuzz(func(t *testing.T, text string) {
		var m *ir.Module
		var err error
		_ = hostiletest.Read(t, 16*len(text), func() error { m, err = ir.Parse("f.ir", []byte(text), ops.Table); return nil })
		if err != nil { // of several lines
			return
		}
		printed := m.String()
		again, err := ir.Parse("p.ir", []byte(printed), ops.Table)
		if err != nil {
			t.Fatalf("what was printed cannot be read: %v\n%s", err, printed)
		}
		if d := ir.Diff(printed, again.String()); d != "" {
			t.Fatalf("printing is not stable: %s", d)
		}
		if (ir.Verify(m) == nil) != (ir.Verify(again) == nil) {
			t.Fatalf("verified before printing: %v, after: %v\n%s", ir.Verify(m), ir.Verify(again), printed)
		}
		if c := m.Clone().String(); c != printed {
			t.Fatalf("the clone differs: %s", ir.Diff(printed, c))
		}
		ir.DCE(m)
		ir.DropAnnotations(m)
	})
}
