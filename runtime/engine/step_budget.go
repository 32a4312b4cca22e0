//go:build unix

package engine

import (
	"math"
	"sort"
	"time"
)

// The least and the first number of prompt tokens of a step whose time is
// limited.
const (
	leastChunk = 16
	firstChunk = 64
)

// paceMemory is the weight of earlier steps against the next one: of some 50
// steps, so that the estimate follows a machine whose load changes.
const paceMemory = 0.98

// A pace estimates how long a step of n tokens takes, as a line a + b·n fitted
// to the last steps by least squares with decaying weights.
type pace struct {
	w, n, nn, t, nt float64 // sums of weights, tokens, tokens², seconds, tokens·seconds
}

// Steps that take unusually long, because something else ran meanwhile, count
// as three of their size, once so many steps are known.
const (
	unusual = 3
	known   = 8
)

// measure takes a step into account.
func (p *pace) measure(tokens int, d time.Duration) {
	n, t := float64(tokens), d.Seconds()
	if p.w > known {
		fixed, perToken := p.line()
		t = min(t, unusual*(fixed+perToken*n))
	}
	p.w = p.w*paceMemory + 1
	p.n = p.n*paceMemory + n
	p.nn = p.nn*paceMemory + n*n
	p.t = p.t*paceMemory + t
	p.nt = p.nt*paceMemory + n*t
}

// line is the estimate: seconds of any step and seconds more for each token.
// Steps of one size say nothing of the slope; then all time counts as the
// tokens', which errs on the side of shorter steps.
func (p *pace) line() (fixed, perToken float64) {
	if p.n == 0 {
		return 0, 0
	}
	spread := p.w*p.nn - p.n*p.n
	if spread > 1e-3*p.nn*p.w {
		perToken = (p.w*p.nt - p.n*p.t) / spread
		fixed = (p.t - perToken*p.n) / p.w
	}
	if perToken <= 0 || fixed < 0 {
		return 0, p.t / p.n
	}
	return fixed, perToken
}

// idleFactor is how much longer than the limit a step may take while no
// sequence is in decoding: nobody waits for a next token then, and of requests
// that come together more get their first one.
const idleFactor = 5

// beside is how many times as long as without them a step with prompts may take,
// where many sequences are in decoding.
const beside = 1.5

// room is how many tokens of prompts a step may take beside those that are in
// it already, which sequences in decoding wait for; live is how many sequences
// there are. The step is to last about the time given, or beside times as long
// as one in which all of them are in decoding, whichever is longer. No limit: as
// many as fit.
func (p *pace) room(limit time.Duration, decoding, live int) int {
	if limit <= 0 {
		return 1 << 30
	}
	fixed, perToken := p.line()
	if perToken <= 0 {
		return firstChunk
	}
	if decoding == 0 {
		limit *= idleFactor
	}
	most := max(limit.Seconds(), beside*(fixed+perToken*float64(live)))
	left := most - fixed - perToken*float64(decoding)
	return max(leastChunk, int(min(left/perToken, 1<<30)))
}

// togetherFactor is how much longer still a step may take in which prompts are
// read that begin together: larger steps read faster, and nobody of them has
// anything from an earlier one's end.
const togetherFactor = 2

// promptRoom is how many tokens of prompts, in their order, a step may take
// beside those that it has already. Where the first of them is short, begins
// alone, and they do not all fit, the step ends soon after it.
func (e *Engine) promptRoom(taken int, prompts []*sequence) int {
	if p := e.pressure(); !math.IsInf(p, 1) {
		return e.roomBeside(taken, p)
	}
	limit := e.opt.StepTime
	if e.together {
		limit *= togetherFactor
	}
	room := max(leastChunk, e.pace.room(limit, 0, len(e.seqs))-taken)
	all := 0
	for _, s := range prompts {
		all += s.pending()
	}
	if !e.together && all > room && prompts[0].pending()*idleFactor < room {
		room /= idleFactor
	}
	return room
}

// longest is how many times as long as one in which all sequences are in decoding
// a step with prompts may take where as many wait as are in decoding: of a small
// model with few sequences, steps of the limit's length would be several times as
// long as the others.
const longest = 2

// rowsOfTile are the rows that most kernels compute together: a tile that is not
// full takes nearly as long.
const rowsOfTile = 16

// roomBeside is how many tokens of prompts a step may take beside those of
// sequences in decoding: a little less than there is time for where the last of
// them would begin a tile. What a longer step costs each in decoding it saves
// each that waits: where these are fewer it is shorter, and where they are more it
// may take so many times as long, up to what it may where nobody is in decoding.
func (e *Engine) roomBeside(taken int, pressure float64) int {
	fixed, perToken := e.pace.line()
	times := beside + (longest-beside)*min(pressure, 1)
	most := time.Duration(times * (fixed + perToken*float64(len(e.seqs))) * float64(time.Second))
	longer := min(max(pressure, 1), idleFactor*togetherFactor)
	if e.together { // few large steps hold those in decoding up no longer than many
		longer = idleFactor * togetherFactor
	}
	room := e.pace.room(time.Duration(longer*float64(min(e.opt.StepTime, most))), max(taken, 1), len(e.seqs))
	if over := (taken + room) % rowsOfTile; over <= rowsOfTile/2 && over < room {
		room -= over
	}
	return room
}

// draftFactor is how many times as long as one of a single token a step with
// drafts may take. Up to there reading the weights is most of it, and further
// tokens cost little. Beyond they cost as much as those of other sequences, all
// of which wait, perhaps for nothing.
const draftFactor = 2

// draftLimit is how many drafted tokens a step may take beside those in decoding,
// where its time is limited. With less than one for each there are none: a few
// are no gain, and who is ahead of the others by one token asks again while they
// are in decoding, so that everybody's prompts are read in pieces.
func (e *Engine) draftLimit(decoding int) int {
	if e.opt.StepTime <= 0 {
		return 1 << 30
	}
	most := draftFactor * e.times.step(1)
	n := sort.Search(timed-min(decoding, timed), func(n int) bool { return e.times.step(decoding+n+1) > most })
	if n < decoding {
		return 0
	}
	return n
}
