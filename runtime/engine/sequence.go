//go:build unix

package engine

import (
	"crypto/sha256"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// An ID identifies a live query. IDs are not reused.
type ID int

// A Query describes a sequence to compute.
type Query struct {
	Tokens []int32 // the prompt: at least one token
	Last   int     // number of last tokens that produce output rows; 0: one; -1: all
	Rows   []int   // graph "encode" only: indices of the tokens that produce output rows, in place of Last
	Types  []int32 // graph "encode" only: token types; nil: all 0

	Source []int32 // encoder-decoders only: input of the encoder, at least one token

	// TopK is the number of largest logits that suffice the caller for most output rows
	// (Result.RowOf). Other rows of logits may take longer to read. 0: it reads all rows.
	TopK int
	// Choice is decode.Sampler.Choice of the sampler that picks the token after the last row and
	// after drafted nodes, if the caller reads these rows for nothing else; or nil. A device may
	// then pick the tokens in its place: see Result.RowOf.
	Choice func(ahead int) (decode.Choice, bool)

	Adapter     *Adapter // nil: the engine's, see UseAdapter
	Priority    int      // smaller is more urgent: computed first, preempted last
	PrefixScope string   // the prefix cache is shared only among queries with the same PrefixScope
}

// Output returns the index of the output with the given name, or -1.
func (e *Engine) Output(name string) int {
	for i, o := range e.graph.Outputs {
		if o.Name == name {
			return i
		}
	}
	return -1
}

// A sequence is the state of a live query.
type sequence struct {
	id      ID
	tokens  []int32  // prompt and committed tokens
	done    int      // tokens[:done] are computed: their KV cache rows exist
	outFrom int      // output rows are still due for tokens from this index on
	pages   []int32  // KV cache pages, in order
	rows    []int    // Query.Rows, or the tokens that Query.Last selects; nil: the graph does not compute whole sequences
	types   []int32  // Query.Types
	cells   []int32  // cells of fixed-size states, from the cellFrom-th on; -1: not kept
	source  *source  // nil: the model is not an encoder-decoder
	adapter *Adapter // or nil

	draft   speculate.Tree // proposed for the next step, or computed by the last one
	drafted int            // nodes that the last step computed, in the KV cache rows after done

	rowsOfDraft draftRows // if the model has a draft layer

	cellFrom int
	started  int    // the last cell whose start is stored
	branch   int    // rows of the cached pages that its last lookup in the prefix cache found
	passed   uint64 // key of the last cached cell of the tokens that it decoded

	priority int
	scope    [sha256.Size]byte                     // hash of Query.PrefixScope
	last     int64                                 // Stats.Steps when it was last in a step, or was added
	prefix   uint64                                // number of its last full cached page, see prefix.go
	cached   int                                   // rows that its first lookup in the prefix cache found
	topK     int32                                 // Query.TopK
	choice   func(ahead int) (decode.Choice, bool) // Query.Choice
	reads    bool                                  // its drafter reads the draft heads' rows of the next step
	tried    bool                                  // its prefix was looked up in the prefix cache
	inFlight bool                                  // it is in a step in flight
	removed  bool                                  // it was removed while in flight: its pages are freed when the step ends

	suspended bool // it is in no new step; results of a step in flight are discarded

	decoding bool // its prompt is computed
}

// pending returns the number of tokens still to compute.
func (s *sequence) pending() int { return len(s.tokens) - s.done }

// AddQuery adds a sequence. It returns ErrBusy if no slot is free.
func (e *Engine) AddQuery(q Query) (ID, error) {
	if err := e.check(&q); err != nil {
		return 0, err
	}
	if len(e.seqs) == e.opt.MaxSeqs {
		return 0, ErrBusy
	}
	adapter, err := e.adapterOf(&q)
	if err != nil {
		return 0, err
	}
	n := len(q.Tokens)
	s := &sequence{outFrom: n - 1, adapter: adapter, priority: q.Priority, topK: int32(q.TopK), choice: q.Choice, last: e.stats.Steps, scope: sha256.Sum256([]byte(q.PrefixScope))}
	if q.Last < 0 || q.Last > n {
		s.outFrom = 0
	} else if q.Last > 0 {
		s.outFrom = n - q.Last
	}
	s.tokens = append(make([]int32, 0, n+64), q.Tokens...)
	if e.whole {
		s.types = slices.Clone(q.Types)
		s.rows = outputRows(&q, s.outFrom)
		if len(s.rows) > e.opt.MaxOutRows {
			return 0, fmt.Errorf("%d output rows requested; a step of this engine has at most %d", len(s.rows), e.opt.MaxOutRows)
		}
	}
	if e.source >= 0 {
		s.source = &source{tokens: slices.Clone(q.Source), adapter: adapter, users: 1}
	}
	return e.admit(s), nil
}

// admit assigns an ID to a sequence and makes it live.
func (e *Engine) admit(s *sequence) ID {
	if s.adapter != nil {
		s.adapter.users++
	}
	s.id = e.nextID
	e.nextID++
	e.seqs = append(e.seqs, s)
	return s.id
}

// outputRows lists the tokens of a whole sequence that produce output rows.
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

// check returns an error for a query that the engine could never finish.
func (e *Engine) check(q *Query) error {
	if err := e.checkTokens("prompt", q.Tokens, e.whole); err != nil {
		return err
	}
	if q.Types != nil && (!e.whole || len(q.Types) != len(q.Tokens)) {
		return fmt.Errorf("%d token types for %d tokens; expected one per token, and an encoder", len(q.Types), len(q.Tokens))
	}
	for _, at := range q.Rows {
		if !e.whole || at < 0 || at >= len(q.Tokens) {
			return fmt.Errorf("bug: output row %d of a prompt of %d tokens", at, len(q.Tokens))
		}
	}
	if e.source < 0 {
		if q.Source != nil {
			return fmt.Errorf("the model takes no source: it is not an encoder-decoder")
		}
		return nil
	}
	if err := e.checkTokens("source", q.Source, true); err != nil {
		return err
	}
	if pagesFor(len(q.Source))+pagesFor(len(q.Tokens)) > e.opt.Pages {
		return fmt.Errorf("the source has %d tokens and the prompt %d; the KV cache holds %d", len(q.Source), len(q.Tokens), e.opt.Pages*pageRows)
	}
	return nil
}

func (e *Engine) checkTokens(what string, tokens []int32, whole bool) error {
	n := len(tokens)
	if n == 0 {
		return fmt.Errorf("the %s has no tokens", what)
	}
	if n > e.opt.Context {
		return fmt.Errorf("the %s has %d tokens; the context holds %d; shorten the %s", what, n, e.opt.Context, what)
	}
	if pagesFor(n) > e.opt.Pages {
		return fmt.Errorf("the %s has %d tokens; the KV cache holds %d", what, n, e.opt.Pages*pageRows)
	}
	if whole && n > e.opt.MaxTokens {
		return fmt.Errorf("the %s has %d tokens, which an encoder computes in one step; a step of this engine has at most %d", what, n, e.opt.MaxTokens)
	}
	return nil
}

// Commit appends the token that the caller chose; the next step computes its row. It
// returns ErrFull if the context or the KV cache has no row for it.
func (e *Engine) Commit(id ID, token int32) error {
	s := e.find(id)
	if s == nil {
		return fmt.Errorf("bug: commit to query %d, which is not live", id)
	}
	if e.whole {
		return fmt.Errorf("bug: commit to query %d of an encoder", id)
	}
	if s.inFlight {
		return fmt.Errorf("bug: commit to query %d, which is in a step in flight", id)
	}
	pages := pagesFor(len(s.tokens) + 1)
	if s.source != nil {
		pages += pagesFor(len(s.source.tokens))
	}
	if len(s.tokens) >= e.opt.Context || pages > e.opt.Pages {
		return ErrFull
	}
	e.dropDraft(s)
	s.tokens = append(s.tokens, token)
	return nil
}

// Remove ends a sequence and frees its pages and cells; it ignores unknown ids.
func (e *Engine) Remove(id ID) {
	s := cut(&e.seqs, id)
	if s == nil {
		s = cut(&e.suspended, id)
	}
	if s == nil {
		return
	}
	if s.removed = true; !s.inFlight {
		e.dismiss(s)
	}
	e.release(s.source)
}

// SetChoice sets Query.Choice of a live sequence.
func (e *Engine) SetChoice(id ID, choice func(ahead int) (decode.Choice, bool)) {
	if s := e.find(id); s != nil {
		s.choice = choice
	}
}

// Fork adds a copy of a sequence, which shares the source and the full pages and cells of
// the original and gets a copy of the last ones. If no page or cell is free, a later step
// computes the copy's rows again. The copy has no Query.Choice: see SetChoice. Fork returns
// ErrBusy if no slot is free.
func (e *Engine) Fork(id ID) (ID, error) {
	s := e.find(id)
	if s == nil {
		return 0, fmt.Errorf("bug: fork of query %d, which is not live", id)
	}
	if s.inFlight {
		return 0, fmt.Errorf("bug: fork of query %d, which is in a step in flight", id)
	}
	if len(e.seqs) == e.opt.MaxSeqs {
		return 0, ErrBusy
	}
	c := &sequence{done: s.done, outFrom: s.outFrom, rows: s.rows, types: s.types, source: s.source, adapter: s.adapter, priority: s.priority, topK: s.topK, scope: s.scope, prefix: s.prefix, cached: s.cached, tried: true, decoding: s.decoding, last: e.stats.Steps}
	c.tokens = append(make([]int32, 0, len(s.tokens)+64), s.tokens...)
	c.rowsOfDraft = draftRows{n: s.rowsOfDraft.n, features: slices.Clone(s.rowsOfDraft.features)}
	full, ok := s.done/pageRows, e.forkCells(c, s)
	c.pages = e.pages.share(nil, s.pages[:full])
	if ok && s.done%pageRows > 0 {
		if c.pages, ok = e.pages.take(c.pages, 1); ok {
			e.ctx.CopyPage(c.pages[full], s.pages[full])
		}
	}
	if !ok {
		e.drop(c)
	}
	if c.source != nil {
		c.source.users++
	}
	return e.admit(c), nil
}

// Len returns the number of live sequences that are not suspended.
func (e *Engine) Len() int { return len(e.seqs) }

func (e *Engine) find(id ID) *sequence {
	for _, s := range e.seqs {
		if s.id == id {
			return s
		}
	}
	return nil
}
