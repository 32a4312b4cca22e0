//go:build unix

package cli

import (
	"math"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// costModel has two layers of one matrix each and a head, an attention with a window in
// one of two layers, and eight experts of which a row uses two.
func costModel() *manifest.Manifest {
	return &manifest.Manifest{
		Matmuls: []manifest.Matmul{
			{N: 10, K: 20, DType: "q8_b32t2", Act: "a8_b32"}, {N: 100, K: 20, DType: "f16", Act: "f32"}, {N: 5, K: 4, DType: "f16", Act: "f32"},
		},
		Weights: []manifest.Weight{{Name: "w", Index: []int{0}, Bytes: 200}, {Name: "w", Index: []int{1}, Bytes: 200}, {Name: "head", Bytes: 4000}, {Name: "e", Bytes: 40}},
		States:  []manifest.State{{Name: "kv", Count: 2, PageRows: 64, PageBytes: 64 * 8}, {Name: "s", Count: 2, CellBytes: 7}},
		Regions: []manifest.Region{
			{Graph: "decode", Rows: "tokens", Calls: 2, Products: []manifest.Product{{Matmul: 0, Weight: "w", Rows: 1}}},
			{Graph: "decode", Rows: "tokens", Calls: 2, Attention: &manifest.Attention{State: "kv", MACs: 3, Windows: []int{0, 4}, Causal: true}},
			{Graph: "decode", Rows: "tokens", Calls: 1, Products: []manifest.Product{{Matmul: 2, Weight: "e", Rows: 2, Experts: 8}}},
			{Graph: "decode", Rows: "out_rows", Calls: 1, Products: []manifest.Product{{Matmul: 1, Weight: "head", Rows: 1}}},
			{Graph: "other", Rows: "tokens", Calls: 9, Products: []manifest.Product{{Matmul: 1, Weight: "head", Rows: 1}}},
		},
	}
}

func TestCost(t *testing.T) {
	t.Parallel()
	m := costModel()
	c := costOf("decode", []*manifest.Manifest{m})
	if c.weightBytes != 2*200+4000+8*40 || c.stateBytes != 14 {
		t.Errorf("weights of %g bytes, states of %g", c.weightBytes, c.stateBytes)
	}
	withAdapter := c
	withAdapter.adapterBytes = 200
	for _, test := range []struct {
		what               string
		got                work
		bytes, ops, int8Op float64
	}{
		// Two prompts of 6 tokens in steps of 8: tokens 0–5 of one and 0–1 of the other, then 2–5.
		{"prompt", c.prompt(6, 2, 8, &limits{}), 2*(2*200+4000) + 40*(used(8)+used(4)) + 8*(6+6+2+2) + 8*(6+6) + 14*3,
			2 * (12*2*200 + 2*2000 + 12*2*20 + 3*(2*21+2*18)), 2 * 12 * 2 * 200},
		// One step at depth 9: the full attention sees 10 rows, the window 4.
		{"generate", c.generate(1, 3, 9, &limits{}), 2*200 + 4000 + 40*used(3) + 8*3*(10+4) + 14*3,
			2 * (3*2*200 + 3*2000 + 3*2*20 + 3*3*(10+4)), 2 * 3 * 2 * 200},
		// An adapter of 50 numbers.
		{"adapter", withAdapter.generate(1, 3, 9, &limits{}), 2*200 + 4000 + 40*used(3) + 8*3*(10+4) + 14*3 + 200,
			2 * (3*2*200 + 3*2000 + 3*2*20 + 3*3*(10+4) + 3*50), 2 * 3 * 2 * 200},
	} {
		if math.Abs(test.got.bytes-test.bytes) > 1e-6 || test.got.ops != test.ops || test.got.int8Ops != test.int8Op {
			t.Errorf("%s: %+v, expected %g bytes, %g operations, %g of them int8", test.what, test.got, test.bytes, test.ops, test.int8Op)
		}
	}
}

// used returns the expected number of the eight experts that rows use.
func used(rows float64) float64 { return 8 * (1 - math.Pow(0.75, rows)) }

// The roofline adds the longer time of each region: here the matrices are limited by
// arithmetic, the head by memory.
func TestRoofline(t *testing.T) {
	t.Parallel()
	m := costModel()
	m.Regions = append(m.Regions[:1], m.Regions[3])
	m.States = nil
	c := costOf("decode", []*manifest.Manifest{m})
	l := &limits{ReadGBS: 1e-3, I8GOPS: 4e-3, F32GOPS: 1, Kernels: map[string]float64{"q8_b32t2/a8_b32": 2e-3, "f16/f32": 1e3}}
	w := c.generate(1, 4, 0, l)
	if want := 4*2*400/2e6 + 4000/1e6; math.Abs(w.seconds-want) > 1e-12 {
		t.Errorf("%g s, expected %g", w.seconds, want)
	}
	if got, want := l.arithmetic(w), 4*2*400/4e6+4*4000/1e9; math.Abs(got-want) > 1e-12 {
		t.Errorf("arithmetic takes %g s, expected %g", got, want)
	}
}
