//go:build unix

package cli

import (
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A cost is the minimum work of a model, which bench compares with: bytes over
// bandwidth, multiply-adds over peak.
type cost struct {
	weightBytes float64 // read by every step
	headBytes   float64 // of them, read only for output rows
	macs        float64 // multiply-adds a token, the head's left out
	headMACs    float64 // multiply-adds an output row
	rowBytes    float64 // of state a token
	int8        bool    // most multiply-adds are of 8-bit integers
}

// costOf reads a model's cost from its manifest, and from those of its ranks where
// it is partitioned (shares): what all of them read and compute.
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

// add adds what a manifest holds, and returns how many of its multiply-adds are of
// block-quantized weights. A table that no matmul names is looked up, not read
// through. The head is the matrix whose rows are the columns of the logits, or a
// rank's part of them.
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
		if s.PageRows > 0 {
			c.rowBytes += float64(s.PageBytes) * float64(s.Count) / float64(s.PageRows)
		}
	}
	return blocks
}

// prompt is the bytes and operations (two a multiply-add) of batch prompts of
// n tokens in steps of at most budget: each step reads the weights once, the
// head once where a prompt ends.
func (c *cost) prompt(n, batch, budget int) (bytes, ops float64) {
	steps := float64((n*batch + budget - 1) / budget)
	tokens := float64(n * batch)
	ends := min(steps, float64(batch))
	bytes = steps*(c.weightBytes-c.headBytes) + ends*c.headBytes + tokens*c.rowBytes
	return bytes, 2 * (tokens*c.macs + float64(batch)*c.headMACs)
}

// generate is the bytes and operations of n steps of batch sequences that hold
// depth tokens before: every step reads the weights and each sequence's rows so
// far.
func (c *cost) generate(n, batch, depth int) (bytes, ops float64) {
	steps, b := float64(n), float64(batch)
	bytes = steps*c.weightBytes + b*c.rowBytes*steps*((steps+1)/2+float64(depth))
	return bytes, 2 * steps * b * (c.macs + c.headMACs)
}
