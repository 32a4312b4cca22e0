//go:build unix

package engine

import (
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A Result is the outcome of one step for one sequence: the output rows of those of its
// tokens that the step computed. Rows are views of memory that the next Infer
// overwrites.
type Result struct {
	ID    ID
	First int  // index in the sequence of the first output row's token
	Rows  int  // number of output rows
	Ready bool // all tokens are computed: Commit the next one, or Remove

	Cached int // prompt tokens that were found in the prefix cache

	Drafted int // number of nodes of the sequence's draft that the step computed, a prefix of them; see Node

	at    int // first output row of the sequence in the step
	from  int // first token of the sequence in the step
	n     int // tokens of the sequence in the step, without drafted ones
	seq   int // index of the sequence in the step
	heads int // first row of the draft heads; -1: none; headsLater: computed on demand
	e     *Engine
	step  *device.Step // the step that computed the rows

	draft    speculate.Tree // the computed nodes
	selected []int          // the path through draft that Walk follows; nil: the first child of each node
}

// Row returns output row i of an output, without padding columns.
func (r Result) Row(output, i int) []float32 {
	o := r.e.graph.Outputs[output]
	at := r.at + i
	switch o.Rows {
	case "tokens":
		at = r.from + i
	case "sequences":
		at = r.seq
	case headRows:
		return r.headRow(o, i-r.Rows)
	}
	return r.fetched(output, at)
}

// fetched returns a row of the step's output, from the device if the row is still there.
// If that fails, the row has no numbers, and the next step returns the error.
func (r Result) fetched(output, at int) []float32 {
	o, s := r.e.graph.Outputs[output], r.step
	if r.e.manifest.Replaced(&o) && s.Chosen[at] >= 0 {
		panic(fmt.Sprintf("bug: row %d of %s is read, but the device has chosen its token", at, o.Name))
	}
	row := s.Out[output][at*o.Cols:][:o.Cols]
	if s.Fetch != nil && s.Fetch(output, at) != nil {
		for i := range row {
			row[i] = float32(math.NaN())
		}
	}
	return row[:o.Used:o.Used]
}

// SelectPath returns the result with the path through its draft that a selector chooses
// from the first columns of an output.
func (r Result) SelectPath(output, columns int, choose speculate.PathSelector) Result {
	if r.draft.Len() > 0 {
		r.selected = choose(r.draft.Parent, r.draft.Tokens, func(node int) []float32 { return r.Node(output, node)[:columns] })
	}
	return r
}

// Walk verifies the draft of a result that is ready. It calls pick for the sequence's
// last token and then for each accepted node. The arguments are the node (-1: the last
// token), the drafted token after it, and the distribution that token was sampled from.
// The argument from of Walk is that of speculate.Draft. Walk returns the accepted nodes;
// see speculate.WalkAlong.
func (r Result) Walk(from [][]decode.TokenProb, pick func(node int, drafted int32, from []decode.TokenProb) (token int32, more bool, err error)) (path []int, err error) {
	return speculate.WalkAlong(speculate.Draft{Tree: r.draft, From: from}, r.selected, pick)
}

// Node returns the row of a drafted node, or of the sequence's last token if n is -1.
func (r Result) Node(output, n int) []float32 {
	if n < 0 {
		return r.Row(output, r.Rows-1)
	}
	o := r.e.graph.Outputs[output]
	at := r.at + r.Rows + n
	switch o.Rows {
	case "tokens":
		at = r.from + r.n + n
	case "sequences":
		at = r.seq
	case headRows:
		return r.headRow(o, n)
	}
	return r.fetched(output, at)
}

// RowOf returns what the step returned of Node's row of logits, cut to vocab. The largest ones
// are appended to top.
func (r Result) RowOf(output, n, vocab int, top []decode.TokenLogit) decode.Row {
	if token := r.step.Chosen[r.at+r.Rows+max(n, -1)]; token >= 0 {
		return decode.Row{Chosen: true, Token: token}
	}
	return decode.Row{Top: r.AppendTop(top, n, vocab), Logits: func() []float32 { return r.Node(output, n)[:vocab] }}
}

// AppendTop appends the largest logits of Node's row in descending order: as many as the
// query's TopK, or only the argmax, or none if the step did not compute it or one of them
// is not below vocab.
func (r Result) AppendTop(list []decode.TokenLogit, n, vocab int) []decode.TokenLogit {
	before := len(list)
	for _, b := range r.step.Largest[r.at+r.Rows+max(n, -1)] {
		if int(b.At) >= vocab {
			return list[:before]
		}
		list = append(list, decode.TokenLogit{ID: b.At, Logit: b.Value})
	}
	return list
}

// Tokens returns the number of the sequence's tokens that the step computed: the number
// of rows of an output with one row per token.
func (r Result) Tokens() int { return r.n }
