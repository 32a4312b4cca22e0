package templates

import (
	"math/rand/v2"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// randomBias draws a table of relative biases, with the buckets of T5 for
// either kind of attention.
func (c *attentionCase) randomBias() {
	buckets := 2 * (2 + c.r.IntN(15))
	c.relMax = buckets + c.r.IntN(150)
	c.ldrel = c.heads() + c.r.IntN(5)
	c.rel = normal(c.r, buckets*c.ldrel, 1)
	for d := -c.relMax; d <= c.relMax; d++ {
		c.relBucket = append(c.relBucket, int16(ops.RelBucket(d, buckets, c.relMax, !c.causal)))
	}
}

// randomContent draws keys and queries of relative positions, or one of them.
func (c *attentionCase) randomContent() {
	c.group = 1
	buckets := 2 * (4 + c.r.IntN(60))
	c.relMax = buckets/4 + 2 + c.r.IntN(150)
	o := &ir.Op{Def: ops.Attention}
	o.SetAttr("rel_buckets", buckets)
	o.SetAttr("rel_max", c.relMax)
	o.SetAttr("rel_spacing", pick(c.r, "log", "linear"))
	for d := -c.relMax; d <= c.relMax; d++ {
		c.relBucket = append(c.relBucket, int16(ops.RelIndex(o, d)))
	}
	which := c.r.IntN(3)
	c.ldkeys, c.ldqueries = buckets+c.r.IntN(20), c.heads()*c.dim+c.r.IntN(20)
	if which > 0 {
		c.relKeys = normal(c.r, c.heads()*c.dim*c.ldkeys, 1)
	}
	if which < 2 {
		c.relQueries = normal(c.r, buckets*c.ldqueries, 1)
	}
	if c.alibi != nil {
		c.alibi = normal(c.r, c.heads(), 0.05)
	}
}

func pick[T any](r *rand.Rand, from ...T) T { return from[r.IntN(len(from))] }
