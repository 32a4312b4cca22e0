package cost

import "fmt"

// A Plan distributes the layers over stages, in order.
type Plan []Stage

// A Stage has layers lo to hi−1, on its ranks.
type Stage struct {
	Ranks  []int // device numbers
	Lo, Hi int
}

// String returns the plan as a device string.
func (p Plan) String() string {
	text := ""
	for i, s := range p {
		if i > 0 {
			text += ";"
		}
		for j, d := range s.Ranks {
			if j > 0 {
				text += "&"
			}
			text += fmt.Sprint(d)
		}
		if n := s.share(p); n > 0 {
			text += fmt.Sprintf("*%d", n)
		}
	}
	return text
}

// share returns the suffix of a group with an uneven number of layers.
func (s Stage) share(p Plan) int {
	each := (p[len(p)-1].Hi + len(p) - 1) / len(p)
	for i, q := range p {
		if q.Lo != min(i*each, p[len(p)-1].Hi-(len(p)-i)) {
			return s.Hi - s.Lo
		}
	}
	return 0
}

// Spread distributes layers over stages with this many ranks each, by ceiling
// division as the pass partition does.
func Spread(layers, stages, tpSize int) Plan {
	each := (layers + stages - 1) / stages
	var p Plan
	for i := range stages {
		s := Stage{Lo: min(i*each, layers-(stages-i)), Hi: min((i+1)*each, layers-(stages-1-i))}
		for j := range tpSize {
			s.Ranks = append(s.Ranks, i*tpSize+j)
		}
		p = append(p, s)
	}
	return p
}

// A Load is the number of sequences and their length.
type Load struct {
	Sequences int
	Context   int // tokens of each
}

// A Prediction is the result of a plan under a load.
type Prediction struct {
	Plan       Plan
	Need       []int64 // bytes on each rank of each stage
	Missing    int64   // bytes missing on the fullest device; 0: everything fits
	Decode     Range   // tokens per second of a single sequence
	Throughput Range   // of all sequences
	Together   int     // sequences in a step of a stage
	Sends      float64 // bytes that a rank of the first stage sends per token
}

// Scratch is the assumed memory of a device besides weights and KV cache.
const Scratch = 512 << 20

// cells is how many times a sequence holds its fixed-size states, roughly: two cells,
// each with the contributions of 16 rows (docs/decisions/071-cells-of-16-rows.md).
const cells = 3

// Predict estimates a plan. The sequences are divided among as many steps in
// flight as there are stages.
func (c *Model) Predict(m *Machine, p Plan, load Load) Prediction {
	r := Prediction{Plan: p, Together: max(1, (load.Sequences+len(p)-1)/len(p))}
	for i, s := range p {
		need := c.need(p, i, load)
		r.Need = append(r.Need, need)
		for _, d := range s.Ranks {
			r.Missing = max(r.Missing, need-m.Devices[d].Memory)
		}
	}
	at := func(luck int) (decode, all float64) {
		one, slowest, round := 0.0, 0.0, 0.0
		for i := range p {
			one += c.stage(m, p, i, 1, load.Context, luck)
			t := c.stage(m, p, i, float64(r.Together), load.Context, luck)
			slowest, round = max(slowest, t), round+t
		}
		steps := (load.Sequences + r.Together - 1) / r.Together
		return 1 / one, float64(load.Sequences) / max(float64(steps)*slowest, round)
	}
	r.Decode.Low, r.Throughput.Low = at(-1)
	r.Decode.Mid, r.Throughput.Mid = at(0)
	r.Decode.High, r.Throughput.High = at(1)
	for _, l := range c.Layers[p[0].Lo:p[0].Hi] {
		for _, floats := range l.Gives {
			r.Sends += m.Group.sends(len(p[0].Ranks), float64(floats))
		}
	}
	if len(p) > 1 {
		r.Sends += float64(c.Hidden * m.Border.Float)
	}
	return r
}

// need returns the memory of each rank of a stage.
func (c *Model) need(p Plan, i int, load Load) int64 {
	n, sum := len(p[i].Ranks), int64(0)
	for _, l := range c.Layers[p[i].Lo:p[i].Hi] {
		kept := l.RowBytes*int64(load.Context) + cells*l.State
		sum += int64(float64(l.Bytes+kept*int64(load.Sequences)) * l.portion(n))
	}
	if i == 0 && (!c.Tied || len(p) > 1) {
		sum += c.Embed
	}
	if i == len(p)-1 {
		sum += c.Head.Bytes / int64(n)
	}
	return sum + Scratch
}

// stage returns the time of a step of rows in a stage, including sending its
// result.
func (c *Model) stage(m *Machine, p Plan, i int, rows float64, context, luck int) float64 {
	s := p[i]
	t := 0.0
	for _, l := range c.Layers[s.Lo:s.Hi] {
		t += c.Layer(m, s, l, rows, context, luck)
	}
	if i == len(p)-1 {
		head := c.Head
		t += c.work(m, s, &head, head.read(rows), rows*head.MACs, luck)
	} else {
		t += m.Border.message(rows*float64(c.Hidden*m.Border.Float), luck)
	}
	return t
}

// Layer returns the time of a layer on the ranks of a stage, including
// exchanges.
func (c *Model) Layer(m *Machine, s Stage, l Part, rows float64, context, luck int) float64 {
	past := rows * float64(context)
	t := c.work(m, s, &l, l.read(rows)+past*float64(l.RowBytes)+rows*float64(l.State), rows*l.MACs+past*l.Attend, luck)
	for _, floats := range l.Gives {
		t += m.Group.exchange(len(s.Ranks), rows*float64(floats), luck)
	}
	return t
}

// work returns the time that the slowest rank needs to read its part of the
// bytes and compute its part of the multiply-adds.
func (c *Model) work(m *Machine, s Stage, l *Part, bytes, macs float64, luck int) float64 {
	worst, part := 0.0, l.portion(len(s.Ranks))
	for _, i := range s.Ranks {
		d := m.Devices[i]
		reach := d.Reach.at(luck)
		worst = max(worst, d.Fixed+max(bytes*part/(d.Read*reach), 2*macs*part/(d.Peak*reach)))
	}
	return worst
}
