package expand

import (
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
)

// ruleTests are modules that show each rule of the language, and their ops.
var ruleTests = []struct{ name, text, want string }{
	{"a value bound again, and a name for a result", `
module main(%x) {
  %x = relu(%x)
  %y = add(%x, silu(%x))
  yield %y
}`, `
%x = relu %x : f32[T, 8]
%v1 = silu %x : f32[T, 8]
%y = add %x, %v1 : f32[T, 8]`},
	{"a weight that may be absent, and a bias that is not", `
module main(%x) {
  yield linear(%x) as w
}
module linear(%x) {
  weight @weight : [None, cols(%x)] from "weight"
  weight? @bias : [shape(@weight)[0]] from "bias"
  weight? @scale : [8] from "scale"
  %y = matmul(%x, @weight)
  %y = add(%y, @bias) if @bias else %y
  yield mul(%y, @scale) if stored(@scale) else %y
}`, `
%y = matmul %x, @dec_1_main_w_weight : f32[T, 4]
%y = add %y, @dec_1_main_w_bias : f32[T, 4]`},
	{"the first source that is stored", `
module main(%x) {
  weight @q : [4, 8] from "q.weight" else rows("fused.weight", 0, 4)
  yield matmul(%x, @q)
}`, `
%v0 = matmul %x, @dec_1_main_q : f32[T, 4]`},
	{"a vector that is stored as a matrix", `
module main(%x) {
  weight @v : f32[cols(%x)] from exp("vector")
  yield mul(%x, @v)
}`, `
%v0 = mul %x, @dec_1_main_v : f32[T, 8]`},
	{"parameters: default, module, instance, call", `
module main(%x) {
  %x = f(%x) as a
  %x = f(%x) as b
  yield f(%x, by = 4) as a
}
module f(%x) {
  param by : float = 1
  yield scale(%x, by = by)
}`, `
%x = scale %x {by=2} : f32[T, 8]
%x = scale %x {by=3} : f32[T, 8]
%v2 = scale %x {by=4} : f32[T, 8]`},
	{"layers, shared instances, and values of others", `
module main(%x) {
  %seen = []
  for i in range(2) as layers {
    %x = matrix(%x) as w
    %seen = %seen + [%x]
  }
  yield add(matrix(%x) as one, %seen[0])
}
module matrix(%x) {
  weight @weight : [cols(%x), cols(%x)] from "weight"
  yield matmul(%x, @weight)
}`, `
%x = matmul %x, @dec_1_main_layers_0_w_weight : f32[T, 8]
%x = matmul %x, @dec_1_main_layers_1_w_weight : f32[T, 8]
%v2 = matmul %x, @dec_1_main_one_weight : f32[T, 8]
%v3 = add %v2, %x : f32[T, 8]`},
	{"conditions and lists", `
module main(%x) {
  param sizes : list of int = [4, 4]
  %parts = split(%x, sizes = sizes)
  if len(%parts) > 2 {
    %y = %parts[2]
  } elif len(%parts) == 2 {
    %y = mul(%parts[0], %parts[-1])
  } else {
    yield %x
  }
  yield concat([%y] * 2)
}`, `
%v0, %v0 = split %x {sizes=[4, 4]} : f32[T, 4], f32[T, 4]
%y = mul %v0, %v0 : f32[T, 4]
%v2 = concat %y, %y : f32[T, 8]`},
	{"states", `
module main(%x) {
  state %rows : rows(k = [2, 4], v = [2, 4], window = 16)
  state %state : fixed(x = [2, cols(%x)])
  kv_append(%rows, %x, %x)
  yield attention(%x, %rows, heads = 2, kv_heads = 2, causal = True, scale = None)
}`, `
kv_append %dec_1_main_rows, %x, %x
%v1 = attention %x, %dec_1_main_rows {heads=2, kv_heads=2, causal} : f32[T, 8]`},
	{"a graph, layers below the caller, and the number of a layer", `
module main() {
  param width : int = 8
  graph g(T tokens, S sequences) {
    input %x : f32[T, width]
    for i in range(2) as self {
      %x = matrix(%x) as w
    }
    %y = numbered(%x) as w[1]
    %z = None
    yield %y, %z, %x
  }
}
module matrix(%x) {
  weight @weight : [cols(%x), cols(%x)] from "weight"
  yield scale(matmul(%x, @weight), by = 2 + layer())
}
module numbered(%x) {
  yield matrix(%x) as self[3]
}`, `
%v0 = matmul %x, @dec_1_main_0_w_weight : f32[T, 8]
%x = scale %v0 {by=3} : f32[T, 8]
%v2 = matmul %x, @dec_1_main_1_w_weight : f32[T, 8]
%x = scale %v2 {by=3} : f32[T, 8]
%v4 = matmul %x, @dec_1_main_w_1_3_weight : f32[T, 8]
%y = scale %v4 {by=3} : f32[T, 8]`},
	{"one of several tensors that differ in a number", `
module main(%x) {
  for j in range(2) {
    %x = matrix(%x) as expert[j]
  }
  yield %x
}
module matrix(%x) {
  weight @weight : [8, 8] from transpose("weight")
  yield matmul(%x, @weight)
}`, `
%x = matmul %x, @dec_1_main_expert_0_weight : f32[T, 8]
%x = matmul %x, @dec_1_main_expert_1_weight : f32[T, 8]`},
}

