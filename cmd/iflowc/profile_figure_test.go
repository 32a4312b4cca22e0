package main

import (
	"bytes"
	"encoding/xml"
	"errors"
	"io"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

// TestProfileFigure draws a measured shape, and a profile without any.
func TestProfileFigure(t *testing.T) {
	t.Parallel()
	p := &dispatch.Profile{Device: "a <device>", Shapes: []dispatch.Shape{{N: 64, K: 64, DType: "f16", Measured: &dispatch.Measurement{
		Rows: []int{1, 8}, M1: 3, M2: 12,
		Impls: []dispatch.Time{{Impl: "gemv", Us: []float64{1, 8}, Low: []float64{1, 7}, High: []float64{2, 9}},
			{Impl: "flat_gemm", Us: []float64{4, 5}, Low: []float64{4, 5}, High: []float64{4, 5}}},
	}}}}
	svg := profileFigure(p).SVG()
	for d := xml.NewDecoder(bytes.NewReader(svg)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
	}
	for _, want := range []string{"[64, 64], f16", "M1 = 3", "M2 = 12", "a &lt;device&gt;", "flat_gemm"} {
		if !strings.Contains(string(svg), want) {
			t.Errorf("no %q in the plot", want)
		}
	}
	profileFigure(&dispatch.Profile{}).SVG() // nothing to draw
}
