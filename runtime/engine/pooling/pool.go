// Package pooling combines the hidden states of a text's tokens into one vector.
package pooling

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// Of returns the pooling method that the model's files declare, and whether vectors are
// scaled to length 1. The default is mean without scaling.
func Of(m *manifest.Manifest) (pooling string, normalize bool, err error) {
	e := m.Embedding
	switch {
	case e == nil:
		return "mean", false, nil
	case e.Missing != "":
		return "", false, fmt.Errorf("embeddings of %s need a module that iflowc does not support: %s; --pooling mean returns the module's input", m.Name, e.Missing)
	}
	return e.Pooling, e.Normalize, nil
}

// A Pool accumulates the rows of one text.
type Pool struct {
	first, last []float32
	sum         []float64 // weighted sum of the rows
	n           int
	weight      float64 // sum of the rows' weights
}

// Add adds the hidden state of the next token. pooling is mean, cls, last, max,
// weighted, sqrt or pooler, and the same for all tokens of a text.
func (p *Pool) Add(row []float32, pooling string) {
	if p.n == 0 {
		p.first = append(p.first, row...)
		p.sum = make([]float64, len(row))
	}
	p.n++
	weight := 1.0
	switch pooling {
	case "last":
		p.last = append(p.last[:0], row...)
		return
	case "max":
		for i, v := range row {
			p.first[i] = max(p.first[i], v)
		}
		return
	case "weighted": // weight by position, counted from 1 (SGPT, Muennighoff 2022)
		weight = float64(p.n)
	case "mean", "sqrt":
	default:
		return
	}
	p.weight += weight
	for i, v := range row {
		p.sum[i] += weight * float64(v)
	}
}

// Vector returns the vector of the text, scaled to length 1 if normalize is set.
func (p *Pool) Vector(pooling string, normalize bool) []float32 {
	v, by := p.first, 0.0
	switch pooling {
	case "last":
		v = p.last
	case "mean", "weighted":
		by = p.weight
	case "sqrt":
		by = math.Sqrt(p.weight)
	}
	if by > 0 {
		for i := range v {
			v[i] = float32(p.sum[i] / by)
		}
	}
	if !normalize {
		return v
	}
	square := 0.0
	for _, x := range v {
		square += float64(x) * float64(x)
	}
	scale := 1 / max(math.Sqrt(square), 1e-12)
	for i := range v {
		v[i] = float32(float64(v[i]) * scale)
	}
	return v
}
