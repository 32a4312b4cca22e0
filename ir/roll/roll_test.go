package roll

import (
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/ops"
)

// header declares what the graphs of the tests use.
const header = `module m {
  weight @embed : f32[8, 4] from "embed"
  weight @w[0..4] : f32[4, 4] from "w.{i}"
  weight @shared : f32[4, 4] from "shared"
  state %kv[2] : rows {k: f32[1, 4], v: f32[1, 4]} paged 64
  graph decode (T tokens, R out_rows, S sequences) {
    input %ids : i32[T]
`

// In the graphs, "--" begins a layer and "==" ends it.
var rollTests = []struct{ name, graph, want string }{
	{"equal neighbors", `
%x0 = embed %ids, @embed
--
%h = matmul %x0, @w[0]
%x1 = add %x0, %h
--
%h_2 = matmul %x1, @w[1]
%x2 = add %x1, %h_2
==
%y = silu %x2
yield %y`, `
%x0 = embed %ids, @embed : f32[T, 4]
%xn = repeat 0..2 (%x = %x0) {
  %h = matmul %x, @w : f32[T, 4]
  %x1 = add %x, %h : f32[T, 4]
  yield %x1
} : f32[T, 4]
%y = silu %xn : f32[T, 4]
yield %y`},
	{"one that differs between them", `
%x0 = embed %ids, @embed
--
%a = matmul %x0, @w[0]
--
%b = matmul %a, @w[1]
%c = relu %b
--
%d = matmul %c, @w[2]
--
%e = matmul %d, @w[3]
==
yield %e`, `
%x0 = embed %ids, @embed : f32[T, 4]
%xn = repeat 0..1 (%x = %x0) {
  %a = matmul %x, @w : f32[T, 4]
  yield %a
} : f32[T, 4]
%xn_2 = repeat 1..2 (%x_2 = %xn) {
  %b = matmul %x_2, @w : f32[T, 4]
  %c = relu %b : f32[T, 4]
  yield %c
} : f32[T, 4]
%e = repeat 2..4 (%x_3 = %xn_2) {
  %d = matmul %x_3, @w : f32[T, 4]
  yield %d
} : f32[T, 4]
yield %e`},
	{"attributes by layer", `
%x0 = embed %ids, @embed
--
%a = scale %x0 {by=2}
%b = softcap %a {cap=3}
--
%c = scale %b {by=4}
%d = softcap %c {cap=3}
--
%e = scale %d {by=4}
%f = softcap %e {cap=5}
==
yield %f`, `
%x0 = embed %ids, @embed : f32[T, 4]
%xn = repeat 0..2 (%x = %x0) {
  %a = scale %x {by=[2, 4]} : f32[T, 4]
  %b = softcap %a {cap=3} : f32[T, 4]
  yield %b
} : f32[T, 4]
%f = repeat 2..3 (%x_2 = %xn) {
  %e = scale %x_2 {by=4} : f32[T, 4]
  %f_2 = softcap %e {cap=5} : f32[T, 4]
  yield %f_2
} : f32[T, 4]
yield %f`},
	{"a value of a layer that a later one reads", `
%x0 = embed %ids, @embed
--
%a = matmul %x0, @shared
--
%b = matmul %a, @shared
--
%c = matmul %b, @shared
--
%d = add %c, %a
==
yield %d`, `
%x0 = embed %ids, @embed : f32[T, 4]
%xn = repeat 0..1 (%x = %x0) {
  %a = matmul %x, @shared : f32[T, 4]
  yield %a
} : f32[T, 4]
%xn_2 = repeat 1..3 (%x_2 = %xn) {
  %b = matmul %x_2, @shared : f32[T, 4]
  yield %b
} : f32[T, 4]
%d = repeat 3..4 (%x_3 = %xn) {
  %d_2 = add %xn_2, %x_3 : f32[T, 4]
  yield %d_2
} : f32[T, 4]
yield %d`},
	{"a second result that no layer carries", `
%x0 = embed %ids, @embed
--
%a = matmul %x0, @shared
%r = reduce %a
--
%b = matmul %a, @shared
%r_2 = reduce %b
==
%y = mul %b, %r_2
yield %y`, `
%x0 = embed %ids, @embed : f32[T, 4]
%none = fill %x0 {cols=1} : f32[T, 1]
%xn, %xn_2 = repeat 0..2 (%x = %x0, %x_2 = %none) {
  %a = matmul %x, @shared : f32[T, 4]
  %r = reduce %a : f32[T, 1]
  yield %a, %r
} : f32[T, 4], f32[T, 1]
%y = mul %xn, %xn_2 : f32[T, 4]
yield %y`},
	{"states of some layers, and one that others read", `
%x0 = embed %ids, @embed
--
%a = relu %x0
--
kv_append %kv[0], %a, %a
%b = attention %a, %kv[0] {heads=1, kv_heads=1, causal}
--
kv_append %kv[1], %b, %b
%c = attention %b, %kv[1] {heads=1, kv_heads=1, causal}
--
%d = attention %c, %kv[1] {heads=1, kv_heads=1, causal}
--
%e = attention %d, %kv[1] {heads=1, kv_heads=1, causal}
==
yield %e`, `
%x0 = embed %ids, @embed : f32[T, 4]
%xn = repeat 0..1 (%x = %x0) {
  %a = relu %x : f32[T, 4]
  yield %a
} : f32[T, 4]
%xn_2 = repeat 1..3 (%x_2 = %xn) {
  kv_append %kv[i-1], %x_2, %x_2
  %b = attention %x_2, %kv[i-1] {heads=1, kv_heads=1, causal} : f32[T, 4]
  yield %b
} : f32[T, 4]
%e = repeat 3..5 (%x_3 = %xn_2) {
  %d = attention %x_3, %kv[1] {heads=1, kv_heads=1, causal} : f32[T, 4]
  yield %d
} : f32[T, 4]
yield %e`},
	{"no results", `
%x0 = embed %ids, @embed
--
kv_append %kv[0], %x0, %x0
--
kv_append %kv[1], %x0, %x0
==
yield %x0`, `
%x0 = embed %ids, @embed : f32[T, 4]
repeat 0..2 () {
  kv_append %kv, %x0, %x0
}
yield %x0`},
	{"an op between", `
%x0 = embed %ids, @embed
--
%a = relu %x0
==
%b = silu %a
--
%c = relu %b
==
yield %c`, `
%x0 = embed %ids, @embed : f32[T, 4]
%xn = repeat 0..1 (%x = %x0) {
  %a = relu %x : f32[T, 4]
  yield %a
} : f32[T, 4]
%b = silu %xn : f32[T, 4]
%c = repeat 1..2 (%x_2 = %b) {
  %c_2 = relu %x_2 : f32[T, 4]
  yield %c_2
} : f32[T, 4]
yield %c`},
}

