package cost

import "math"

// Balance returns a plan with its layers distributed so that the slowest stage is
// as fast as possible. The last stage also has the head, which takes as long as
// many layers. A stage gets no more layers than fit into its memory, if the later
// ones have room for them.
func (c *Model) Balance(m *Machine, p Plan, load Load) Plan {
	b := c.balance(m, p, load)
	high := b.ends[len(p)-1].time
	for l := range b.layers[0] {
		most := 0.0
		for i := range p {
			most = max(most, b.layers[i][l].time)
		}
		high += most
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

// A burden is what a layer, or what a stage has besides layers, takes.
type burden struct {
	time float64
	need int64 // bytes of memory
}

// A balance computes the time of stages from that of layers, and of the head
// for the last stage.
type balance struct {
	layers [][]burden // by stage
	ends   []burden   // by stage: besides layers
	room   []int64    // bytes of memory, by stage
}

// balance measures the layers in each stage.
func (c *Model) balance(m *Machine, p Plan, load Load) *balance {
	rows := float64(max(1, (load.Sequences+len(p)-1)/len(p)))
	var b balance
	for i, s := range p {
		end := burden{need: c.ends(p, i)}
		if i == len(p)-1 {
			end.time = c.Layer(m, s, c.Head, rows, 0, 0)
		}
		room := int64(math.MaxInt64)
		for _, d := range s.Ranks {
			room = min(room, m.Devices[d].Memory)
		}
		b.ends, b.room = append(b.ends, end), append(b.room, room)
		if i > 0 && m.alike(p[i-1], s) {
			b.layers = append(b.layers, b.layers[i-1])
			continue
		}
		var times []burden
		for _, l := range c.Layers {
			times = append(times, burden{c.Layer(m, s, l, rows, load.Context, 0), l.need(len(s.Ranks), load)})
		}
		b.layers = append(b.layers, times)
	}
	return &b
}

// alike reports whether layers take as long in two stages of as many ranks.
func (m *Machine) alike(a, b Stage) bool {
	for i := range a.Ranks {
		x, y := m.Devices[a.Ranks[i]], m.Devices[b.Ranks[i]]
		if x.Read != y.Read || x.Peak != y.Peak || x.Reach != y.Reach || x.Fixed != y.Fixed {
			return false
		}
	}
	return m.crosses(a.Ranks) == m.crosses(b.Ranks)
}

// pack fills the stages in order up to a time limit and their memory, but leaves
// at least one layer for each later stage.
func (b *balance) pack(like Plan, limit float64) Plan {
	at := 0
	p := make(Plan, len(like))
	for i := range p {
		p[i] = Stage{Ranks: like[i].Ranks, Lo: at}
		left := len(p) - 1 - i
		sum := b.ends[i]
		for ; at < len(b.layers[i])-left; at++ {
			sum.time += b.layers[i][at].time
			sum.need += b.layers[i][at].need
			if left > 0 && at > p[i].Lo && (sum.time > limit || sum.need > b.room[i]) {
				break
			}
		}
		p[i].Hi = at
	}
	return p
}

// slowest returns the time of the slowest stage; infinity if a stage does not fit
// into its memory.
func (b *balance) slowest(p Plan) (most float64) {
	for i, s := range p {
		sum := b.ends[i]
		for _, l := range b.layers[i][s.Lo:s.Hi] {
			sum.time += l.time
			sum.need += l.need
		}
		if sum.need > b.room[i] {
			return math.Inf(1)
		}
		most = max(most, sum.time)
	}
	return most
}
