package decode

import (
	"cmp"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
)

// typicalRule is typical acceptance with the settings' numbers.
func (c *Sampler) typicalRule() medusa.Typical {
	return medusa.Typical{
		Threshold: cmp.Or(c.set.Epsilon, medusa.DefaultThreshold), Alpha: cmp.Or(c.set.Alpha, medusa.DefaultAlpha),
		Temperature: c.set.Temperature,
	}
}

// typical says whether the rule accepts a token. At temperature 0 only the
// most probable is.
func (c *Sampler) typical(logits []float32, drafted int32) bool {
	if c.set.Temperature == 0 {
		top, ok := argmax(logits)
		return ok && int32(top) == drafted
	}
	p, threshold := c.typicalRule().Distribution(logits, nil)
	return p[drafted] > threshold
}

// Path is the way through a draft that the sampler's rule prefers: with typical
// acceptance the longest of which every node is accepted, the most probable among
// equals. parent and tokens are the draft's nodes, row gives the logits behind
// one (-1: behind the text's last token). nil: the rule goes from node to node.
func (c *Sampler) Path(parent, tokens []int32, row func(node int) []float32) []int {
	if _, ok := c.draw.(*StandardSampler); !ok || c.set.Rule != TypicalAcceptance || c.set.Temperature == 0 || !c.plain {
		return nil
	}
	if path := c.typicalRule().Walk(parent, tokens, row); path != nil {
		return path
	}
	return []int{}
}
