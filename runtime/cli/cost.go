//go:build unix

package cli

import (
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A cost is the minimum work of a model, the reference for bench: bytes over
// bandwidth, multiply-adds over peak.
type cost struct {
	weightBytes float64 // read by every step
	headBytes   float64 // of them, read only for output rows
	macs        float64 // multiply-adds per token, without the head
	headMACs    float64 // multiply-adds per output row
	rowBytes    float64 // of KV cache per token
	stateBytes  float64 // of fixed-size states per sequence
	int8        bool    // most multiply-adds are of 8-bit integers
}

// costOf computes a model's cost from its manifest, or from those of its ranks
// if it is partitioned (shares).
func costOf(m *manifest.Manifest, shares []*manifest.Manifest) cost {
	head := 0
	for _, g := range m.Graphs {
		for _, o := range g.Outputs {
			if o.Name == "logits" {
				head = o.Used
			}
		}
	}
	var c cost
	var blocks float64
	for r, share := range shares {
		part := head
		if m.Partition != nil {
			part = (head + m.Partition.Ranks[r].TPSize - 1) / m.Partition.Ranks[r].TPSize
		}
		blocks += c.add(share, part)
	}
	c.int8 = blocks > (c.macs+c.headMACs)/2
	return c
}

// add adds a manifest, and returns how many of its multiply-adds use
// block-quantized weights. A table without a matmul is looked up, not read
// completely. The head is the matrix whose number of rows is that of the
// logits' columns, or a rank's part of it.
func (c *cost) add(m *manifest.Manifest, head int) (blocks float64) {
	multiplied := map[string]bool{}
	for _, s := range m.Matmuls {
		_, weight, _ := strings.Cut(s.Name, ".")
		multiplied[weight] = true
	}
	for _, w := range m.Weights {
		if w.Rows > 1 && (w.Layout == "row" || !multiplied[w.Name]) {
			continue
		}
		c.weightBytes += float64(w.Bytes)
		if w.Layout == "row" {
			continue
		}
		macs := float64(w.Rows) * float64(w.Cols)
		if w.DType.IsBlock() {
			blocks += macs
		}
		if w.Rows >= head && head > 0 {
			c.headMACs += macs
			c.headBytes += float64(w.Bytes)
		} else {
			c.macs += macs
		}
	}
	for _, s := range m.States {
		c.stateBytes += float64(s.CellBytes) * float64(s.Count)
		if s.PageRows > 0 {
			c.rowBytes += float64(s.PageBytes) * float64(s.Count) / float64(s.PageRows)
		}
	}
	return blocks
}

// prompt returns the bytes and operations (two per multiply-add) of batch
// prompts of n tokens in steps of at most budget tokens. Each step reads the
// weights once, and the head once if a prompt ends in it.
func (c *cost) prompt(n, batch, budget int) (bytes, ops float64) {
	steps := float64((n*batch + budget - 1) / budget)
	tokens := float64(n * batch)
	ends := min(steps, float64(batch))
	bytes = steps*(c.weightBytes-c.headBytes) + ends*c.headBytes + tokens*c.rowBytes
	return bytes, 2 * (tokens*c.macs + float64(batch)*c.headMACs)
}

// generate returns the bytes and operations of n decode steps of batch
// sequences with depth tokens in the KV cache. Every step reads the weights and
// each sequence's KV cache and fixed-size states.
func (c *cost) generate(n, batch, depth int) (bytes, ops float64) {
	steps, b := float64(n), float64(batch)
	bytes = steps*c.weightBytes + b*c.rowBytes*steps*((steps+1)/2+float64(depth)) + b*steps*c.stateBytes
	return bytes, 2 * steps * b * (c.macs + c.headMACs)
}
