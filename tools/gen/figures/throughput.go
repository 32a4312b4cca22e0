package main

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// A serveRow is a service at a number of clients, with one value per round.
type serveRow struct {
	Service string    `json:"service"`
	Clients int       `json:"clients"`
	TokS    []float64 `json:"tok_s"`
	TTFT    []float64 `json:"ttft_ms"`
}

// serveData is the output of script/record-serve.
type serveData struct {
	Date    string `json:"date"`
	Machine struct {
		CPU   string `json:"cpu"`
		Cores int    `json:"cores"`
	} `json:"machine"`
	Baseline string     `json:"baseline"`
	Default  []serveRow `json:"default"`
	Plain    []serveRow `json:"without_speculation"`
}

func median(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	n := len(sorted)
	return (sorted[(n-1)/2] + sorted[n/2]) / 2
}

// at returns a service's row for a number of clients.
func at(rows []serveRow, service string, clients int) (serveRow, error) {
	for _, r := range rows {
		if r.Service == service && r.Clients == clients {
			return r, nil
		}
	}
	return serveRow{}, fmt.Errorf("serve.json has no row of %s with %d clients", service, clients)
}

// curve returns a service's curve over the number of clients: medians, minima
// and maxima of the rounds.
func curve(rows []serveRow, service string, of func(serveRow) []float64) (s plot.Series) {
	for _, r := range rows {
		if r.Service == service {
			v := of(r)
			s.X = append(s.X, float64(r.Clients))
			s.Y, s.Low, s.High = append(s.Y, median(v)), append(s.Low, slices.Min(v)), append(s.High, slices.Max(v))
		}
	}
	return s
}

// throughput draws all services over the number of clients.
func throughput() ([]byte, error) {
	var d serveData
	if err := readData("serve.json", &d); err != nil {
		return nil, err
	}
	clients := []float64{1, 4, 8, 16}
	f := &plot.Figure{Title: "Serving SmolLM2-135M-Instruct in 4 bits on two cores", Columns: 2, PanelWidth: 312, PanelHeight: 272}
	f.Note = fmt.Sprintf("%s. Medians and range of %d rounds; prompts of 128 words, answers of 64 tokens.", d.Machine.CPU, len(d.Default[0].TokS))
	panels := []struct {
		title string
		y     plot.Axis
		of    func(serveRow) []float64
	}{
		{"Output tokens per second, all clients", plot.Axis{Label: "tok/s"}, func(r serveRow) []float64 { return r.TokS }},
		{"Time to first token (p50)", plot.Axis{Label: "ms", Log: true, Ticks: []float64{50, 100, 200, 500, 1000, 2000}}, func(r serveRow) []float64 { return r.TTFT }},
	}
	for _, panel := range panels {
		ours, plain, theirs := curve(d.Default, "iflowc", panel.of), curve(d.Plain, "iflowc", panel.of), curve(d.Default, "llama.cpp", panel.of)
		ours.Name, ours.Color, ours.Points = "iflowc", 1, true
		plain.Name, plain.Color, plain.Points, plain.Dashed, plain.Marker = "no speculation", 3, true, true, plot.Square
		theirs.Name, theirs.Color, theirs.Points, theirs.Marker = "llama.cpp", 2, true, plot.Triangle
		f.Panels = append(f.Panels, plot.Panel{Title: panel.title, X: plot.Axis{Label: "clients", Log: true, Ticks: clients}, Y: panel.y, Series: []plot.Series{ours, plain, theirs}})
	}
	desc := "Medians of the rounds."
	for _, c := range []int{1, 4, 8, 16} {
		a, err := at(d.Default, "iflowc", c)
		if err != nil {
			return nil, err
		}
		b, err := at(d.Default, "llama.cpp", c)
		if err != nil {
			return nil, err
		}
		desc += fmt.Sprintf(" %s: iflowc %.0f tok/s and %.0f ms to first token, llama.cpp %.0f tok/s and %.0f ms.", plural(c, "client"), median(a.TokS), median(a.TTFT), median(b.TokS), median(b.TTFT))
	}
	return f.Themed(desc), nil
}
