//go:build unix

package cli

import (
	"strings"
	"testing"
)

// TestBenchFigure: a panel a test, one of shares, and every number in its place.
func TestBenchFigure(t *testing.T) {
	t.Parallel()
	share := 0.75
	rows := []benchRow{
		{Test: "pp512", Batch: 1, TokS: spread{90, 100, 110}, Peak: &share, Bandwidth: &share, ISA: "avx2", Threads: 2},
		{Test: "tg128", Batch: 1, TokS: spread{9, 10, 11}, Bandwidth: &share},
		{Test: "pp512", Batch: 4, TokS: spread{190, 200, 210}, Peak: &share},
		{Test: "tg128", Batch: 4, TokS: spread{29, 30, 31}},
	}
	f := benchFigure("demo", rows)
	if len(f.Panels) != 3 || !strings.HasPrefix(f.Title, "demo, avx2, 2 threads") {
		t.Fatalf("%q, %d panels", f.Title, len(f.Panels))
	}
	tg := f.Panels[1].Series[0]
	if f.Panels[1].Title[:5] != "tg128" || len(tg.X) != 2 || tg.X[1] != 4 || tg.Y[1] != 30 || tg.Low[1] != 29 || tg.High[1] != 31 {
		t.Errorf("%+v", f.Panels[1])
	}
	shares := f.Panels[2].Series
	if len(shares) != 2 || len(shares[0].Y) != 2 || len(shares[1].Y) != 1 || shares[1].Y[0] != share {
		t.Errorf("%+v", shares)
	}
	if !strings.Contains(string(f.SVG()), "60 %") {
		t.Error("no 60 % in the plot")
	}
	benchFigure("demo", nil).SVG() // nothing to draw
	if err := checkPlot("x.pdf"); err == nil || !strings.Contains(err.Error(), ".png") {
		t.Error(err)
	}
}
