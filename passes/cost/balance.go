package cost

// Balance is Spread with layers distributed so that the slowest stage is as
// fast as possible. The last stage also has the head, which takes as long as
// many layers.
func (c *Model) Balance(m *Machine, stages, tpSize int, load Load) Plan {
	p := Spread(len(c.Layers), stages, tpSize)
	rows := float64(max(1, (load.Sequences+stages-1)/stages))
	b := balance{head: c.Layer(m, p[0], c.Head, rows, 0, 0)}
	high := b.head
	for _, l := range c.Layers {
		t := c.Layer(m, p[0], l, rows, load.Context, 0)
		b.layers = append(b.layers, t)
		high += t
	}
	best, low := b.slowest(p), 0.0
	for range 50 {
		limit := (low + high) / 2
		q := b.pack(p, limit)
		t := b.slowest(q)
		if t > limit {
			low = limit
			continue
		}
		if high = limit; t < best {
			p, best = q, t
		}
	}
	return p
}

// A balance computes the time of stages from that of layers, and of the head
// for the last stage.
type balance struct {
	layers []float64
	head   float64
}

// pack fills the stages in order up to a time limit, but leaves at least one
// layer for each later stage.
func (b *balance) pack(like Plan, limit float64) Plan {
	at := 0
	p := make(Plan, len(like))
	for i := range p {
		p[i] = Stage{Ranks: like[i].Ranks, Lo: at}
		left := len(p) - 1 - i
		for sum := 0.0; at < len(b.layers)-left; at++ {
			sum += b.layers[at]
			if left > 0 && at > p[i].Lo && sum > limit {
				break
			}
		}
		p[i].Hi = at
	}
	return p
}

// slowest returns the time of the slowest stage.
func (b *balance) slowest(p Plan) (most float64) {
	for i, s := range p {
		sum := 0.0
		if i == len(p)-1 {
			sum = b.head
		}
		for _, t := range b.layers[s.Lo:s.Hi] {
			sum += t
		}
		most = max(most, sum)
	}
	return most
}
