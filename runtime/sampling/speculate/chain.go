package speculate

import (
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// A ChainRun runs a model's chained head once: on the model's own state behind
// the last accepted token (state nil) or on one that the head gave, and on the
// token chosen behind it. It gives the logits of the token that follows, and
// behind them the state, in place of what row held; nil: it could not.
type ChainRun func(row, state []float32, token int32) []float32

// A Chainer is a Drafter that guesses by a chained head, which Chain gives it
// before Propose; it may be run until Propose returns.
type Chainer interface {
	Drafter
	Chain(run ChainRun)
}

// chainRanks is how many guesses behind a node are considered; only the best is
// gone on from.
const chainRanks = 3

// What a prior of a guess's record weighs in observations, and what its past
// weighs against one.
const (
	chainPrior  = 16
	chainMemory = 64
)

// Guesses are sorted by how far the largest logit is above the second;
// chainPriors are how often those of a class are right before anything is known:
// what SmolLM2's head does on texts that it was not trained on.
var (
	chainMargins = [...]float32{0.25, 0.5, 1, 1.5, 2.5, 4, 6}
	chainPriors  = [len(chainMargins) + 1]float64{0.22, 0.28, 0.38, 0.56, 0.72, 0.91, 0.97, 0.98}
	chainShares  = [chainRanks]float64{1, 0.24, 0.11} // of the second and third: of what the first leaves
)

// chainLate is how often a first guess is right, before anything is known.
const chainLate = 0.46

// A Chain drafts with a model's chained head: its greedy path, as
// far as the next is expected to pay for its run of the head, and beside it
// those second and third guesses that pay for their place in the step.
type Chain struct {
	columns, most int
	tokens        []int32 // of the columns; nil: the first of the vocabulary

	run    ChainRun
	row    []float32
	record [len(chainPriors)][chainRanks]Rate
	late   Rate // of first guesses of all classes
	levels []chainLevel
	tree   Tree
	places []int32 // scratch: node of each guess

	backoff Backoff
}

// A chainLevel holds the guesses of one run of the head.
type chainLevel struct {
	class int
	guess [chainRanks]int32
	n     int // of them
}

// NewChain makes the drafter of one sequence.
func NewChain(m *manifest.Medusa) *Chain {
	d := &Chain{columns: m.Columns, most: m.Heads, tokens: m.Tokens, late: Rate{chainLate, chainPrior}}
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
	if d.backoff.Active() && room.Time != nil { // where steps cost nothing it does not rest
		d.backoff.Step()
		return Draft{}
	}
	each := room.HeadTime // a run is for all sequences that draft
	late := d.late.Value
	if room.Length(func(int) float64 { return late }, d.most, each) == 0 {
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

// grow runs the head along its greedy path, as long as one more is expected
// to pay; late is how often guesses are right that were not made yet.
func (d *Chain) grow(token int32, run ChainRun, room Room, each, late float64) {
	accepted, reach := 0.0, 1.0
	var state []float32
	for n := 1; n <= min(d.most, room.Nodes); n++ {
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
		token = level.guess[0]
	}
}

// level ranks the best guesses of a row.
func (d *Chain) level(row []float32) chainLevel {
	var tops [chainRanks]int32
	var values [chainRanks]float32
	ids, best := largest(tops[:0], values[:0], row, min(chainRanks, len(row)))
	l := chainLevel{n: len(ids)}
	for i, id := range ids {
		if l.guess[i] = id; d.tokens != nil {
			l.guess[i] = d.tokens[id]
		}
	}
	if len(best) > 1 {
		for l.class < len(chainMargins) && best[0]-best[1] >= chainMargins[l.class] {
			l.class++
		}
	}
	return l
}

// pick makes the tree of the guesses that pay: the most likely of all, as many as
// give the most tokens a unit of time.
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

// A chainGuess is a guess of a level, and how likely it is reached and right.
type chainGuess struct {
	level, rank int
	p           float64
}

// plant lays guesses out as a tree; those whose parents are not among them, which
// may be when records of a class put a later guess first, are left out.
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
		d.tree.Tokens = append(d.tree.Tokens, d.levels[g.level].guess[g.rank])
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
			d.record[l.class][r].observe(tokens[i] == l.guess[r], chainMemory)
		}
		d.late.observe(tokens[i] == l.guess[0], chainMemory)
		if tokens[i] != l.guess[0] {
			break
		}
	}
	d.levels = d.levels[:0]
}
