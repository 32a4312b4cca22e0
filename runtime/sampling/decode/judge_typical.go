package decode

import (
	"cmp"

	"github.com/iflowc/iflowc/runtime/artifact/medusa"
)

// typicalRule returns the typical acceptance rule of the settings.
func (c *Sampler) typicalRule() medusa.Typical {
	return medusa.Typical{
		Threshold: cmp.Or(c.set.Epsilon, medusa.DefaultThreshold), Alpha: cmp.Or(c.set.Alpha, medusa.DefaultAlpha),
		Temperature: c.set.Temperature,
	}
}

// typical reports whether typical acceptance accepts a token. At temperature 0 it
// accepts only the argmax.
func (c *Sampler) typical(logits []float32, drafted int32) bool {
	if c.set.Temperature == 0 {
		top, ok := argmax(logits)
		return ok && int32(top) == drafted
	}
	p, threshold := c.typicalRule().Distribution(logits, nil)
	return p[drafted] > threshold
}

// Path returns the path through a draft that the acceptance rule prefers. With typical
// acceptance it is the longest accepted path, the most probable among equals. parent
// and tokens are the draft's nodes, and row returns the logits after a node (-1: after
// the last token). nil: the rule judges node by node.
func (c *Sampler) Path(parent, tokens []int32, row func(node int) []float32) []int {
	if _, ok := c.draw.(*StandardSampler); !ok || c.set.Rule != TypicalAcceptance || c.set.Temperature == 0 || !c.plain {
		return nil
	}
	if path := c.typicalRule().Walk(parent, tokens, row); path != nil {
		return path
	}
	return []int{}
}
