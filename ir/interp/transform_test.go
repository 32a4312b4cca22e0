package interp_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/ops"
	"github.com/iflowc/iflowc/ir/tensor"
)

// counting stores "a" (4 × 2) as 0…7, "b" (4 × 2) as 10…17 and "v" (3) as 1…3.
func counting(name string) (*tensor.Tensor, error) {
	t := tensor.New(tensor.F32, 4, 2)
	from := 0.0
	switch name {
	case "a":
	case "b":
		from = 10
	case "v":
		t, from = tensor.New(tensor.F32, 3), 1
	default:
		return nil, fmt.Errorf("no stored tensor %q", name)
	}
	for i := range t.F {
		t.F[i] = from + float64(i)
	}
	return t, nil
}

func TestTransforms(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		typ, transform string
		want           []float64
	}{
		{"f32[4, 2]", `"a"`, []float64{0, 1, 2, 3, 4, 5, 6, 7}},
		{"f32[8, 2]", `concat("b", "a")`, []float64{10, 11, 12, 13, 14, 15, 16, 17, 0, 1, 2, 3, 4, 5, 6, 7}},
		{"f32[2, 2]", `rows("a", 1, 3)`, []float64{2, 3, 4, 5}},
		{"f32[2]", `rows("v", 1, 3)`, []float64{2, 3}},
		{"f32[4, 1]", `cols("a", 1, 2)`, []float64{1, 3, 5, 7}},
		{"f32[2, 4]", `transpose("a")`, []float64{0, 2, 4, 6, 1, 3, 5, 7}},
		{"f32[2, 4]", `reshape("a", 2, 4)`, []float64{0, 1, 2, 3, 4, 5, 6, 7}},
		{"f32[4, 2]", `permute_rows("a", 1, "gguf_rope")`, []float64{0, 1, 4, 5, 2, 3, 6, 7}},
		{"f32[2, 2]", `group_rows("a", 2, 2, 1, 2)`, []float64{2, 3, 6, 7}},
		{"f32[4, 2]", `repeat_rows(rows("a", 1, 3), 2)`, []float64{2, 3, 2, 3, 4, 5, 4, 5}},
		{"f32[3]", `add(scale("v", 2), -1)`, []float64{1, 3, 5}},
		{"f32[3]", `sub(scale("v", 2), "v")`, []float64{1, 2, 3}},
		{"f32[1]", `dot("v", scale("v", 2))`, []float64{28}},
		{"f32[3]", `exp(scale("v", 0))`, []float64{1, 1, 1}},
		{"f32[1, 2]", `l2norm_rows(add(scale(rows("a", 1, 2), 0), 3))`, []float64{0.7071067690849304, 0.7071067690849304}},
		{"f16[3]", `scale("v", 0.1)`, []float64{0.0999755859375, 0.199951171875, 0.300048828125}},
	} {
		m := parse(t, "module m {\nweight @w : "+c.typ+" from "+c.transform+"\n}\n")
		got, err := interp.NewWeights(m, counting).Weight(m.Weight("w"), nil)
		if err != nil {
			t.Errorf("%s: %v", c.transform, err)
			continue
		}
		same(t, c.transform, got.F, c.want, 0)
	}
}

// TestInterleaveMeetsSplit checks that split {panel=16} restores the order of interleaved
// rows, without the zero padding of the last panel.
func TestInterleaveMeetsSplit(t *testing.T) {
	t.Parallel()
	for _, n := range []int{16, 20, 48, 5} {
		padded := 2 * ((n + 15) / 16 * 16)
		apart := parse(t, fmt.Sprintf("module m {\nweight @g : f32[%d, 8] from \"g\"\nweight @u : f32[%d, 8] from \"u\"\ngraph g (T tokens) {\ninput %%x : f32[T, 8]\n%%a = matmul %%x, @g\n%%b = matmul %%x, @u\nyield %%a, %%b\n}\n}\n", n, n))
		merged := parse(t, fmt.Sprintf("module m {\nweight @g : f32[%d, 8] from \"g\"\nweight @u : f32[%d, 8] from \"u\"\nweight @gu : f32[%d, 8] from interleave(@g, @u)\ngraph g (T tokens) {\ninput %%x : f32[T, 8]\n%%y = matmul %%x, @gu\n%%a, %%b = split %%y {sizes=[%d, %d], panel=16}\nyield %%a, %%b\n}\n}\n", n, n, padded, n, n))
		step := &interp.Step{IDs: []int{0, 0}, Extra: map[string]*tensor.Tensor{"x": noise(4, 2, 8)}}
		want, err := interp.Run(apart, "g", step, random(t, apart), nil)
		if err != nil {
			t.Fatal(err)
		}
		got, err := interp.Run(merged, "g", step, random(t, merged), nil)
		if err != nil {
			t.Fatal(err)
		}
		for i := range want {
			same(t, fmt.Sprintf("%d rows, part %d", n, i), got[i].F, want[i].F, 1e-12)
		}
	}
}

