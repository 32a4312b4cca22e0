package ir_test

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// TestIndexText checks that every spelling of an index prints in canonical form.
func TestIndexText(t *testing.T) {
	t.Parallel()
	for in, want := range map[string]string{
		"2*i+1": "[2*i+1]", " ( 2 * i ) + 1": "[2*i+1]", "(i+1)*2": "[(i+1)*2]", "i-(1-1)": "[i-(1-1)]", "i -1": "[i-1]",
		"i%4": "[i%4]", "i/2*2": "[i/2*2]", "i/(2*1)": "[i/(2*1)]", "1+2": "[3]", "7 % 4": "[3]", "i": "", "(i)": "",
	} {
		m := parse(t, wrap("%r = repeat 0..4 (%c = %x) {\n%m = matmul %c, @wl["+in+"]\nyield %m\n}\nyield %r"))
		line := strings.TrimSuffix(m.Graphs[0].FindOp("matmul").String(), " : f32[T, 8]")
		if line != "%m = matmul %c, @wl"+want {
			t.Errorf("[%s] is printed as %s, want [%s]", in, line, want)
		}
		again := parse(t, m.String())
		if d := ir.Diff(m.String(), again.String()); d != "" {
			t.Errorf("[%s]: %s", in, d)
		}
	}
}

// TestIndexErrors checks that invalid indices are reported at their position.
func TestIndexErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ name, text, want string }{
		{"index letter", wrap("%y = matmul %x, @wl[a]"), `t.ir:14:21: index a: expected a number or i, j, … before "a"`},
		{"index too large", wrap("%y = matmul %x, @wl[999999999999*i]"), "t.ir:14:21: index 999999999999 * i: 999999999999 is not an integer up to 2147483647"},
		{"index by zero", wrap("%y = matmul %x, @wl[4/0]"), "index 4 / 0: 4/0 divides by zero"},
		{"index negative", wrap("%y = matmul %x, @wl[1-2]"), "index 1 - 2: 1-2 is negative"},
		{"index unfinished", wrap("%y = matmul %x, @wl[2*]"), "t.ir:14:23: unexpected token \"]\" (expected an expression)"},
		{"index without operator", wrap("%y = matmul %x, @wl[2 i]"), `t.ir:14:23: unexpected token "i" (expected "]")`},
		{"index bracket", wrap("%y = matmul %x, @wl[2*(i+1]"), "t.ir"},
		{"index too long", wrap("%y = matmul %x, @wl[i" + strings.Repeat("+1", 40) + "]"), "more than 32 operations"},
		{"index too deep", wrap("%y = matmul %x, @wl[" + strings.Repeat("(", 70) + "i" + strings.Repeat(")", 70) + "]"), "brackets nest deeper than 64"},
		{"name's index", "module m {\nweight @a[2] : f32[8] from \"x.{2*}\"\n}", `tensor "x.{2*}": index 2*: expected a number or i, j, … at its end`},
		{"name's brace", "module m {\nweight @a[2] : f32[8] from \"x.{i\"\n}", "missing closing }"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			if _, err := ir.Parse("t.ir", []byte(c.text), ops.Table); err == nil || !strings.Contains(err.Error(), c.want) {
				t.Errorf("error is %v\nexpected …%s…", err, c.want)
			}
		})
	}
}

func loop(lo, hi, stmts string) string {
	return wrap("%r = repeat " + lo + ".." + hi + " (%c = %x) {\n" + stmts + "\nyield %c\n}\nyield %r")
}

