// Package speculate guesses what a sequence goes on with, so that one step of
// the model verifies several tokens. A Drafter makes a tree of tokens, the
// engine computes rows for all of its nodes in one step, and Walk follows the
// tree as far as the tokens agree that the request's own picker draws from
// these rows. The result is what plain decoding gives, with the same bits and
// the same random numbers.
package speculate

import "github.com/iflowc/iflowc/runtime/sampling/decode"

// A Draft is a tree and, where its tokens were drawn, from what.
type Draft struct {
	Tree
	// From has for each node the distribution that its token was drawn from; nil:
	// the drafter has no randomness. Such a draft is a path.
	From [][]decode.TokenProb
}

// A PathSelector selects a path of a tree before its tokens are judged one by one: the
// nodes of a path by the model's logits behind each node (-1: behind the
// sequence's last token); nil: none is preferred.
type PathSelector func(parent, tokens []int32, row func(node int) []float32) []int

// A Drafter guesses for one sequence. It keeps what it measured. Not safe for
// concurrent use.
type Drafter interface {
	// Propose drafts what may follow history (the prompt and what was generated; at
	// least one token), as much of it as pays, at most room.Nodes tokens. No tokens:
	// nothing worth a try. What it returns holds until its next call.
	Propose(history []int32, room Room) Draft
	// Observe tells with which tokens the sequence went on since the last Propose,
	// whether they were drafted or not: at least one.
	Observe(tokens []int32)
}

// A Drawer is a Drafter that can draw its tokens at random, for rules of
// acceptance that ask for it. It is told once, before the first Propose.
type Drawer interface {
	Drafter
	DrawBy(draw func(logits []float32) (int32, []decode.TokenProb, error))
}

// A RowReader is a Drafter that guesses from further outputs of the model's own
// step. ReadRows is called before Propose with the rows of the last token that
// the engine computed and Walk accepted; they are valid until Propose returns.
type RowReader interface {
	Drafter
	ReadRows(row func(output int) []float32)
	// Reads says, after Propose, whether the rows of the next step are wanted: what
	// is not read is not computed.
	Reads() bool
}

// A Room is what a draft may take and what it costs.
type Room struct {
	Nodes int // most tokens of the draft
	// Time of a step that has so many drafted tokens of this sequence, in any unit;
	// nil: drafts cost nothing.
	Time    func(nodes int) float64
	Untried func(nodes int) bool // such steps were not timed yet; nil: all were
	HeadTime float64             // the same for the rows of a RowReader, computed of the tree's nodes besides
	Paused   bool                 // steps with drafts gave fewer tokens a second than plain ones: drafters are to let one go by
	// Tokens that other sequences get from the step, those of prompts among them.
	Others float64
	// Sequences that draft as much as this one, itself among them, all of whose
	// tokens Time counts; 0: one.
	Alike float64
}

// Open is the room that a drafter has: none while it is to rest.
func (r Room) Open() Room {
	if r.Paused {
		r.Nodes = 0
	}
	return r
}

func (r Room) untried(nodes int) bool { return r.Untried != nil && r.Untried(nodes) }

// Rate is the tokens a unit of time of a step with so many drafted tokens of
// which some are expected to be accepted; extra is the time that drafting takes.
func (r Room) Rate(accepted float64, nodes int, extra float64) float64 {
	gain := r.Others + 1 + max(1, r.Alike)*accepted
	if r.Time == nil {
		return gain
	}
	return gain / (r.Time(nodes) + extra)
}

// Margin is how much faster than none a draft has to be expected to be, and how
// much slower drafts have to be measured for them to rest: what is between is
// noise.
const Margin = 0.03

// Length is how many tokens of a path to draft: p(i) is how likely token i is
// accepted when all before it are, most how many there are, each the time to
// draft one, in units of Time.
func (r Room) Length(p func(i int) float64, most int, each float64) int {
	if most = min(most, r.Nodes); r.Time == nil || most <= 0 {
		return max(most, 0)
	}
	best, at := (1+Margin)*r.Rate(0, 0, 0), 0
	accepted, reach := 0.0, 1.0
	for n := 1; n <= most; n++ {
		reach *= p(n - 1)
		accepted += reach
		if rate := r.Rate(accepted, n, each*float64(n)); rate > best {
			best, at = rate, n
		}
	}
	return at
}