// TestRules expands modules that show each rule of the language.
func TestRules(t *testing.T) {
	t.Parallel()
	stored := map[string][]int{
		"dec.1.main.w.weight": {4, 8}, "dec.1.main.w.bias": {4}, "dec.1.main.fused.weight": {12, 8}, "dec.1.main.vector": {8, 1},
		"dec.1.main.layers.0.w.weight": {8, 8}, "dec.1.main.layers.1.w.weight": {8, 8}, "dec.1.main.one.weight": {8, 8},
		"dec.1.main.0.w.weight": {8, 8}, "dec.1.main.1.w.weight": {8, 8}, "dec.1.main.w.1.3.weight": {8, 8},
		"dec.1.main.expert.0.weight": {8, 8}, "dec.1.main.expert.1.weight": {8, 8},
	}
	for _, c := range ruleTests {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			h := &testHost{tensors: stored, params: map[string]any{"f.by": 2.0, "dec.1.main.b.by": 3}}
			_, made, err := expanded(c.text, h)
			if err != nil {
				t.Fatal(err)
			}
			if len(h.layers) > 0 && !slices.Equal(h.layers, []int{0, -1, 1, -1}) {
				t.Errorf("layers %v", h.layers)
			}
			if h.results != nil && !slices.Equal(h.results, []string{"y", "x"}) {
				t.Errorf("results %v of the graph", h.results)
			}
			if d := cmp.Diff(strings.TrimSpace(c.want), made); d != "" {
				t.Errorf("ops (-want +got):\n%s", d)
			}
		})
	}
}

// TestReplace replaces a module of a library by one that calls it, and drops another's parameter.
func TestReplace(t *testing.T) {
	t.Parallel()
	lib, err := NewLibrary(map[string]string{"m.ifl": `
module main(%x) {
  yield again(twice(act(%x)))
}
module act(%x) {
  param by : float = 1
  %x = add(%x, %x) if stored("shift.bias") else %x
  yield scale(relu(%x), by = by)
}
module twice(%x) {
  param n : int = 2
  yield scale(%x, by = n)
}
module again(%x) {
  use by from act
  yield scale(%x, by = by)
}`})
	if err == nil {
		lib, err = lib.With(map[string]string{"own.ifl": `
module act(%x) {
  yield silu(base(%x))
}
module twice(%x) {
  yield add(%x, %x)
}`})
	}
	if err != nil {
		t.Fatal(err)
	}
	if p, err := lib.Key("by"); err != nil || p == nil || p.Kind != "float" {
		t.Errorf("key by of a module that is called by what replaces it: %v, %v", p, err)
	}
	h := &testHost{}
	if _, made, err := expandedBy(lib, h); err != nil || made != strings.TrimSpace(`
%v0 = relu %x : f32[T, 8]
%v1 = scale %v0 {by=1} : f32[T, 8]
%v2 = silu %v1 : f32[T, 8]
%v3 = add %v2, %v2 : f32[T, 8]
%v4 = scale %v3 {by=1} : f32[T, 8]`) {
		t.Errorf("ops (%v):\n%s", err, made)
	}
	if keys, err := lib.Reached("main", "", []string{"act"}); err != nil || !slices.Equal(keys, []string{"by"}) {
		t.Errorf("keys of what the modules reach: %v, %v", keys, err)
	}
	if names, err := lib.Tensors("main"); err != nil || !slices.Equal(names, []string{"act.shift.bias"}) {
		t.Errorf("tensors that the modules ask for: %v, %v", names, err)
	}
	if _, err := lib.With(map[string]string{"own.ifl": "module act(%x) {\n  yield %x\n}\nmodule act(%x) {\n  yield %x\n}\n"}); err == nil || !strings.Contains(err.Error(), "own.ifl:4: module act is defined twice") {
		t.Errorf("a module defined twice: %v", err)
	}
}