// TestVerifyIndices checks that computed indices must be in range in every iteration,
// and that elements of states must be written once and before they are read.
func TestVerifyIndices(t *testing.T) {
	t.Parallel()
	const read = "%a = attention %c, %kv[@] {heads=2, kv_heads=2}"
	at := func(index string) string { return strings.ReplaceAll(read, "@", index) }
	for _, c := range []struct{ name, text, want string }{
		{"in range", loop("0", "2", "%m = matmul %c, @wl[2*i+1]"), ""},
		{"above", loop("0", "3", "%m = matmul %c, @wl[2*i]"), "%m = matmul: @wl[2*i]: index 2*i (4 where i is 2) is outside 0..4"},
		{"below", loop("0", "2", "%m = matmul %c, @wl[i-1]"), "index i-1 (-1 where i is 0) is outside 0..4"},
		{"constant", wrap("%m = matmul %x, @wl[2+2]"), "@wl[4]: index 4 is outside 0..4"},
		{"by zero", loop("0", "2", "%m = matmul %c, @wl[1/i]"), "@wl[1/i]: 1/i divides by zero"},
		{"remainder by zero", loop("0", "2", "%m = matmul %c, @wl[i%0]"), "@wl[i%0]: i%0 divides by zero"},
		{"of a negative number", loop("0", "2", "%m = matmul %c, @wl[(i-1)/2]"), "(i-1)/2 divides -1 by 2; want a non-negative dividend"},
		{"overflow", loop("0", "2", "%m = matmul %c, @wl[1000000*1000000*i*0]"), "1000000*1000000 is 1000000000000, beyond 2147483647"},
		{"outside", wrap("%m = matmul %x, @wl[2*i]"), "@wl[2*i]: i is index number 1, but there are only 0 here"},
		{"letter", loop("0", "2", "%m = matmul %c, @wl[2*j]"), "j is index number 2, but there are only 1 here"},
		{"ranks", loop("0", "4", "%p = par 2 {\n%m = matmul %c, @wl2[3-i, 1-j]\nyield %m\n}"), ""},
		{"many iterations", loop("0", "1000000000", "%m = matmul %c, @wl[i%4]"), "more than 4096 iterations in the enclosing regions"},
		{"read first", loop("0", "2", at("2*i")+"\nkv_append %kv[2*i], %c, %c"), "%a = attention: reads %kv[2*i] (element [0]) before it is written"},
		{"two of a layer", loop("0", "2", "kv_append %kv[2*i], %c, %c\nkv_append %kv[2*i+1], %c, %c\n"+at("2*i")+"\n%b = attention %a, %kv[2*i+1] {heads=2, kv_heads=2}"), ""},
		{"of the layer before", loop("1", "4", "kv_append %kv[i], %c, %c\n"+at("i-1")), "reads %kv[i-1] (element [0]) before it is written"},
		{"written twice", loop("0", "4", "kv_append %kv[i/2], %c, %c\n"+at("i/2")), "kv_append: writes %kv[i/2] (element [0]) twice in a step; use a separate element for each layer that appends"},
		{"one state for all layers", loop("0", "4", "kv_append %one, %c, %c"), "kv_append: writes %one twice in a step"},
		{"long", strings.Replace(loop("0", "100000000", "kv_append %kv, %c, %c"), "%kv[4]", "%kv[100000000]", 1), "graph g: a step has more than 262144 ops"},
		{"name", module("weight @a[2] : f32[8] from \"x.{2*j}\""), `@a: tensor "x.{2*j}": j is index number 2, but there are only 1 here`},
		{"name below", module("weight @a[2] : f32[8] from \"x.{i-1}\""), `@a: tensor "x.{i-1}": i-1 is negative`},
		{"dot of matrices", module("weight @a : f32[2, 2]\nweight @b : f32[1] from dot(@a, @a)"), "expected two vectors of the same length"},
		{"difference of sizes", module("weight @a : f32[2]\nweight @c : f32[3]\nweight @b : f32[2] from sub(@a, @c)"), "operands [2] and [3] differ"},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			m, err := ir.Parse("t.ir", []byte(c.text), ops.Table)
			if err != nil {
				t.Fatalf("cannot be read: %v", err)
			}
			err = ir.Verify(m)
			if c.want == "" && err != nil || c.want != "" && (err == nil || !strings.Contains(err.Error(), c.want)) {
				t.Errorf("error is %v\nexpected %q", err, c.want)
			}
		})
	}
}
