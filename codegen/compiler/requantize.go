package compiler

import (
	"context"
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/passes"
	"github.com/iflowc/iflowc/spec"
)

const (
	much  = 1.3  // a loss from which on it is named: a factor of the perplexity
	saves = 0.95 // of the bytes: a size from which on fewer bytes are no reason to round again
)

// A typeChange compares the chosen weight types with those of the files.
type typeChange struct {
	elements  int64 // of all matrices
	quantized int64 // elements that the files store in a block type
	again     int64 // of those, elements that are rounded to another block type
	kept, now int64 // bytes: with the types of the files, and with the chosen ones
	stored    map[tensor.DType]int64
	rounded   map[tensor.DType]int64 // elements by the block type that they are rounded to
}

// add counts a matrix.
func (c *typeChange) add(w *ir.Value, stored tensor.DType) {
	rows, cols := int64(w.Type.Shape[0].N), w.Type.Cols()
	for _, r := range w.Count {
		rows *= int64(r.Len())
	}
	n := rows * int64(cols)
	keep, t := tensor.ComputeType(stored), w.Type.Elem
	if cols%keep.Block() != 0 {
		keep = tensor.F16
	}
	c.elements += n
	c.kept += rows * int64(keep.RowBytes(cols))
	c.now += rows * int64(t.RowBytes(cols))
	lost := t.IsBlock() && t != keep && !tensor.Lossless(t, stored)
	if lost {
		c.rounded[t] += n
	}
	if stored.IsBlock() {
		c.quantized += n
		c.stored[stored] += n
		if lost {
			c.again += n
		}
	}
}

// most returns the type with the most elements.
func most(byType map[tensor.DType]int64) (t tensor.DType) {
	for k, n := range byType {
		if n > byType[t] || n == byType[t] && k < t {
			t = k
		}
	}
	return t
}

// judgeTypes says what the chosen weight types cost where that surprises: they round
// weights again that are quantized already, make them larger, or lose much.
func (p *Program) judgeTypes(context.Context) error {
	if p.Spec.Quant == tensor.Invalid && p.Spec.Types == nil || p.opt.Notice == nil {
		return nil
	}
	c, err := p.typeChange()
	if err != nil {
		return err
	}
	warn := func(format string, args ...any) {
		line := fmt.Sprintf(format, args...)
		p.warnings = append(p.warnings, line)
		p.opt.notice("%s", line)
	}
	if c.quantized > 0 && p.merged == nil { // with a merged adapter they are other weights
		if err := p.judgeAgain(c, warn); err != nil {
			return err
		}
	}
	p.judgeLoss(c, warn)
	return nil
}

// Warnings returns what Generate has said about the weight types.
func (p *Program) Warnings() []string { return p.warnings }

// typeChange runs the passes that choose types once more, and compares.
func (p *Program) typeChange() (*typeChange, error) {
	mod, err := p.Lower()
	if err != nil {
		return nil, err
	}
	env, err := p.env()
	if err != nil {
		return nil, err
	}
	c := &typeChange{stored: map[tensor.DType]int64{}, rounded: map[tensor.DType]int64{}}
	env.Notice, env.Devices, env.Typed = nil, nil, c.add
	return c, passes.Run(env, mod, passes.Pipeline, passes.Options{Limit: -1, Skip: p.skip, After: passes.Quantize.Name})
}

// judgeAgain judges the types of weights that are quantized already.
func (p *Program) judgeAgain(c *typeChange, warn func(string, ...any)) error {
	file, share := most(c.stored), percent(c.again, c.quantized)
	again := fmt.Sprintf("rounds %s of them a second time", share)
	if p.Choice != nil {
		switch {
		case c.again > 0:
			warn("the weights are stored as %s: %s %s. The expected increase counts from the stored weights. Weights that were never quantized lose less", file, p.typesFrom(), again)
		case c.now == c.kept:
			warn("the stored types meet %s: they are kept", p.typesFrom())
		}
		return nil
	}
	size := ""
	switch {
	case float64(c.now) > 1.01*float64(c.kept):
		size = "makes them larger"
	case float64(c.now) > saves*float64(c.kept) && c.again > 0:
		size = "hardly makes them smaller"
	case c.again > 0:
		warn("the weights are stored as %s, in %s: %s %s, to %s. It loses less with the model's weights in f16 or bf16, if they are published", file, SizeText(c.kept), p.typesFrom(), again, SizeText(c.now))
	}
	if size == "" {
		return nil
	}
	keep := "omit it to keep them"
	if smaller, err := p.smallerThan(c); err != nil {
		return err
	} else if smaller != "" {
		keep += ", or choose a smaller size: " + smaller
	}
	farther := "is not more accurate"
	if c.again > 0 {
		farther = again + ", further from the original"
	}
	warn("the weights are stored as %s, in %s: %s %s, %s, and %s; %s", file, SizeText(c.kept), p.typesFrom(), size, SizeText(c.now), farther, keep)
	return nil
}

// judgeLoss names the measured loss of sizes that lose much.
func (p *Program) judgeLoss(c *typeChange, warn func(string, ...any)) {
	if p.Choice != nil {
		if loss := math.Exp(p.Choice.Loss); loss >= much {
			warn("%s is expected to multiply the perplexity by %.2g; a larger budget loses less", p.typesFrom(), loss)
		}
		return
	}
	t := most(c.rounded)
	l, ok := lossOf(t)
	if !ok || l.Perplexity < much || 2*c.rounded[t] < c.elements {
		return
	}
	increase := "increased the perplexity of " + losses().Model + " by " + l.text()
	if l.Perplexity >= 2 {
		increase = fmt.Sprintf("multiplied the perplexity of %s by %.2g", losses().Model, l.Perplexity)
	}
	var better measuredLoss // the smallest size that does not
	for _, s := range losses().Sizes {
		if s.Perplexity < much {
			better = s
		}
	}
	if sized, err := spec.ParseType(l.Quant); err != nil || sized != t {
		increase += ", and " + t.String() + " loses more"
	}
	warn("%s loses much: %s %s. %s cost %s there, and large models lose less; measure yours with BIN perplexity", p.typesFrom(), l.Quant, increase, better.Quant, better.text())
}

// typesFrom names what chose the types.
func (p *Program) typesFrom() string {
	switch {
	case p.opt.Quant != "":
		return "--quant " + p.opt.Quant
	case p.Choice != nil:
		return "quant: " + p.Choice.Budget + " of the model spec"
	case p.Spec.Quant != tensor.Invalid:
		return "quant: " + p.Spec.Quant.String() + " of the model spec"
	}
	return "types: of the model spec"
}

// smallerThan lists the two largest sizes with which the weights are smaller than in the
// files, without losing much.
func (p *Program) smallerThan(c *typeChange) (string, error) {
	var list []string
	for _, l := range losses().Sizes {
		if l.Perplexity >= much || len(list) == 2 {
			break
		}
		t, err := spec.ParseType(l.Quant)
		if err != nil {
			return "", err
		}
		one, m, r, s := *p, *p.Model, *p.Model.Model, *p.Spec
		s.Quant, r.Spec, m.Model, one.Model = t, &s, &r, &m
		other, err := one.typeChange()
		if err != nil {
			return "", err
		}
		if float64(other.now) < saves*float64(c.kept) {
			list = append(list, fmt.Sprintf("%s (%s)", l.Quant, SizeText(other.now)))
		}
	}
	return strings.Join(list, ", "), nil
}

// percent returns a part of a whole.
func percent(part, whole int64) string {
	return fmt.Sprintf("%.0f %%", 100*float64(part)/float64(max(whole, 1)))
}
