//go:build unix

package engine

import "fmt"

// An ID names a live query. IDs are not used again.
type ID int

// A Query is a sequence to be computed.
type Query struct {
	Tokens []int32 // the prompt: at least one
	Last   int     // of how many of its last tokens rows are wanted; 0: one; -1: all
}

// A Result is what a step gave one sequence: rows for those of its wanted
// tokens that the step computed. Rows are views of memory that the next Infer
// overwrites.
type Result struct {
	ID    ID
	First int  // index in the sequence of the first row's token
	Rows  int  // wanted rows given
	Ready bool // every token is computed: Commit the next one, or Remove
	at    int  // first wanted row in the step
	from  int  // first token in the step
	n     int  // tokens of the sequence in the step
	seq   int  // index of the sequence in the step
	e     *Engine
}

// Row returns wanted row i of an output: the columns that mean something.
func (r Result) Row(output, i int) []float32 {
	o := r.e.graph.Outputs[output]
	at := r.at + i
	switch o.Rows {
	case "tokens":
		at = r.from + i
	case "sequences":
		at = r.seq
	}
	return r.e.ctx.Out[output][at*o.Cols:][:o.Used:o.Used]
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
}

// pending is how many of its tokens are still to be computed.
func (s *sequence) pending() int { return len(s.tokens) - s.done }

// AddQuery takes a sequence. ErrBusy: no slot is free.
func (e *Engine) AddQuery(q Query) (ID, error) {
	n := len(q.Tokens)
	if n == 0 {
		return 0, fmt.Errorf("the prompt has no tokens")
	}
	if n > e.opt.Context {
		return 0, fmt.Errorf("the prompt has %d tokens, the context holds %d; shorten the prompt", n, e.opt.Context)
	}
	if pagesFor(n) > e.opt.Pages {
		return 0, fmt.Errorf("the prompt has %d tokens, the engine's state holds %d", n, e.opt.Pages*pageRows)
	}
	if len(e.seqs) == e.opt.MaxSeqs {
		return 0, ErrBusy
	}
	s := &sequence{id: e.nextID, want: n - 1}
	if q.Last < 0 || q.Last > n {
		s.want = 0
	} else if q.Last > 0 {
		s.want = n - q.Last
	}
	s.tokens = append(make([]int32, 0, n+64), q.Tokens...)
	e.nextID++
	e.seqs = append(e.seqs, s)
	return s.id, nil
}

// Commit appends the token that the caller chose to a sequence, whose row the
// next step will give. ErrFull: the context has no row for it.
func (e *Engine) Commit(id ID, token int32) error {
	s := e.find(id)
	if s == nil {
		return fmt.Errorf("bug: commit to query %d, which is not alive", id)
	}
	if len(s.tokens) >= e.opt.Context || pagesFor(len(s.tokens)+1) > e.opt.Pages {
		return ErrFull
	}
	s.tokens = append(s.tokens, token)
	return nil
}

// Remove ends a sequence and frees its pages; an unknown id is ignored.
func (e *Engine) Remove(id ID) {
	for i, s := range e.seqs {
		if s.id == id {
			e.pages.free(s.pages)
			e.seqs = append(e.seqs[:i], e.seqs[i+1:]...)
			return
		}
	}
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