func TestLayers(t *testing.T) {
	t.Parallel()
	for _, c := range rollTests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			mod, layers := flat(t, c.graph)
			before, err := irtest.Canonical(mod)
			if err != nil {
				t.Fatal(err)
			}
			want := before.String()
			if err := Layers(mod.Graphs[0], layers); err != nil {
				t.Fatal(err)
			}
			if err := ir.Verify(mod); err != nil {
				t.Errorf("%v\n%s", err, mod)
			}
			_, body, _ := strings.Cut(mod.String(), " : i32[T]\n")
			body = strings.ReplaceAll(strings.TrimSuffix(body, "  }\n}\n"), "\n    ", "\n")
			if d := cmp.Diff(c.want, "\n"+strings.TrimSpace(body)); d != "" {
				t.Errorf("loops (-want +got):\n%s", d)
			}
			after, err := irtest.Canonical(mod)
			if err != nil {
				t.Fatal(err)
			}
			if d := cmp.Diff(want, after.String()); d != "" {
				t.Errorf("it computes something else (-before +after):\n%s", d)
			}
		})
	}
}

// flat parses a graph without loops, and finds its layers.
func flat(t *testing.T, graph string) (*ir.Module, []Layer) {
	t.Helper()
	var layers []Layer
	var lines []string
	end := func() {
		if n := len(layers); n > 0 && layers[n-1].Hi == 0 {
			layers[n-1].Hi = len(lines)
		}
	}
	for _, line := range strings.Split(strings.TrimSpace(graph), "\n") {
		switch {
		case strings.HasPrefix(line, "--"):
			end()
			layers = append(layers, Layer{Lo: len(lines), Index: len(layers)})
		case line == "==":
			end()
		default:
			lines = append(lines, line)
		}
	}
	mod, err := ir.Parse("test.ir", []byte(header+strings.Join(lines, "\n")+"\n}\n}\n"), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	return mod, layers
}
