package main

import (
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// roofData is the output of script/record-roofline.
type roofData struct {
	Device string `json:"device"`
	Date   string `json:"date"`
	Limits struct {
		Read []float64 `json:"read_gb_s"`
		Int8 []float64 `json:"int8_gop_s"`
		F32  []float64 `json:"f32_gop_s"`
	} `json:"limits"`
	Shapes []struct {
		N     int             `json:"n"`
		K     int             `json:"k"`
		DType string          `json:"dtype"`
		Rows  []int           `json:"rows"`
		Impls []dispatch.Time `json:"impls"`
	} `json:"shapes"`
}

// Markers of the implementations.
var implMarkers = []struct {
	impl   string
	marker plot.Marker
}{{"gemv", plot.Triangle}, {"flat_gemm", plot.Disc}, {"gemm", plot.Square}}

// roofline draws each implementation's speed over operations per byte of weights,
// below the machine's limits.
func roofline() ([]byte, error) {
	var d roofData
	if err := readData("roofline.json", &d); err != nil {
		return nil, err
	}
	read, int8Peak, f32Peak := median(d.Limits.Read), median(d.Limits.Int8), median(d.Limits.F32)
	panel := plot.Panel{
		X: plot.Axis{Label: "operations per byte of weights read", Log: true, Min: 0.7, Max: 3200, Ticks: []float64{1, 2, 5, 10, 20, 50, 100, 200, 500, 1000, 2000}},
		Y: plot.Axis{Label: "billion operations per second", Log: true, Min: 20, Max: 1300, Ticks: []float64{20, 50, 100, 200, 500, 1000}},
	}
	desc := fmt.Sprintf("Limits of %s: reading %.1f GB/s, int8 %.0f and f32 %.0f billion operations per second.", d.Device, read, int8Peak, f32Peak)
	var points []plot.Series
	for i, s := range d.Shapes {
		dt, ok := tensor.ParseDType(s.DType)
		if !ok {
			return nil, fmt.Errorf("roofline.json: %s is no type", s.DType)
		}
		bytes := float64(dt.RowBytes(s.K)) / float64(s.K)
		panel.Series = append(panel.Series, plot.Series{Name: s.DType, Color: i + 1})
		for _, m := range implMarkers {
			if k := slices.IndexFunc(s.Impls, func(t dispatch.Time) bool { return t.Impl == m.impl }); k >= 0 {
				one := implPoints(s.N*s.K, s.Rows, s.Impls[k], bytes)
				one.Color, one.Marker = i+1, m.marker
				points = append(points, one)
			}
		}
		best := bestOf(s.N*s.K, s.Rows, s.Impls)
		desc += fmt.Sprintf(" %s: %.0f with one row, %.0f at best.", s.DType, best[0], slices.Max(best))
	}
	for _, m := range implMarkers {
		panel.Series = append(panel.Series, plot.Series{Name: m.impl, Color: -1, Marker: m.marker, Bare: true})
	}
	panel.Series = append(panel.Series, roofs(read, int8Peak, f32Peak)...)
	panel.Series = append(panel.Series, points...)
	shape := d.Shapes[0]
	f := &plot.Figure{Title: fmt.Sprintf("Roofline of the matmul kernels, weights [%s, %d]", thousands(shape.N), shape.K), Panels: []plot.Panel{panel}, PanelWidth: 630, PanelHeight: 400}
	f.Note = fmt.Sprintf("%s. Each point is a row count: 1, 2, 4 … %d from the left.", d.Device, slices.Max(shape.Rows))
	return f.Themed(desc), nil
}

// implPoints returns an implementation's points at all row counts.
func implPoints(weights int, rows []int, t dispatch.Time, bytes float64) (s plot.Series) {
	s.Bare = true
	for i, r := range rows {
		if t.Us[i] > 0 {
			s.X, s.Y = append(s.X, 2*float64(r)/bytes), append(s.Y, speed(weights, r, t.Us[i]))
		}
	}
	return s
}

// speed returns billions of operations per second.
func speed(weights, rows int, us float64) float64 {
	return 2 * float64(weights) * float64(rows) / us / 1e3
}

// bestOf returns the speed of the fastest implementation at each row count.
func bestOf(weights int, rows []int, impls []dispatch.Time) (out []float64) {
	for i, r := range rows {
		best := 0.0
		for _, t := range impls {
			if t.Us[i] > 0 {
				best = math.Max(best, speed(weights, r, t.Us[i]))
			}
		}
		out = append(out, best)
	}
	return out
}

// roofs returns the machine's limits.
func roofs(read, int8Peak, f32Peak float64) []plot.Series {
	const low, high = 0.7, 3200
	return []plot.Series{
		{X: []float64{low, int8Peak / read}, Y: []float64{read * low, int8Peak}, Color: -1,
			Labels: []plot.Label{{Text: fmt.Sprintf("memory %.1f GB/s", read), X: 52, Y: -128, Anchor: 0.5}}},
		{X: []float64{int8Peak / read, high}, Y: []float64{int8Peak, int8Peak}, Color: -1,
			Labels: []plot.Label{{}, {Text: fmt.Sprintf("int8 peak %.0f GOP/s", int8Peak), Y: -6, Anchor: 1}}},
		{X: []float64{f32Peak / read, high}, Y: []float64{f32Peak, f32Peak}, Color: -1, Dashed: true,
			Labels: []plot.Label{{}, {Text: fmt.Sprintf("f32 peak %.0f GOP/s", f32Peak), Y: -6, Anchor: 1}}},
	}
}
