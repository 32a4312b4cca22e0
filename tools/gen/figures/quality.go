package main

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// qualityData is the output of script/quality-table --json.
type qualityData struct {
	Model   string `json:"model"`
	Chunks  int    `json:"chunks"`
	Context int    `json:"context"`
	Rows    []struct {
		By         string  `json:"by"`
		Weights    string  `json:"weights"`
		Calibrated bool    `json:"calibrated"`
		Bits       float64 `json:"bits"`
		KL         struct {
			Mean float64 `json:"mean"`
		} `json:"kl"`
	} `json:"rows"`
}

// errorData is the table "The order of the types" of
// docs/benchmarks/quantization.md.
type errorData struct {
	Rows []struct {
		By     string  `json:"by"`
		Type   string  `json:"type"`
		Bits   float64 `json:"bits"`
		MiniLM float64 `json:"minilm"`
	} `json:"rows"`
}

// quality draws the cost of weight types, iflowc's and llama.cpp's, over their
// bits.
func quality() ([]byte, error) {
	var q qualityData
	if err := readData("quality.json", &q); err != nil {
		return nil, err
	}
	var e errorData
	if err := readData("weight-error.json", &e); err != nil {
		return nil, err
	}
	f := &plot.Figure{Title: "What weight types cost, iflowc's and llama.cpp's", Columns: 1, PanelWidth: 630, PanelHeight: 300}
	f.Note = fmt.Sprintf("Above: %s, %d × %d tokens. Below: MiniLM-L6-v2. The weights of both were never quantized.", q.Model, q.Chunks, q.Context)
	loss, said := lossPanel(&q)
	errors, more := errorPanel(&e)
	f.Panels = []plot.Panel{loss, errors}
	return f.Themed(said + more), nil
}

func lossPanel(q *qualityData) (plot.Panel, string) {
	p := plot.Panel{
		Title: "KL divergence from f16", X: plot.Axis{Label: "bits per weight, whole model", Min: 1.9, Max: 9.3, Ticks: []float64{2, 3, 4, 5, 6, 7, 8, 9}},
		Y: plot.Axis{Label: "nats per token", Log: true, Min: 2e-5, Max: 0.04, Ticks: []float64{1e-4, 1e-3, 1e-2}},
	}
	names := []string{"iflowc, calibrated", "llama.cpp with imatrix", "iflowc", "llama.cpp"}
	p.Series = []plot.Series{scatter(names[0], 1), scatter(names[1], 2), scatter(names[2], 3), scatter(names[3], 4)}
	desc := "KL divergence:"
	for _, r := range q.Rows {
		if r.Bits > 12 {
			continue
		}
		i := 0
		if !r.Calibrated {
			i = 2
		}
		if r.By == "llama.cpp" {
			i++
		}
		s := &p.Series[i]
		if i == 1 || i == 0 {
			add(s, r.Weights, r.Bits, r.KL.Mean, lossLabels)
		} else {
			s.X, s.Y, s.Labels = append(s.X, r.Bits), append(s.Y, r.KL.Mean), append(s.Labels, plot.Label{})
		}
		desc += fmt.Sprintf(" %s, %s %.2f bits %.5f;", names[i], r.Weights, r.Bits, r.KL.Mean)
	}
	return p, desc
}

func errorPanel(e *errorData) (plot.Panel, string) {
	p := plot.Panel{
		Title: "Root mean square error of the weights", X: plot.Axis{Label: "bits per weight, one matrix", Min: 1.9, Max: 9.3, Ticks: []float64{2, 3, 4, 5, 6, 7, 8, 9}},
		Y: plot.Axis{Label: "error relative to the weights", Log: true, Percent: true, Min: 0.004, Max: 0.4, Ticks: []float64{0.005, 0.01, 0.02, 0.05, 0.1, 0.2}},
	}
	ours, theirs := scatter("iflowc", 1), scatter("llama.cpp", 2)
	desc := " Error of weights:"
	for _, r := range e.Rows {
		s := &ours
		if r.By == "llama.cpp" {
			s = &theirs
		}
		add(s, r.Type, r.Bits, r.MiniLM/100, errorLabels)
		desc += fmt.Sprintf(" %s %.2f bits %.2f %%;", r.Type, r.Bits, r.MiniLM)
	}
	p.Series = []plot.Series{ours, theirs}
	return p, strings.TrimSuffix(desc, ";") + "."
}

func scatter(name string, color int) plot.Series {
	s := plot.Series{Name: name, Color: color, Bare: true}
	if color%2 == 0 {
		s.Marker = plot.Triangle
	}
	return s
}

// add adds a type with its name beside it, at the offset of the table.
func add(s *plot.Series, name string, x, y float64, places map[string]plot.Label) {
	l, ok := places[name]
	if !ok {
		l = plot.Label{X: 7, Y: -4}
	}
	l.Text = strings.ToLower(name) + l.Text
	s.X, s.Y, s.Labels = append(s.X, x), append(s.Y, y), append(s.Labels, l)
}

// Offsets for names that would overlap others, and additions to them.
var (
	lossLabels = map[string]plot.Label{
		"q8": {X: -7, Y: 10, Anchor: 1}, "q5": {X: 7, Y: 0}, "q4": {X: -7, Y: 4, Anchor: 1},
		"4.05": {X: -7, Y: 4, Anchor: 1}, "4.69": {X: -7, Y: 8, Anchor: 1}, "4.97": {X: -4, Y: 14, Anchor: 0.5}, "5.28": {X: 0, Y: 16, Anchor: 0.5}, "5.9": {X: 6, Y: 10}, "6.57": {X: 0, Y: 16, Anchor: 0.5},
		"Q4_K_M": {X: 7, Y: 4}, "IQ4_XS": {X: 6, Y: -6},
	}
	errorLabels = map[string]plot.Label{
		"q4_b64": {X: 6, Y: 2}, "q4_0": {X: 6, Y: -6}, "q4_k": {X: 5, Y: 12}, "iq4_xs": {X: -6, Y: -2, Anchor: 1}, "q4t_b32": {X: -6, Y: 8, Anchor: 1}, "q4_b32": {X: 6, Y: 10},
		"q5_b64": {X: 6, Y: 0}, "q5_0": {X: 6, Y: -8}, "q5_k": {X: -7, Y: 0, Anchor: 1}, "q5t_b32": {X: -6, Y: 13, Anchor: 1}, "q5_b32": {X: 6, Y: 8},
		"q6_b64": {X: -7, Y: -3, Anchor: 1}, "q6t_b32": {X: -7, Y: 9, Anchor: 1}, "q6_k": {X: 7, Y: 3},
		"q8_b64": {X: -7, Y: -8, Anchor: 1}, "q8_b32t2": {X: -7, Y: 5, Anchor: 1}, "q8_0": {X: 7, Y: 3}, "q3h_b64": {X: -7, Y: 2, Anchor: 1}, "q3t_b32": {X: -6, Y: 9, Anchor: 1},
		"q3_k": {X: -2, Y: -8}, "q2_b32": {X: 7, Y: 8}, "q2_k": {X: 4, Y: -8}, "q2t_b32": {X: -2, Y: 16, Anchor: 0.5},
	}
)
