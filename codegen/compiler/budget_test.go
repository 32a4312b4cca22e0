package compiler

import (
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
)

// TestBudget chooses types of the demo model for budgets in all forms. The weights take at
// most what they may, and almost all of it; a larger budget loses less; and the
// compiled binary generates text.
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

// TestBudgetForms: the size of the weights file, an expected loss, and the memory here.
func TestBudgetForms(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	out := filepath.Join(t.TempDir(), "demo")
	r, err := Compile(t.Context(), demoSpec, Options{Quant: "600KB", Out: out})
	if err != nil {
		t.Fatal(err)
	}
	if st, err := os.Stat(r.Weights); err != nil || st.Size() > 600_000 || st.Size() < 570_000 {
		t.Errorf("the weights file has %d bytes, expected almost 600 KB (%v)", st.Size(), err)
	}
	if text, err := exec.Command(out, "generate", "-p", "Once upon a time", "-n", "4", "--temp", "0").CombinedOutput(); err != nil {
		t.Errorf("%v: %s", err, text)
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
