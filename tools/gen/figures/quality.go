package main

import (
	"fmt"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// qualityData is the output of script/perplexity-table --json.
type qualityData struct {
	Model      string `json:"model"`
	Source     string `json:"source"`
	Parameters int    `json:"parameters"`
	Chunks     int    `json:"chunks"`
	Context    int    `json:"context"`
	Rows       []struct {
		By      string  `json:"by"`
		Weights string  `json:"weights"`
		Bytes   int     `json:"bytes"`
		Against float64 `json:"against_f16"`
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

// Range of the perplexity axis: smaller differences are noise, and types above
// it are of no use.
const leastLoss, mostLoss = 0.001, 4.0

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
	f.Note = fmt.Sprintf("Above: SmolLM2-135M, all made from one %s file, %d × %d tokens of WikiText-2. Below: MiniLM-L6-v2, made from f32.", gguf(q.Source), q.Chunks, q.Context)
	loss, said := lossPanel(&q)
	errors, more := errorPanel(&e)
	f.Panels = []plot.Panel{loss, errors}
	return f.Themed(said + more), nil
}

// gguf returns the type in a file's name.
func gguf(name string) string {
	parts := strings.Split(name, ".")
	return parts[len(parts)-2]
}

func lossPanel(q *qualityData) (plot.Panel, string) {
	p := plot.Panel{
		Title: "Perplexity increase over f16 (0.1 % and less is noise)", X: plot.Axis{Label: "bits per weight, whole model", Min: 4, Max: 9.5, Ticks: []float64{4, 5, 6, 7, 8, 9}},
		Y: plot.Axis{Label: "increase", Log: true, Percent: true, Min: leastLoss, Max: mostLoss, Ticks: []float64{0.001, 0.01, 0.1, 1}},
	}
	ours, theirs := scatter("iflowc", 1), scatter("llama.cpp", 2)
	desc := "Increase of perplexity:"
	for _, r := range q.Rows {
		bits := 8 * float64(r.Bytes) / float64(q.Parameters)
		if bits > 12 || r.Against > mostLoss {
			continue
		}
		s := &ours
		if r.By == "llama.cpp" {
			s = &theirs
		}
		add(s, r.Weights, bits, max(r.Against, leastLoss), lossLabels)
		desc += fmt.Sprintf(" %s %.2f bits %+.2f %%;", r.Weights, bits, 100*r.Against)
	}
	p.Series = []plot.Series{ours, theirs}
	return p, desc
}

func errorPanel(e *errorData) (plot.Panel, string) {
	p := plot.Panel{
		Title: "Root mean square error of the weights", X: plot.Axis{Label: "bits per weight, one matrix", Min: 2.3, Max: 9.3, Ticks: []float64{3, 4, 5, 6, 7, 8, 9}},
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
	if color == 2 {
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
		"q4_b32": {Text: ", as stored", X: -7, Y: -3, Anchor: 1}, "Q4_1": {Text: ", as stored", X: 7, Y: -4}, "q8_b32": {X: 0, Y: -8, Anchor: 0.5}, "q8_b64": {X: -7, Y: -3, Anchor: 1}, "q8_b32t2": {X: -7, Y: 11, Anchor: 1},
		"q5_b64": {X: -7, Y: 10, Anchor: 1}, "q6_b64": {X: -7, Y: 10, Anchor: 1}, "q4_b64": {X: -7, Y: 1, Anchor: 1}, "IQ4_XS": {X: 0, Y: 17, Anchor: 1}, "Q3_K": {X: 7, Y: 9}, "q3h_b64": {X: -7, Y: 10, Anchor: 1},
		"q3_b32": {X: -7, Y: 4, Anchor: 1}, "Q4_K": {X: 7, Y: 8},
	}
	errorLabels = map[string]plot.Label{
		"q4_b64": {X: -6, Y: -4, Anchor: 1}, "q4_k": {Y: 16, Anchor: 0.5}, "iq4_xs": {X: -6, Y: 10, Anchor: 1}, "q4_b32": {X: 2, Y: 16, Anchor: 0.5},
		"q5_b64": {X: -7, Y: 3, Anchor: 1}, "q5_k": {X: -2, Y: 16, Anchor: 0.5}, "q5_b32": {X: 2, Y: 16, Anchor: 0.5}, "q6_b64": {X: -7, Y: 4, Anchor: 1}, "q6_k": {X: 7, Y: 9},
		"q8_b64": {X: -7, Y: -8, Anchor: 1}, "q8_b32t2": {X: -7, Y: 5, Anchor: 1}, "q8_0": {X: 7, Y: 3}, "q3h_b64": {X: -7, Y: 6, Anchor: 1},
		"q3_k": {X: -7, Y: 9, Anchor: 1}, "q2_b32": {X: 7, Y: 8},
	}
)
