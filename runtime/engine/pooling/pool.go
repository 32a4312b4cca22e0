// Package pooling makes one vector of the states of a text's tokens.
package pooling

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// Of is how a model's files make vectors: the pooling, and whether vectors are
// scaled to length 1. Files that do not say: mean.
func Of(m *manifest.Manifest) (pooling string, normalize bool, err error) {
	e := m.Embedding
	switch {
	case e == nil:
		return "mean", false, nil
	case e.Missing != "":
		return "", false, fmt.Errorf("the embeddings of %s take a module that is not available: %s; --pooling mean gives what it would read", m.Name, e.Missing)
	}
	return e.Pooling, e.Normalize, nil
}

// A Pool gathers the rows of one text.
type Pool struct {
	first, last []float32
	sum         []float64 // of rows, each times its weight
	n           int
	weight      float64 // of all rows
}

// Add takes the next token's state; pooling is mean, cls, last, max, weighted, sqrt or pooler, the same for
// all of a text.
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
	case "weighted": // by position, from 1 on (Muennighoff 2022)
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

// Vector is the text's vector.
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
