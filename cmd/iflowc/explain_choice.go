//go:build unix

package main

import (
	"fmt"
	"io"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/runtime/kit/plot"
)

// explainChoice prints the types that the compiler chose for a budget, and as the `types` of
// a model spec.
func explainChoice(w io.Writer, c *compiler.Choice) {
	fmt.Fprintf(w, "weights for --quant %s: %.1f MB, %.2f bits per weight, expected perplexity increase %s\n",
		c.Budget, float64(c.WeightBytes)/1e6, c.BitsPerWeight, lossText(c.Loss))
	if c.Limit != "" {
		fmt.Fprintf(w, "limit: %s\n", c.Limit)
	}
	if c.Tokens > 0 {
		fmt.Fprintf(w, "sensitivity measured on %d tokens: the KL divergence for errors in one matrix, per squared relative error\n", c.Tokens)
	} else {
		fmt.Fprintf(w, "sensitivity not measured, because %s: all weights count alike\n", c.Why)
	}
	sum := 0.0
	for _, m := range c.Matrices {
		sum += m.Loss
	}
	table := [][]string{{"matrices", "type", "MB", "bits", "sensitivity", "part of the loss"}}
	for _, m := range c.Matrices {
		table = append(table, []string{m.Weights, m.Type, fmt.Sprintf("%.2f", float64(m.Bytes)/1e6), fmt.Sprintf("%.2f", m.Bits), fmt.Sprintf("%.3g", m.Sensitivity),
			fmt.Sprintf("%.1f %%", 100*m.Loss/max(sum, 1e-300))})
	}
	printColumns(w, "  ", table)
	fmt.Fprintln(w, "all matrices in one type instead (heads with about one bit more):")
	table = [][]string{{"type", "MB", "expected perplexity increase"}}
	for _, p := range c.Uniform {
		table = append(table, []string{p.Type, fmt.Sprintf("%.1f", float64(p.Bytes)/1e6), lossText(p.Loss)})
	}
	printColumns(w, "  ", table)
	fmt.Fprintln(w, "the same choice in a model spec:\ntypes:")
	for _, t := range c.Types {
		fmt.Fprintf(w, "  %s: %s\n", t.Weight, t.Type)
	}
	fmt.Fprintln(w)
}

// lossText writes a KL divergence as the factor that it multiplies perplexity by.
func lossText(loss float64) string {
	if loss > 1 {
		return "above 100 %"
	}
	return fmt.Sprintf("%.2g %%", 100*loss)
}

// choiceFigure plots the loss over the size of the weights: the best choices, single types
// and the choice.
func choiceFigure(name string, c *compiler.Choice) *plot.Figure {
	curve := func(name string, points []compiler.LossPoint, dots bool) plot.Series {
		s := plot.Series{Name: name, Points: dots}
		for _, p := range points {
			if p.Loss > 0 {
				s.X, s.Y = append(s.X, float64(p.Bytes)/1e6), append(s.Y, p.Loss)
			}
		}
		return s
	}
	chosen := []compiler.LossPoint{{Bytes: c.WeightBytes, Loss: c.Loss}}
	return &plot.Figure{Title: name, Panels: []plot.Panel{{
		Title: "Expected loss against size",
		X:     plot.Axis{Label: "weights, MB"}, Y: plot.Axis{Label: "KL divergence, nats", Log: true},
		Series: []plot.Series{curve("types by sensitivity", c.Best, false), curve("one type", c.Uniform, true), curve("--quant "+c.Budget, chosen, true)},
	}}}
}
