//go:build unix

package engine

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// An ID names a live query. IDs are not used again.
type ID int

// A Query is a sequence to be computed.
type Query struct {
	Tokens []int32 // the prompt: at least one
	Last   int     // how many of its last tokens give output rows; 0: one; -1: all
	Rows   []int   // in graph "encode": the tokens whose output rows are asked for, in place of Last
	Types  []int32 // in graph "encode": a token's type; nil: 0

	Source []int32 // of an encoder-decoder: what the encoder reads, at least one token

	Priority int    // smaller is more urgent: computed first, and its pages taken last
	Prefixes string // the prefix cache gives it pages of queries with the same alone
}

// A Result is what a step gave one sequence: the output rows of those of
// its tokens that the step computed. Rows are views of memory that the next Infer
// overwrites.
type Result struct {
	ID    ID
	First int  // index in the sequence of the first row's token
	Rows  int  // output rows given
	Ready bool // every token is computed: Commit the next one, or Remove

	Cached int // tokens of the prompt whose rows were there already when it was added

	Drafted int // nodes of the sequence's draft that the step computed, from the first on; see Node

	at    int // first output row in the step
	from  int // first token in the step
	n     int // tokens of the sequence in the step
	seq   int // index of the sequence in the step
	heads int // first row of the heads; -1: none
	e     *Engine
	step  *device.Step // whose rows these are

	draft    speculate.Tree // its first Drafted nodes
	selected []int          // the way through it that Walk tries; nil: each first child
}

// Row returns output row i of an output: the columns that mean something.
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
	return r.step.Out[output][at*o.Cols:][:o.Used:o.Used]
}

// SelectPath is the result with the path of its draft that a selector takes, by the
// first columns of an output.
func (r Result) SelectPath(output, columns int, choose speculate.PathSelector) Result {
	if r.draft.Len() > 0 {
		r.selected = choose(r.draft.Parent, r.draft.Tokens, func(node int) []float32 { return r.Node(output, node)[:columns] })
	}
	return r
}

// Walk follows the draft of a result that is ready: pick draws a token from a
// row of an output, first from that of the sequence's last token; drafted was
// drafted in its place, and from has the distributions of the draft, as
// speculate.Draft has. It returns the accepted nodes; see speculate.Walk.
func (r Result) Walk(output int, from [][]decode.TokenProb, pick func(node int, row []float32, drafted int32, from []decode.TokenProb) (token int32, more bool, err error)) (path []int, err error) {
	return speculate.WalkAlong(speculate.Draft{Tree: r.draft, From: from}, r.selected, func(node int, drafted int32, from []decode.TokenProb) (int32, bool, error) {
		return pick(node, r.Node(output, node), drafted, from)
	})
}

// Node is Row for a drafted node; -1: for the sequence's last token.
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
	return r.step.Out[output][at*o.Cols:][:o.Used:o.Used]
}

// Best is the argmax of Node's row of logits, if the step has found it
// and it is below vocab; else −1.
func (r Result) Best(n, vocab int) int32 {
	if !r.e.graph.Best {
		return -1
	}
	token := r.step.Greedy[r.at+r.Rows+max(n, -1)]
	if int(token) >= vocab {
		return -1
	}
	return token // device.NoToken is −1
}

// Tokens is the number of the sequence's tokens that the step computed, which
// is the number of rows of an output that counts by tokens.
func (r Result) Tokens() int { return r.n }

// Output is the index of the graph's output of a name, or -1.
func (e *Engine) Output(name string) int {
	for i, o := range e.graph.Outputs {
		if o.Name == name {
			return i
		}
	}
	return -1
}

// A sequence is a live query.
type sequence struct {
	id     ID
	tokens []int32 // prompt and committed tokens
	done   int     // state rows written: tokens[:done] are computed
	want   int     // rows from this token on are still to be given
	pages  []int32 // its state pages, in order
	rows   []int   // in a graph that gets sequences whole: the tokens whose output rows are asked for
	types  []int32 // token types there, or nil
	source *source // nil: no encoder-decoder

	draft   speculate.Tree // proposed for the next step, or computed by the last one
	drafted int            // nodes that the last step computed, in the rows behind done

	priority int
	space    [sha256.Size]byte // of Query.Prefixes
	last     int64             // how many steps the engine had made when it was last in one, or came
	prefix   uint64            // what its full pages hold, see prefix.go
	cached   int               // rows that reuse gave it first
	reads    bool              // its drafter reads the heads' rows of the next step
	tried    bool              // reuse has looked for the first time
	inFlight bool              // it is in a step under way
	removed  bool              // while it was: its pages go when the step has ended

	suspended bool // its rows of a step under way are computed again

	decoding bool // its prompt is computed: a client waits for its next token
}

// pending is how many of its tokens are still to be computed.
func (s *sequence) pending() int { return len(s.tokens) - s.done }

// AddQuery takes a sequence. ErrBusy: no slot is free.
func (e *Engine) AddQuery(q Query) (ID, error) {
	if err := e.check(&q); err != nil {
		return 0, err
	}
	if len(e.seqs) == e.opt.MaxSeqs {
		return 0, ErrBusy
	}
	n := len(q.Tokens)
	s := &sequence{want: n - 1, priority: q.Priority, last: e.stats.Steps, space: sha256.Sum256([]byte(q.Prefixes))}
	if q.Last < 0 || q.Last > n {
		s.want = 0
	} else if q.Last > 0 {
		s.want = n - q.Last
	}
	s.tokens = append(make([]int32, 0, n+64), q.Tokens...)
	if e.whole {
		s.types = slices.Clone(q.Types)
		s.rows = outputRows(&q, s.want)
		if len(s.rows) > e.opt.MaxOutRows {
			return 0, fmt.Errorf("%d output rows are asked for, a step of this engine gives at most %d", len(s.rows), e.opt.MaxOutRows)
		}
	}
	if e.source >= 0 {
		s.source = &source{tokens: slices.Clone(q.Source), users: 1}
	}
	return e.admit(s), nil
}

