package speculate

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A ChainRun runs a model's autoregressive draft head (Hydra) once. Its input is the
// hidden state at the last accepted token (state nil), or a state that an earlier run
// returned, and the token chosen after it. It returns the logits of the next token
// followed by the head's state, in row's memory, or nil after an error.
type ChainRun func(row, state []float32, token int32) []float32

// A Chainer is a Drafter that uses an autoregressive draft head. Chain is called before
// Propose; run is valid until Propose returns.
type Chainer interface {
	Drafter
	Chain(run ChainRun)
}

// chainRanks is the number of candidates per run of the head. Only the best one is
// continued.
const chainRanks = 3

// Weights of acceptance rates: the prior's, in observations, and the maximum weight of
// the past.
const (
	chainPrior  = 16
	chainMemory = 64
)

// chainMargins classify candidates by the distance between the two largest logits.
// chainPriors are the acceptance rates of the classes before any are measured: those of
// SmolLM2's head on texts that it was not trained on.
var (
	chainMargins = [...]float32{0.25, 0.5, 1, 1.5, 2.5, 4, 6}
	chainPriors  = [len(chainMargins) + 1]float64{0.22, 0.28, 0.38, 0.56, 0.72, 0.91, 0.97, 0.98}
	chainShares  = [chainRanks]float64{1, 0.24, 0.11} // factors for the first, second and third candidate; the latter two apply to 1 - the first's rate
)

// chainLate is the prior acceptance rate of first candidates over all classes.
const chainLate = 0.46

// A Chain drafts with an autoregressive draft head. It extends the greedy path while
// the expected gain exceeds the cost of another run, then adds second- and third-ranked
// candidates that pay for their place in the step.
type Chain struct {
	columns, depth int
	tokens         []int32 // token of each column; nil: the column's index

	run    ChainRun
	row    []float32
	record [len(chainPriors)][chainRanks]Rate
	late   Rate // acceptance rate of first candidates, all classes
	levels []chainLevel
	tree   Tree
	places []int32 // scratch: node of the first candidate of each level

	backoff Backoff
}

// A chainLevel holds the candidates of one run of the head.
type chainLevel struct {
	class  int
	tokens [chainRanks]int32
	n      int // number of candidates
}

// NewChain returns the drafter of one sequence.
func NewChain(m *manifest.Medusa) *Chain {
	d := &Chain{columns: m.Columns, depth: m.Heads, tokens: m.Tokens, late: Rate{chainLate, chainPrior}}
	for i, p := range chainPriors {
		d.record[i][0] = Rate{p, chainPrior}
		for r := 1; r < chainRanks; r++ {
			d.record[i][r] = Rate{(1 - p) * chainShares[r], chainPrior}
		}
	}
	return d
}

// Chain implements Chainer.
func (d *Chain) Chain(run ChainRun) { d.run = run }

// Propose implements Drafter.
func (d *Chain) Propose(history []int32, room Room) Draft {
	run := d.run
	d.run, d.levels = nil, d.levels[:0]
	if room = room.Open(); run == nil || room.Nodes < 1 {
		return Draft{}
	}
	if d.backoff.Active() && room.Time != nil { // no back-off if steps cost nothing
		d.backoff.Step()
		return Draft{}
	}
	each := room.HeadTime // one run serves all sequences that draft
	late := d.late.Value
	if room.Length(func(int) float64 { return late }, d.depth, each) == 0 {
		d.backoff.Failed()
		return Draft{}
	}
	d.grow(history[len(history)-1], run, room, each, late)
	d.pick(room, each)
	if d.tree.Len() > 0 {
		d.backoff.Reset()
	}
	return Draft{Tree: d.tree}
}

// grow runs the head along its greedy path while one more run is expected to pay; late
// is the expected acceptance rate of candidates that are not computed yet.
func (d *Chain) grow(token int32, run ChainRun, room Room, each, late float64) {
	accepted, reach := 0.0, 1.0
	var state []float32
	for n := 1; n <= min(d.depth, room.Nodes); n++ {
		if n > 1 {
			now := room.Rate(accepted, n-1, each*float64(n-1))
			if room.Time != nil && room.Rate(accepted+reach*late, n, each*float64(n)) <= now {
				return
			}
		}
		if d.row = run(d.row, state, token); d.row == nil {
			return
		}
		state = d.row[d.columns:]
		level := d.level(d.row[:d.columns])
		d.levels = append(d.levels, level)
		reach *= d.record[level.class][0].Value
		accepted += reach
		token = level.tokens[0]
	}
}

// level ranks the best candidates of a row.
func (d *Chain) level(row []float32) chainLevel {
	var tops [chainRanks]int32
	var values [chainRanks]float32
	ids, best := largest(tops[:0], values[:0], row, min(chainRanks, len(row)))
	l := chainLevel{n: len(ids)}
	for i, id := range ids {
		if l.tokens[i] = id; d.tokens != nil {
			l.tokens[i] = d.tokens[id]
		}
	}
	if len(best) > 1 {
		for l.class < len(chainMargins) && best[0]-best[1] >= chainMargins[l.class] {
			l.class++
		}
	}
	return l
}

// pick builds the tree of the most probable candidates, as many as maximize the
// expected tokens per unit of time.
func (d *Chain) pick(room Room, each float64) {
	var all []chainGuess
	reach := 1.0
	for i, l := range d.levels {
		for r := range l.n {
			all = append(all, chainGuess{i, r, reach * d.record[l.class][r].Value})
		}
		reach *= d.record[l.class][0].Value
	}
	slices.SortStableFunc(all, func(a, b chainGuess) int {
		switch {
		case a.p > b.p:
			return -1
		case a.p < b.p:
			return 1
		}
		return 0
	})
	spent := each * float64(len(d.levels))
	best, at, accepted := room.Rate(0, 0, spent), 0, 0.0
	for n := 1; n <= min(len(all), room.Nodes); n++ {
		accepted += all[n-1].p
		if rate := room.Rate(accepted, n, spent); rate > best {
			best, at = rate, n
		}
	}
	d.plant(all[:at])
}

// A chainGuess is a candidate of a level with the probability that it is reached and
// accepted.
type chainGuess struct {
	level, rank int
	p           float64
}

// plant builds a tree of candidates. It drops those with a parent that is not among
// them, which can happen because the measured rates do not always fall with the rank.
func (d *Chain) plant(guesses []chainGuess) {
	slices.SortFunc(guesses, func(a, b chainGuess) int { return (a.level-b.level)*chainRanks + a.rank - b.rank })
	d.tree.Tokens, d.tree.Parent = d.tree.Tokens[:0], d.tree.Parent[:0]
	d.places = append(d.places[:0], -1)
	for _, g := range guesses {
		if g.level >= len(d.places) {
			continue
		}
		if g.rank == 0 {
			d.places = append(d.places, int32(d.tree.Len()))
		}
		d.tree.Tokens = append(d.tree.Tokens, d.levels[g.level].tokens[g.rank])
		d.tree.Parent = append(d.tree.Parent, d.places[g.level])
	}
}

// Observe implements Drafter.
func (d *Chain) Observe(tokens []int32) {
	for i, l := range d.levels {
		if i == len(tokens) {
			break
		}
		for r := range l.n {
			d.record[l.class][r].observe(tokens[i] == l.tokens[r], chainMemory)
		}
		d.late.observe(tokens[i] == l.tokens[0], chainMemory)
		if tokens[i] != l.tokens[0] {
			break
		}
	}
	d.levels = d.levels[:0]
}
