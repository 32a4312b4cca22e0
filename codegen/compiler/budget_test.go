package compiler

import (
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/engine"
)

// TestBudget chooses types of the demo model for budgets in all forms. The weights take at
// most what they may, and almost all of it; a larger budget loses less.
func TestBudget(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	last := 1e9
	for _, bits := range []float64{2.5, 4, 6.5} {
		quant := fmt.Sprint(bits)
		m, err := Open(t.Context(), demoSpec, Options{Quant: quant})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		p, err := m.Generate(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		c, size, weights := m.Choice, int64(0), int64(0)
		for _, w := range p.whole.CPU.Manifest.Weights {
			size += w.Bytes
			weights += int64(w.Rows) * int64(w.Cols)
		}
		if limit := bits * float64(weights) / 8; size != c.WeightBytes || float64(size) > limit || float64(size) < 0.98*limit {
			t.Errorf("%v bits: %d bytes of weights, %d expected, at most %.0f allowed", bits, size, c.WeightBytes, limit)
		}
		if c.Tokens == 0 || !(c.Loss > 0 && c.Loss < last) {
			t.Errorf("%v bits: expected loss %v, measured on %d tokens; %v with fewer bits", bits, c.Loss, c.Tokens, last)
		}
		last = c.Loss
		if bits != 4 && !irtest.All() {
			continue
		}
		again, err := Open(t.Context(), demoSpec, Options{Quant: quant})
		if err != nil {
			t.Fatal(err)
		}
		defer again.Close()
		if !slices.Equal(again.Choice.Types, c.Types) {
			t.Errorf("%v bits: a second choice differs", bits)
		}
	}
}

// TestBudgetForms: the size of the weights file, with which the compiled model runs, an
// expected loss, and the memory here.
func TestBudgetForms(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	p, err := generate(demoSpec, Options{Quant: "600KB"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := loaded(t, p)
	if n := len(m.Weights); n > 600_000 || n < 570_000 {
		t.Errorf("the weights file has %d bytes, expected almost 600 KB", n)
	}
	for i, x := range logitsOf(t, m, engine.Options{Threads: 1}, [][]int32{prompt(4, 1)})[0] {
		if math.IsNaN(float64(x)) || math.IsInf(float64(x), 0) {
			t.Fatalf("logit %d is %v", i, x)
		}
	}
	for quant, want := range map[string]func(c *Choice) bool{
		"loss=2%": func(c *Choice) bool { return c.Loss <= 0.02 && c.Loss > 0.01 },
		"fit":     func(c *Choice) bool { return c.BitsPerWeight > 15 && strings.Contains(c.Limit, "available memory") },
	} {
		m, err := Open(t.Context(), demoSpec, Options{Quant: quant})
		if err != nil {
			t.Fatal(err)
		}
		defer m.Close()
		if !want(m.Choice) {
			t.Errorf("%s: %.2f bits, expected loss %v %s", quant, m.Choice.BitsPerWeight, m.Choice.Loss, m.Choice.Limit)
		}
	}
	for quant, want := range map[string]string{"2KB": "are too few", "1.5": "its smallest types take"} {
		if _, err := Open(t.Context(), demoSpec, Options{Quant: quant}); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, expected %q", quant, err, want)
		}
	}
	if _, err := Open(t.Context(), demoSpec, Options{Quant: "4.5", SparseOutliers: 0.01}); err == nil || !strings.Contains(err.Error(), "sparse outliers") {
		t.Errorf("a budget with sparse outliers: %v", err)
	}
}
