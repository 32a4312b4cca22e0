//go:build unix

package cli

import (
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A cost is the least work of the steps of one graph, the reference for bench: the bytes
// that each region must read and the operations that it must do.
type cost struct {
	regions     []regionCost
	weightBytes float64 // of all matrices of the graph
	stateBytes  float64 // of fixed-size states per sequence
	// adapterBytes is the size of the adapter of all sequences, float32 matrices that every
	// token is multiplied with.
	adapterBytes float64
}

// A regionCost is the work of one region in a step.
type regionCost struct {
	rows     string // role of its rows
	calls    float64
	products []productCost
	kv       *manifest.Attention // nil: reads no KV cache
	rowBytes float64             // of kv, per row and call
}

// A productCost is a matmul with one matrix, or with the experts that its rows choose.
type productCost struct {
	kernel  string  // key of kernelPeaks
	int8    bool    // multiplies 8-bit integers
	bytes   float64 // of the matrix
	macs    float64 // multiply-adds per row of the matmul
	rows    float64 // of the matmul, per row of the region
	experts float64 // 0: every row uses the one matrix
}

// work is what a step does at least. seconds needs the machine's limits; 0: unknown.
type work struct {
	bytes, ops, int8Ops, seconds float64
}

func (w *work) add(o work) {
	w.bytes += o.bytes
	w.ops += o.ops
	w.int8Ops += o.int8Ops
	w.seconds += o.seconds
}

// costOf computes the cost of a graph from a model's manifest, or from those of its
// ranks if it is partitioned.
func costOf(graph string, shares []*manifest.Manifest) cost {
	var c cost
	for _, m := range shares {
		for i := range m.Regions {
			if r := &m.Regions[i]; r.Graph == graph {
				c.regions = append(c.regions, costOfRegion(m, r))
			}
		}
		for _, s := range m.States {
			c.stateBytes += float64(s.CellBytes) * float64(s.Count)
		}
	}
	for _, r := range c.regions {
		for _, p := range r.products {
			c.weightBytes += r.calls * p.bytes * max(p.experts, 1)
		}
	}
	return c
}

func costOfRegion(m *manifest.Manifest, r *manifest.Region) regionCost {
	c := regionCost{rows: r.Rows, calls: float64(r.Calls), kv: r.Attention}
	for _, p := range r.Products {
		s := &m.Matmuls[p.Matmul]
		c.products = append(c.products, productCost{
			kernel: kernelOf(s.DType, s.Act), int8: s.Act != "f32" && s.Act != "bf16", bytes: matrixBytes(m, p.Weight),
			macs: float64(s.N) * float64(s.K), rows: float64(p.Rows), experts: float64(p.Experts),
		})
	}
	if r.Attention != nil {
		for _, s := range m.States {
			if s.Name == r.Attention.State && s.PageRows > 0 {
				c.rowBytes = float64(s.PageBytes) / float64(s.PageRows)
			}
		}
	}
	return c
}

// matrixBytes returns the size of one element of a weight.
func matrixBytes(m *manifest.Manifest, name string) float64 {
	for _, w := range m.Weights {
		if w.Name == name {
			return float64(w.Bytes)
		}
	}
	return 0
}

// A segment is what a step computes of one sequence: rows from position at on. The last
// one may be an output row.
type segment struct{ at, rows, out int }

// step returns the least work of a step. Its seconds are the sum over the regions of
// the larger of the times for memory and for arithmetic.
func (c *cost) step(segments []segment, l *limits) (sum work) {
	tokens, outs := 0, 0
	for _, s := range segments {
		tokens += s.rows
		outs += s.out
	}
	rows := map[string]float64{"tokens": float64(tokens), "out_rows": float64(outs), "sequences": float64(len(segments))}
	for i := range c.regions {
		r := &c.regions[i]
		n := rows[r.rows]
		if n == 0 {
			continue
		}
		for _, p := range r.products {
			sum.add(p.work(n, r.calls, l))
		}
		if r.kv != nil {
			sum.add(r.attention(segments, l))
		}
	}
	states := float64(len(segments)) * c.stateBytes
	sum.add(l.work(states, 0, 0))
	sum.add(l.work(c.adapterBytes, 2*c.adapterBytes/4*float64(tokens), l.F32GOPS))
	return sum
}

func (p *productCost) work(rows, calls float64, l *limits) work {
	n, matrices := rows*p.rows, 1.0
	if p.experts > 0 { // the expected number of experts that rows of independent choices use
		matrices = p.experts * (1 - math.Pow(1-p.rows/p.experts, rows))
	}
	w := l.work(calls*matrices*p.bytes, 2*calls*n*p.macs, l.Kernels[p.kernel])
	if p.int8 {
		w.int8Ops = w.ops
	}
	return w
}

// attention returns the work of all calls of an attention: it reads each visible row of
// the KV cache once.
func (r *regionCost) attention(segments []segment, l *limits) (sum work) {
	windows := r.kv.Windows
	if len(windows) == 0 {
		windows = []int{0}
	}
	for _, window := range windows {
		var read, pairs float64
		for _, s := range segments {
			n, p := visible(s, window, r.kv.Causal)
			read, pairs = read+n, pairs+p
		}
		calls := r.calls / float64(len(windows))
		sum.add(l.work(calls*read*r.rowBytes, 2*calls*pairs*float64(r.kv.MACs), l.F32GOPS))
	}
	return sum
}

// visible returns how many rows of the KV cache a segment reads, and the sum of those
// that each of its rows sees.
func visible(s segment, window int, causal bool) (read, pairs float64) {
	if !causal {
		n := s.at + s.rows
		return float64(n), float64(n) * float64(s.rows)
	}
	for i := s.at; i < s.at+s.rows; i++ {
		sees := i + 1
		switch {
		case window > 0:
			sees = min(sees, window)
		case window < 0:
			sees = i%-window + 1
		}
		pairs += float64(sees)
		if i == s.at {
			read = float64(sees + s.rows - 1)
		}
	}
	return read, pairs
}

// prompt returns the work of batch prompts of n tokens in steps of at most budget tokens.
func (c *cost) prompt(n, batch, budget int, l *limits) (sum work) {
	var step []segment
	left := budget
	for range batch {
		for at := 0; at < n; {
			rows := min(n-at, left)
			s := segment{at: at, rows: rows}
			if at += rows; at == n {
				s.out = 1
			}
			step = append(step, s)
			if left -= rows; left == 0 {
				sum.add(c.step(step, l))
				step, left = step[:0], budget
			}
		}
	}
	if len(step) > 0 {
		sum.add(c.step(step, l))
	}
	return sum
}

// generate returns the work of n decode steps of batch sequences with depth tokens in
// the KV cache.
func (c *cost) generate(n, batch, depth int, l *limits) (sum work) {
	step := make([]segment, batch)
	for i := range n {
		for q := range step {
			step[q] = segment{at: depth + i, rows: 1, out: 1}
		}
		sum.add(c.step(step, l))
	}
	return sum
}

// encode returns the work of sentences of the given lengths in batches.
func (c *cost) encode(sentences [][]int32, batch int, l *limits) (sum work) {
	for lo := 0; lo < len(sentences); lo += batch {
		var step []segment
		for _, s := range sentences[lo:min(lo+batch, len(sentences))] {
			step = append(step, segment{rows: len(s), out: 1})
		}
		sum.add(c.step(step, l))
	}
	return sum
}
