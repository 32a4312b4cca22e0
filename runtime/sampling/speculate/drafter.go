// Package speculate implements speculative decoding. A Drafter proposes a tree of
// tokens, the engine computes rows of logits for all nodes in one step, and Walk
// follows the tree as far as it agrees with the tokens that the request's own sampler
// picks from these rows. With the default acceptance rule the result is that of plain
// decoding, with the same bits and the same random numbers.
package speculate

import "github.com/iflowc/iflowc/runtime/sampling/decode"

// A Draft is a tree of tokens and, if they were sampled, the distributions.
type Draft struct {
	Tree
	// From holds the distribution from which each node's token was sampled; nil: the
	// draft is deterministic. A draft with From is a path.
	From [][]decode.TokenProb
}

// A PathSelector selects a path through a tree, before its tokens are judged one by
// one. row returns the logits after a node (-1: after the sequence's last token). The
// result lists the path's nodes; nil means no selection.
type PathSelector func(parent, tokens []int32, row func(node int) []float32) []int

// A Drafter drafts for one sequence and adapts to measured acceptance. It is not safe
// for concurrent use.
type Drafter interface {
	// Propose returns a draft to follow history (the prompt and the generated tokens,
	// at least one), at most room.Nodes tokens and as many as are expected to pay. An
	// empty draft means that none does. The draft is valid until the next call.
	Propose(history []int32, room Room) Draft
	// Observe receives the tokens that were added to the sequence since the last
	// Propose, drafted or not; at least one.
	Observe(tokens []int32)
}

// A Drawer is a Drafter that can sample its tokens, for acceptance rules that need it.
// DrawBy is called once, before the first Propose.
type Drawer interface {
	Drafter
	DrawBy(draw func(logits []float32) (int32, []decode.TokenProb, error))
}

// A RowReader is a Drafter that uses further outputs of the model's step. ReadRows is
// called before Propose with the rows of the last accepted token; they are valid until
// Propose returns.
type RowReader interface {
	Drafter
	ReadRows(row func(output int) []float32)
	// Reads reports, after Propose, whether the drafter needs these rows of the next
	// step. If not, they are not computed.
	Reads() bool
}

// A Room is the budget of a draft and its cost.
type Room struct {
	Nodes int // maximum tokens of the draft
	// Time returns the duration of a step with the given number of drafted tokens of
	// this sequence, in any unit; nil: drafts cost nothing.
	Time     func(nodes int) float64
	Untried  func(nodes int) bool // reports whether such steps were not measured yet; nil: all were
	HeadTime float64              // time of a run of the draft heads, in units of Time
	Paused   bool                 // drafting is in back-off, because steps with drafts produced fewer tokens per second than plain ones
	// Tokens of other sequences in the step, prompt tokens included.
	Others float64
	// Number of sequences, this one included, that draft as much as this one. Time
	// includes their tokens. 0 means 1.
	Alike float64
}

// Open returns the room, with no nodes while drafting is paused.
func (r Room) Open() Room {
	if r.Paused {
		r.Nodes = 0
	}
	return r
}

func (r Room) untried(nodes int) bool { return r.Untried != nil && r.Untried(nodes) }

// Rate returns the expected tokens per unit of time of a step with the given number of
// drafted tokens; accepted is the expected number of accepted ones, extra the time to
// draft them.
func (r Room) Rate(accepted float64, nodes int, extra float64) float64 {
	gain := r.Others + 1 + max(1, r.Alike)*accepted
	if r.Time == nil {
		return gain
	}
	return gain / (r.Time(nodes) + extra)
}

// Margin is the minimum expected relative gain of a draft, and the minimum measured
// relative loss of drafts that starts a back-off. Smaller differences are noise.
const Margin = 0.03

// Length returns how many tokens of a path to draft. p(i) is the probability that token
// i is accepted if all before it are, limit the available tokens, and each the time to
// draft one, in units of Time.
func (r Room) Length(p func(i int) float64, limit int, each float64) int {
	if limit = min(limit, r.Nodes); r.Time == nil || limit <= 0 {
		return max(limit, 0)
	}
	best, at := (1+Margin)*r.Rate(0, 0, 0), 0
	accepted, reach := 0.0, 1.0
	for n := 1; n <= limit; n++ {
		reach *= p(n - 1)
		accepted += reach
		if rate := r.Rate(accepted, n, each*float64(n)); rate > best {
			best, at = rate, n
		}
	}
	return at
}
