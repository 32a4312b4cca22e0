package cost

import (
	"github.com/iflowc/iflowc/ir"
)

// share returns the fraction of the weights on the busiest of n ranks: as the
// pass partition divided them, else as heads.
func (p *Part) share(n int) float64 {
	if f := p.Shares[n]; f > 0 {
		return f
	}
	return p.portion(n)
}

// kept returns the fraction of the KV cache on the busiest of n ranks. Each holds at
// least one head: if there are more ranks than heads, some hold the same.
func (p *Part) kept(n int) float64 {
	if p.Heads == 0 {
		return p.portion(n)
	}
	return max(p.portion(n), 1/float64(p.Heads))
}

// portion returns the fraction of attention on the busiest of n ranks: if heads do
// not divide evenly, that of a rank with one more head.
func (p *Part) portion(n int) float64 {
	if p.Heads == 0 || n >= p.Heads || p.Heads%n == 0 {
		return 1 / float64(n)
	}
	return float64((p.Heads+n-1)/n) / float64(p.Heads)
}

// layersOf calls f with the divided form of each layer.
func (c *Model) layersOf(divided *ir.Module, f func(l *Part, body *ir.Block)) {
	at := 0
	for _, op := range mainGraph(divided).Body.Ops {
		if op.Def.Name != "repeat" {
			continue
		}
		for range op.Int("hi") - op.Int("lo") {
			if at < len(c.Layers) {
				f(&c.Layers[at], op.Body)
			}
			at++
		}
	}
}

// countShares compares the weights of the ranks of a divided module with all. Its
// weights have the size of the largest part, so their number is that of the
// busiest rank.
func (c *Model) countShares(divided *ir.Module, n int) {
	multiplied := map[*ir.Value]bool{}
	var last *ir.Block
	var of Part
	c.layersOf(divided, func(l *Part, body *ir.Block) {
		if body != last {
			last, of = body, partOf(body, multiplied)
		}
		if l.Shares == nil {
			l.Shares = map[int]float64{}
		}
		l.Shares[n] = min(1, float64(of.Weights)/float64(max(1, l.Weights)))
	})
}

// countExchanges counts the exchanges in the divided module.
func (c *Model) countExchanges(divided *ir.Module) {
	c.layersOf(divided, func(l *Part, body *ir.Block) {
		l.Gives, l.Gathers = collectives(body)
	})
	for _, op := range mainGraph(divided).Body.Ops {
		if op.Body != nil && op.Def.Name != "repeat" {
			gives, gathers := collectives(op.Body)
			c.Head.Gives, c.Head.Gathers = append(c.Head.Gives, gives...), append(c.Head.Gathers, gathers...)
		}
	}
}

// collectives returns the columns of a block's sums over ranks, and of its
// gathered values.
func collectives(b *ir.Block) (gives, gathers []int) {
	for op := range b.All() {
		switch {
		case op.Def.Name == "all_gather":
			gathers = append(gathers, op.Results[0].Type.Cols())
		case op.Def.Is(ir.Collective):
			gives = append(gives, op.Args[0].Type.Cols())
		}
	}
	return gives, gathers
}
