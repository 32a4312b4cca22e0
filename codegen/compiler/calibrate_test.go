package compiler

import (
	"context"
	"strings"
	"testing"
)

// TestCheap: calibration by default depends on the estimate of its time, and the notice
// says what to do otherwise.
func TestCheap(t *testing.T) {
	t.Parallel()
	var said []string
	m, err := Open(t.Context(), "demo", Options{Quant: "q4", Notice: func(line string) { said = append(said, line) }})
	if err != nil {
		t.Fatal(err)
	}
	defer m.Close()
	p, err := m.Generate(context.Background())
	if err != nil {
		t.Fatal(err)
	}
	coarse := p.coarseWeights()
	if all := p.whole.CPU.Manifest.Params; coarse < all/2 || coarse > all {
		t.Errorf("%d of %d parameters are rounded to q4", coarse, all)
	}
	if !p.cheap(coarse) || len(said) > 0 {
		t.Errorf("the demo model is not calibrated by default: %q", said)
	}
	if p.cheap(1e15) || len(said) != 1 || !strings.Contains(said[0], "--calibrate always") {
		t.Errorf("a quadrillion weights are rounded by default: %q", said)
	}
	stored, err := openProgram(context.Background(), "demo", Options{Quant: "q4", asStored: true})
	if err != nil {
		t.Fatal(err)
	}
	defer stored.Close()
	if n := stored.coarseWeights(); n != 0 {
		t.Errorf("%d weights of the stored model are rounded", n)
	}
}
