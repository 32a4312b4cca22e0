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
	Across     bool    // a TP group is in several hosts
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
		r.Across = r.Across || m.crosses(s.Ranks).remote > 0
		for _, d := range s.Ranks {
			r.Missing = max(r.Missing, need-m.Devices[d].Memory)
		}
	}
	at := func(luck int) (decode, all float64) {
		one, _ := c.pass(m, p, 1, load.Context, luck)
		round, slowest := c.pass(m, p, float64(r.Together), load.Context, luck)
		steps := (load.Sequences + r.Together - 1) / r.Together
		return 1 / one, float64(load.Sequences) / max(float64(steps)*slowest, round)
	}
	r.Decode.Low, r.Throughput.Low = at(-1)
	r.Decode.Mid, r.Throughput.Mid = at(0)
	r.Decode.High, r.Throughput.High = at(1)
	r.Sends = c.sends(m, p)
	return r
}

// sends returns the bytes that a rank of the first stage sends for a token.
func (c *Model) sends(m *Machine, p Plan) (sum float64) {
	n := len(p[0].Ranks)
	for _, l := range c.Layers[p[0].Lo:p[0].Hi] {
		for _, floats := range l.Gives {
			sum += m.Group.sends(n, float64(floats))
		}
	}
	if len(p) > 1 {
		return sum + float64(c.Hidden*m.Border.Float)
	}
	for _, floats := range c.Head.Gathers {
		sum += float64((n-1)*floats*m.Group.Float) / float64(n)
	}
	return sum
}

// need returns the memory of each rank of a stage.
func (c *Model) need(p Plan, i int, load Load) int64 {
	n, sum := len(p[i].Ranks), int64(0)
	for _, l := range c.Layers[p[i].Lo:p[i].Hi] {
		sum += l.need(n, load)
	}
	return sum + c.ends(p, i)
}

// need returns the memory of a layer on each of n ranks.
func (p *Part) need(n int, load Load) int64 {
	kept := float64(p.RowBytes*int64(load.Context)+cells*p.State) * float64(load.Sequences)
	return int64(float64(p.Bytes)*p.share(n) + kept*p.kept(n))
}

// ends returns the memory of each rank of a stage besides its layers.
func (c *Model) ends(p Plan, i int) int64 {
	sum := int64(Scratch)
	if i == 0 && (!c.Tied || len(p) > 1) {
		sum += c.Embed
	}
	if i == len(p)-1 {
		sum += c.Head.Bytes / int64(len(p[i].Ranks))
	}
	return sum
}

// pass returns how long a step of rows takes from its start on rank 0 until rank
// 0 has its results, and how long it occupies the slowest stage.
func (c *Model) pass(m *Machine, p Plan, rows float64, context, luck int) (whole, slowest float64) {
	for i := range p {
		told := m.Told(p, i, rows, context, luck)
		start := max(whole, told)
		whole = start + c.stage(m, p, i, rows, context, luck)
		busy := whole - start
		if i == 0 {
			busy += told
		}
		if i < len(p)-1 {
			work, delay := m.HandOn(p, i, rows*float64(c.Hidden*m.Border.Float), luck)
			whole, busy = whole+work+delay, busy+work
		}
		slowest = max(slowest, busy)
	}
	return whole + m.Answer(p, rows, luck), slowest
}

// stage returns the time of a step of rows in a stage, once its input is there.
func (c *Model) stage(m *Machine, p Plan, i int, rows float64, context, luck int) float64 {
	s := p[i]
	t := 0.0
	for _, l := range c.Layers[s.Lo:s.Hi] {
		t += c.Layer(m, s, l, rows, context, luck)
	}
	if i == len(p)-1 {
		t += c.Layer(m, s, c.Head, rows, 0, luck)
	}
	return t
}

// Layer returns the time of a layer, or of the head, on the ranks of a stage,
// including exchanges.
func (c *Model) Layer(m *Machine, s Stage, l Part, rows float64, context, luck int) float64 {
	past, n := rows*float64(context), len(s.Ranks)
	weights := l.share(n)
	bytes := l.read(rows)*weights + (past*float64(l.RowBytes)+rows*float64(l.State))*l.kept(n)
	t := m.work(s, bytes, rows*l.MACs*weights+past*l.Attend*l.portion(n), luck)
	for _, floats := range l.Gives {
		t += m.Exchange(s, rows*float64(floats), luck)
	}
	for _, floats := range l.Gathers {
		t += m.Gather(s, rows*float64(floats)/float64(n), luck)
	}
	return t
}

// work returns the time that the slowest rank of a stage needs to read bytes and
// compute multiply-adds.
func (m *Machine) work(s Stage, bytes, macs float64, luck int) float64 {
	worst := 0.0
	for _, i := range s.Ranks {
		d := m.Devices[i]
		reach := d.Reach.at(luck)
		worst = max(worst, d.Fixed+max(bytes/(d.Read*reach), 2*macs/(d.Peak*reach)))
	}
	return worst
}