// admit makes a sequence a live one.
func (e *Engine) admit(s *sequence) ID {
	s.id = e.nextID
	e.nextID++
	e.seqs = append(e.seqs, s)
	return s.id
}

// outputRows lists the tokens of a whole sequence that give output rows.
func outputRows(q *Query, from int) []int {
	if q.Rows != nil {
		return slices.Clone(q.Rows)
	}
	rows := make([]int, len(q.Tokens)-from)
	for i := range rows {
		rows[i] = from + i
	}
	return rows
}

// check refuses a query that the engine could never finish.
func (e *Engine) check(q *Query) error {
	if err := e.checkTokens("prompt", q.Tokens, e.whole); err != nil {
		return err
	}
	if q.Types != nil && (!e.whole || len(q.Types) != len(q.Tokens)) {
		return fmt.Errorf("%d token types for %d tokens; expected one a token, of an encoder", len(q.Types), len(q.Tokens))
	}
	for _, at := range q.Rows {
		if !e.whole || at < 0 || at >= len(q.Tokens) {
			return fmt.Errorf("bug: row %d of a prompt of %d tokens", at, len(q.Tokens))
		}
	}
	if e.source < 0 {
		if q.Source != nil {
			return fmt.Errorf("the model takes no source: it is no encoder-decoder")
		}
		return nil
	}
	if err := e.checkTokens("source", q.Source, true); err != nil {
		return err
	}
	if pagesFor(len(q.Source))+pagesFor(len(q.Tokens)) > e.opt.Pages {
		return fmt.Errorf("the source has %d tokens and the prompt %d, the engine's state holds %d", len(q.Source), len(q.Tokens), e.opt.Pages*pageRows)
	}
	return nil
}

func (e *Engine) checkTokens(what string, tokens []int32, whole bool) error {
	n := len(tokens)
	if n == 0 {
		return fmt.Errorf("the %s has no tokens", what)
	}
	if n > e.opt.Context {
		return fmt.Errorf("the %s has %d tokens, the context holds %d; shorten the %s", what, n, e.opt.Context, what)
	}
	if pagesFor(n) > e.opt.Pages {
		return fmt.Errorf("the %s has %d tokens, the engine's state holds %d", what, n, e.opt.Pages*pageRows)
	}
	if whole && n > e.opt.MaxTokens {
		return fmt.Errorf("the %s has %d tokens, which an encoder reads in one step; a step of this engine has at most %d", what, n, e.opt.MaxTokens)
	}
	return nil
}

// Commit appends the token that the caller chose to a sequence, whose row the
// next step will give. ErrFull: the context has no row for it.
func (e *Engine) Commit(id ID, token int32) error {
	s := e.find(id)
	if s == nil {
		return fmt.Errorf("bug: commit to query %d, which is not alive", id)
	}
	if e.whole {
		return fmt.Errorf("bug: commit to query %d of an encoder", id)
	}
	if s.inFlight {
		return fmt.Errorf("bug: commit to query %d, which is being computed", id)
	}
	pages := pagesFor(len(s.tokens) + 1)
	if s.source != nil {
		pages += pagesFor(len(s.source.tokens))
	}
	if len(s.tokens) >= e.opt.Context || pages > e.opt.Pages {
		return ErrFull
	}
	e.forget(s)
	s.tokens = append(s.tokens, token)
	return nil
}

// Remove ends a sequence and frees its pages; an unknown id is ignored.
func (e *Engine) Remove(id ID) {
	s := cut(&e.seqs, id)
	if s == nil {
		s = cut(&e.suspended, id)
	}
	if s == nil {
		return
	}
	if s.removed = true; !s.inFlight {
		e.pages.free(s.pages)
	}
	e.release(s.source)
}

// Fork makes a new sequence that has computed what another one has, and goes
// its own way from there. It shares the other's source and its full pages, and
// gets a copy of the last page; when none is free, its rows are computed again
// in a later step. ErrBusy: no slot is free.
func (e *Engine) Fork(id ID) (ID, error) {
	s := e.find(id)
	if s == nil {
		return 0, fmt.Errorf("bug: fork of query %d, which is not alive", id)
	}
	if s.inFlight {
		return 0, fmt.Errorf("bug: fork of query %d, which is being computed", id)
	}
	if len(e.seqs) == e.opt.MaxSeqs {
		return 0, ErrBusy
	}
	c := &sequence{done: s.done, want: s.want, rows: s.rows, types: s.types, source: s.source, priority: s.priority, space: s.space, prefix: s.prefix, cached: s.cached, tried: true, decoding: s.decoding, last: e.stats.Steps}
	c.tokens = append(make([]int32, 0, len(s.tokens)+64), s.tokens...)
	full := s.done / pageRows
	c.pages = e.pages.share(nil, s.pages[:full])
	if s.done%pageRows > 0 {
		var ok bool
		if c.pages, ok = e.pages.take(c.pages, 1); ok {
			e.ctx.CopyPage(c.pages[full], s.pages[full])
		} else {
			e.pages.free(c.pages)
			c.pages, c.done, c.prefix = nil, 0, 0
		}
	}
	if c.source != nil {
		c.source.users++
	}
	return e.admit(c), nil
}

// Len is the number of live sequences.
func (e *Engine) Len() int { return len(e.seqs) }

func (e *Engine) find(id ID) *sequence {
	for _, s := range e.seqs {
		if s.id == id {
			return s
		}
	}
	return nil
}
