package main

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/interp"
	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// interpreted runs a folder's module in the interpreter.
type interpreted struct {
	mod    *ir.Module
	set    *checkpoint.Set
	values interp.Weights
}

func interpret(dir string) (model, error) {
	s, err := spec.Load(dir, spec.Options{Quant: "f32"})
	if err != nil {
		return nil, err
	}
	set, err := s.OpenWeights()
	if err != nil {
		return nil, err
	}
	m, err := spec.Resolve(s, spec.HeadersOf(set))
	if err != nil {
		return nil, err
	}
	mod, err := spec.Lower(m)
	if err != nil {
		return nil, err
	}
	stored := func(name string) (*tensor.Tensor, error) {
		values, err := set.Float32(name)
		if err != nil {
			return nil, err
		}
		info, _ := set.Lookup(name)
		out := tensor.New(info.DType, info.Shape...)
		for i, x := range values {
			out.F[i] = float64(x)
		}
		return out, nil
	}
	return &interpreted{mod, set, interp.NewWeights(mod, stored)}, nil
}

func (m *interpreted) close() { m.set.Close() }

func (m *interpreted) logits(ids []int, last int) ([][]float64, error) {
	return m.step(interp.NewStates(), ids, last)
}

func (m *interpreted) step(st *interp.States, ids []int, last int) ([][]float64, error) {
	s := &interp.Step{IDs: ids}
	for i := range last {
		s.OutRows = append(s.OutRows, len(ids)-last+i)
	}
	out, err := interp.Run(m.mod, "decode", s, m.values, st)
	if err != nil {
		return nil, err
	}
	for i, v := range m.mod.Graph("decode").Body.Yield {
		if v.Name != "logits" {
			continue
		}
		var rows [][]float64
		width := len(out[i].F) / last
		for r := range last {
			rows = append(rows, out[i].F[r*width:(r+1)*width])
		}
		return rows, nil
	}
	return nil, errors.New("the graph decode yields no logits")
}

func (m *interpreted) greedy(ids []int, n int) ([]int, error) {
	st := interp.NewStates()
	var out []int
	for next := ids; len(out) < n; next = out[len(out)-1:] {
		rows, err := m.step(st, next, 1)
		if err != nil {
			return nil, err
		}
		best := 0
		for i, x := range rows[0] {
			if x > rows[0][best] {
				best = i
			}
		}
		out = append(out, best)
	}
	return out, nil
}

func (m *interpreted) encode(output string, ids, types, rows []int) ([][]float64, error) {
	s := &interp.Step{IDs: ids, Types: types, OutRows: rows}
	g := m.mod.Graph("encode")
	if g == nil { // a decoder, whose last token has read the text
		g, s.OutRows = m.mod.Graph("decode"), []int{len(ids) - 1}
	}
	out, err := interp.Run(m.mod, g.Name, s, m.values, interp.NewStates())
	if err != nil {
		return nil, err
	}
	for i, v := range g.Body.Yield {
		if v.Name == output {
			return [][]float64{out[i].F}, nil
		}
	}
	return nil, fmt.Errorf("the graph %s yields no %s", g.Name, output)
}

// errSplit is a folder's error when its model cannot be split over the devices.
var errSplit = errors.New("not split")

// noSplit matches the errors of iflowc compile that say so.
var noSplit = regexp.MustCompile(`cannot be divided among|device groups for`)

// compiled runs a per-model binary.
type compiled struct{ dir, path string }

func compile(tool, dir string, with []string) (model, error) {
	tmp, err := os.MkdirTemp("", "breadth-")
	if err != nil {
		return nil, err
	}
	m := &compiled{tmp, filepath.Join(tmp, "model")}
	args := append([]string{"compile", dir, "--quant", "f32", "-o", m.path}, with...)
	if _, err := output(tool, args...); err != nil {
		m.close()
		if noSplit.MatchString(err.Error()) {
			err = fmt.Errorf("%w: %w", errSplit, err)
		}
		return nil, err
	}
	return m, nil
}

func (m *compiled) close() { os.RemoveAll(m.dir) }

func (m *compiled) logits(ids []int, last int) ([][]float64, error) {
	var out struct{ Logits [][]float64 }
	err := m.ask(&out, "logits", "--ids", commas(ids), "--last", strconv.Itoa(last))
	return out.Logits, err
}

func (m *compiled) greedy(ids []int, n int) ([]int, error) {
	var out struct{ Tokens []int }
	err := m.ask(&out, "generate", "--ids", commas(ids), "-n", strconv.Itoa(n), "--temp", "0", "--ignore-eos")
	return out.Tokens, err
}

func (m *compiled) encode(output string, ids, types, rows []int) ([][]float64, error) {
	args := []string{"--ids", commas(ids)}
	if len(types) > 0 {
		args = append(args, "--token-type-ids", commas(types))
	}
	switch output {
	case "hidden":
		var out struct{ Hidden [][]float64 }
		err := m.ask(&out, append([]string{"hidden"}, args...)...)
		return out.Hidden, err
	case "pooled":
		var out struct{ Embeddings [][]float64 }
		err := m.ask(&out, append([]string{"embed", "--pooling", "pooler"}, args...)...)
		return out.Embeddings, err
	case "classes":
		var out struct{ Outputs []struct{ Logits []float64 } }
		if err := m.ask(&out, append([]string{"classify"}, args...)...); err != nil {
			return nil, err
		}
		return [][]float64{out.Outputs[0].Logits}, nil
	}
	var out struct{ Logits [][]float64 }
	if err := m.ask(&out, append([]string{"logits", "--last", strconv.Itoa(len(ids))}, args...)...); err != nil {
		return nil, err
	}
	var some [][]float64
	for _, row := range rows {
		some = append(some, out.Logits[row])
	}
	return some, nil
}

func (m *compiled) ask(to any, args ...string) error {
	raw, err := output(m.path, append(args, "--json")...)
	if err != nil {
		return err
	}
	return json.Unmarshal(raw, to)
}

// output runs a program; its messages are in the error.
func output(name string, args ...string) ([]byte, error) {
	var said strings.Builder
	c := exec.Command(name, args...)
	c.Stderr = &said
	raw, err := c.Output()
	if err != nil {
		lines := strings.Split(strings.TrimSpace(said.String()), "\n")
		return nil, fmt.Errorf("%s: %w: %s", args[0], err, lines[len(lines)-1])
	}
	return raw, nil
}

func commas(ids []int) string {
	s := make([]string, len(ids))
	for i, id := range ids {
		s[i] = strconv.Itoa(id)
	}
	return strings.Join(s, ",")
}
