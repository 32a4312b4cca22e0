package templates

import (
	"math"
	"slices"
)

// randomSelection draws the positions that each token sees, its own included.
func (c *attentionCase) randomSelection() {
	c.top = pick(c.r, 1, 5, 40, 100)
	for _, own := range c.pos {
		at := c.r.Perm(int(own))
		at = append(at[:min(len(at), c.top-1)], int(own))
		slices.Sort(at)
		for i := range c.top {
			p := math.Inf(1)
			if i < len(at) {
				p = float64(at[i])
			}
			c.selected = append(c.selected, float32(p))
		}
	}
}