// TestQuantizeOnce checks that a weight is quantized once, by rows, before or after rows
// are concatenated.
func TestQuantizeOnce(t *testing.T) {
	t.Parallel()
	for _, dt := range []string{"q8_b32", "q4_b32", "q4_b64", "q3h_b64", "f16"} {
		m := parse(t, fmt.Sprintf("module m {\nweight @a : %[1]s[3, 128] from quantize(\"a\", %[1]s)\nweight @b : %[1]s[2, 128] from quantize(\"b\", %[1]s)\n"+
			"weight @late : %[1]s[5, 128] from quantize(concat(\"a\", \"b\"), %[1]s)\nweight @early : %[1]s[5, 128] from concat(@a, @b)\n"+
			"weight @bare : %[1]s[3, 128] from \"a\"\n}\n", dt))
		src, err := interp.Random(1, parse(t, "module m {\nweight @a : f32[3, 128] from \"a\"\nweight @b : f32[2, 128] from \"b\"\n}\n"))
		if err != nil {
			t.Fatal(err)
		}
		w := interp.NewWeights(m, src)
		get := func(name string) *tensor.Tensor {
			x, err := w.Weight(m.Weight(name), nil)
			if err != nil {
				t.Fatal(err)
			}
			return x
		}
		same(t, dt, get("early").F, get("late").F, 0)
		same(t, dt, get("bare").F, get("a").F, 0)
		raw, err := src("a")
		if err != nil {
			t.Fatal(err)
		}
		want := raw.Clone()
		for r := range 3 {
			elem, _ := tensor.ParseDType(dt)
			if err := ops.Round(elem, want.F[r*128:(r+1)*128]); err != nil {
				t.Fatal(err)
			}
		}
		same(t, dt, get("a").F, want.F, 0)
		if raw.F[0] == get("a").F[0] && raw.F[1] == get("a").F[1] {
			t.Errorf("%s rounds nothing", dt)
		}
	}
}

func TestRandomShapes(t *testing.T) {
	t.Parallel()
	m := parse(t, `module m {
weight @q : f32[6, 4] from rows("qkv", 0, 6)
weight @k : f32[2, 4] from rows("qkv", 6, 8)
weight @v : f32[2, 4] from rows("qkv", 8, 10)
weight @g : f32[4, 4] from group_rows("grouped", 2, 5, 1, 3)
weight @t[2] : f32[3, 4] from transpose("t.{i}")
weight @c : f32[8, 4] from concat("c0", @g)
weight @p[2] : f32[3, 4] from part_rows("p", 2)
}
`)
	src, err := interp.Random(1, m)
	if err != nil {
		t.Fatal(err)
	}
	for name, want := range map[string]string{"qkv": "[10 4]", "grouped": "[10 4]", "t.1": "[4 3]", "c0": "[4 4]", "p": "[6 4]"} {
		x, err := src(name)
		if err != nil || fmt.Sprint(x.Shape) != want {
			t.Errorf("%s: %v, %v, expected %s", name, x, err, want)
		}
	}
	if _, err := src("none"); err == nil {
		t.Error("an unnamed tensor gives no error")
	}
	for _, w := range m.Weights {
		if _, err := interp.NewWeights(m, src).Weight(w, make([]int, len(w.Count))); err != nil {
			t.Error(err)
		}
	}
	clash, err := ir.Parse("t.ir", []byte("module m {\nweight @a : f32[2, 4] from \"x\"\nweight @b : f32[3, 4] from \"x\"\n}\n"), ops.Table)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := interp.Random(1, clash); err == nil || !strings.Contains(err.Error(), "wanted as [2 4] and as [3 4]") {
		t.Errorf("error is %v", err)
	}
}
