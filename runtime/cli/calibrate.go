//go:build unix

package cli

import (
	"cmp"
	"context"
	"fmt"
	"path/filepath"
	"slices"
	"strconv"

	"github.com/iflowc/iflowc/runtime/artifact/calibration"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/destination"
)

type calibrateCmd struct {
	File        string `arg:"" type:"path" help:"Text file, of the kind that the model will read."`
	engineFlags `embed:""`
	Out         string `short:"o" type:"path" placeholder:"FILE" help:"Output file (default: this program's name with .importance)."`
	Context     int    `default:"512" placeholder:"512" help:"Tokens per window."`
	Chunks      int    `default:"128" placeholder:"128" help:"Maximum windows; 0 is the whole file."`
	NoHessians  bool   `name:"no-hessians" help:"Omit the Hessians for GPTQ error compensation, which take about as much space as the model."`
	JSON        bool   `name:"json" help:"Print one JSON document."`
}

// calibrateReport is the subcommand's JSON document.
type calibrateReport struct {
	File     string `json:"file"`
	Tokens   int    `json:"tokens"`
	Matrices int    `json:"matrices"`
}

// Run processes the file in windows and writes for each stored matrix the mean
// squared activation of each column.
func (c *calibrateCmd) Run(ctx context.Context, m *model) error {
	if c.Context < 2 || c.Context > m.manifest.Context || c.Chunks < 0 {
		return wrong(fmt.Errorf("--context %d --chunks %d: expected 2 to %d tokens and 0 or more windows", c.Context, c.Chunks, m.manifest.Context))
	}
	c.Out = cmp.Or(c.Out, m.Program+".importance")
	if err := destination.Check("-o", c.Out); err != nil {
		return wrong(err)
	}
	c.Device = cmp.Or(c.Device, "cpu") // only the CPU collects statistics
	m.prefetch(&c.engineFlags)
	list, err := c.windows(m)
	if err != nil {
		return err
	}
	graph, err := m.graphWith("calibrate", "logits")
	if err != nil {
		return err
	}
	eng, err := m.engine(ctx, &c.engineFlags, engine.Options{Graph: graph, Context: c.Context, MaxOutRows: min(perplexityRows, c.Context)})
	if err != nil {
		return err
	}
	if err := eng.StartCalibration(!c.NoHessians); err != nil {
		return err
	}
	bar := newProgress(m.Stderr, "windows", len(list))
	out := calibrateReport{File: c.Out}
	for i, w := range list {
		err := m.each(ctx, engine.Query{Tokens: w.tokens, Last: len(w.tokens)}, func(engine.Result) error { return nil })
		if err != nil {
			return err
		}
		out.Tokens += len(w.tokens)
		bar.step(i + 1)
	}
	bar.end()
	read := eng.Calibration()
	imp := importance(m.manifest, read.Squares)
	out.Matrices = len(imp)
	file := calibration.File{Importance: imp, Scores: scores(m.manifest, read.Squares),
		Meta: map[string]string{"model": m.manifest.Name, "text": filepath.Base(c.File), "tokens": strconv.Itoa(out.Tokens)}}
	if !c.NoHessians {
		file.Hessians = hessians(m.manifest, read.Squares, read.Hessians)
	}
	if err := file.Write(out.File); err != nil {
		return err
	}
	return c.say(m, out)
}

func (c *calibrateCmd) say(m *model, out calibrateReport) error {
	if c.JSON {
		return writeJSON(m.Stdout, out)
	}
	_, err := fmt.Fprintf(m.Stdout, "%s: importance of the columns of %d matrices, from %d tokens\n", out.File, out.Matrices, out.Tokens)
	return err
}

// windows encodes the file and divides it.
func (c *calibrateCmd) windows(m *model) ([]window, error) {
	text, err := readText("", c.File)
	if err != nil {
		return nil, err
	}
	t, err := m.tokenizer()
	if err != nil {
		return nil, err
	}
	list := cutWindows(t.Encode(text, false), m.startToken(), c.Context, c.Context)
	if len(list) == 0 {
		return nil, wrong(fmt.Errorf("%s: no text to calibrate on", c.File))
	}
	if c.Chunks > 0 {
		list = list[:min(c.Chunks, len(list))]
	}
	return list, nil
}

// eachCalibrated calls f with the stored matrices that a matmul's weight is made of, in
// the order of the collected statistics. A matrix that two matmuls use counts for the
// first. Matrices of graphs that did not run are omitted.
func eachCalibrated(m *manifest.Manifest, sums []float64, f func(names []string, s *manifest.Matmul, element int)) {
	done := map[string]bool{}
	for i := range m.Matmuls {
		s, element := &m.Matmuls[i], 0
		if s.Weight == "" {
			continue
		}
		for _, w := range m.Weights {
			if w.Name != s.Weight || w.Sources == nil {
				continue
			}
			at := element
			element++
			if sums[rowsAt(s, at)] == 0 {
				continue
			}
			var names []string
			for _, name := range w.Sources {
				if !done[name] {
					done[name] = true
					names = append(names, name)
				}
			}
			if len(names) > 0 {
				f(names, s, at)
			}
		}
	}
}

// scores returns the counts of rows by their largest attention score, layer by
// layer.
func scores(m *manifest.Manifest, sums []float64) (out []float32) {
	for _, s := range m.Scores {
		for _, n := range sums[s.Calib : s.Calib+int64(s.Layers)*manifest.ScoreBins] {
			out = append(out, float32(n))
		}
	}
	return out
}

// rowsAt returns the place of the number of rows of a matmul's element.
func rowsAt(s *manifest.Matmul, element int) int64 {
	return s.Calib + int64(element)*int64(s.K+1) + int64(s.K)
}

// importance assigns the matmuls' mean squares to the stored matrices.
func importance(m *manifest.Manifest, sums []float64) map[string][]float32 {
	imp := map[string][]float32{}
	eachCalibrated(m, sums, func(names []string, s *manifest.Matmul, element int) {
		end := rowsAt(s, element)
		mean := make([]float32, s.K)
		for i, x := range sums[end-int64(s.K) : end] {
			mean[i] = float32(x / sums[end])
		}
		for _, name := range names {
			imp[name] = mean
		}
	})
	return imp
}

// hessians assigns the matmuls' Hessians to the stored matrices.
func hessians(m *manifest.Manifest, sums []float64, products []float32) (out []calibration.Hessian) {
	eachCalibrated(m, sums, func(names []string, s *manifest.Matmul, element int) {
		size := int64((s.K+s.Square-1)/s.Square) * int64(calibration.SquareLen(s.Square))
		at := s.Hessians + int64(element)*size
		if h := products[at : at+size]; slices.ContainsFunc(h, func(x float32) bool { return x > 0 }) {
			out = append(out, calibration.Hessian{Matrices: names, Width: s.Square, Sums: h})
		}
	})
	return out
}
