//go:build unix

package cli

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// speculateFlags select how tokens are drafted.
type speculateFlags struct {
	Speculate string `placeholder:"METHOD" help:"Speculative decoding: none, lookup (prompt lookup), draft (draft model), medusa (the model's heads or draft layer) or auto (default: auto)."`
	Draft     string `placeholder:"BIN" type:"path" help:"Compiled draft model with the same vocabulary."`
	Tokens    int    `name:"draft-tokens" placeholder:"K" help:"Maximum draft tokens per sequence and step (default: 15)."`
}

// The methods by name, and their default numbers of draft tokens.
const (
	speculateNone   = "none"
	speculateLookup = "lookup"
	speculateDraft  = "draft"
	speculateMedusa = "medusa"
	speculateAuto   = "auto"

	defaultDraft = 15
	mostDrafted  = 255
)

// brief is the minimum time of a plain step for speculative decoding: steps of
// a tiny model take less time than a draft.
const brief = 250 * time.Microsecond

// A drafting makes drafters for sequences.
type drafting struct {
	method string // for sequences that name none
	tokens int    // maximum length of a draft
	makers map[string]func() speculate.Drafter

	with  *binary.Binary // the draft model, or nil
	model *draftModel    // the same, running
}

// drafting reads the flags, or else the model spec, and loads the files that
// the methods need.
func (f *speculateFlags) drafting(ctx context.Context, m *model) (*drafting, error) {
	e := &m.manifest.Engine
	d := &drafting{
		method: cmp.Or(f.Speculate, e.Speculate), tokens: cmp.Or(f.Tokens, e.DraftTokens, defaultDraft),
		makers: map[string]func() speculate.Drafter{speculateLookup: func() speculate.Drafter { return speculate.NewLookup() }},
	}
	if d.method == "" {
		if d.method = speculateAuto; f.Draft != "" {
			d.method = speculateDraft
		}
	}
	if d.method != speculateNone && m.manifest.Network == encoderDecoder {
		if err := f.ofSource(d.method); err != nil {
			return nil, wrong(err)
		}
	}
	if d.tokens < 1 || d.tokens > mostDrafted {
		return nil, wrong(fmt.Errorf("--draft-tokens %d: expected a number between 1 and %d", d.tokens, mostDrafted))
	}
	if d.method == speculateNone {
		d.tokens = 0
		return d, nil
	}
	if heads, at := m.manifest.Medusa, m.manifest.MedusaOutput(); at >= 0 {
		d.makers[speculateMedusa] = func() speculate.Drafter { return speculate.NewHeads(heads, at) }
	}
	if f.Draft != "" {
		var err error
		if d.with, err = m.openDraft(ctx, f.Draft); err != nil {
			return nil, err
		}
		d.makers[speculateDraft] = func() speculate.Drafter { return d.model.Drafter() }
	}
	d.makers[speculateAuto] = d.auto
	if _, err := d.maker(d.method); err != nil {
		return nil, wrong(fmt.Errorf("--speculate: %w", err))
	}
	return d, nil
}

// ofSource returns an error for methods that cannot draft in an
// encoder-decoder.
func (f *speculateFlags) ofSource(method string) error {
	switch {
	case f.Draft != "":
		return errors.New("--draft: an encoder-decoder supports only lookup, because a draft model does not see the source")
	case method == speculateDraft || method == speculateMedusa:
		return fmt.Errorf("--speculate %s: an encoder-decoder supports only lookup, in its source and its output", method)
	}
	return nil
}

// asked reports whether the flags name a method.
func (f *speculateFlags) asked() bool {
	return f.Draft != "" || f.Speculate != "" && f.Speculate != speculateNone
}

// errNoBeams is the error of speculative decoding with beam search: a pruned beam
// would discard its draft.
func (f *speculateFlags) errNoBeams(search string) error {
	said := "--speculate " + f.Speculate
	if f.Draft != "" {
		said = "--draft"
	}
	return fmt.Errorf("%s and %s exclude each other: a beam search does not draft", said, search)
}

// auto tries the available methods, the cheapest first.
func (d *drafting) auto() speculate.Drafter {
	var list []speculate.Drafter
	for _, name := range []string{speculateLookup, speculateMedusa, speculateDraft} {
		if make := d.makers[name]; make != nil {
			list = append(list, make())
		}
	}
	return speculate.Fallback(list...)
}

// maker returns the constructor of a method's drafters, or nil for none.
func (d *drafting) maker(method string) (func() speculate.Drafter, error) {
	if method == "" {
		method = d.method
	}
	if method == speculateNone || d.tokens == 0 {
		return nil, nil
	}
	if make := d.makers[method]; make != nil {
		return make, nil
	}
	var known []string
	for name := range d.makers {
		known = append(known, name)
	}
	slices.Sort(known)
	switch method {
	case speculateDraft:
		return nil, fmt.Errorf("%s: no draft model; name one with --draft BIN", method)
	case speculateMedusa:
		return nil, fmt.Errorf("%s: the model has no draft heads; its model spec has no section medusa or draft", method)
	}
	return nil, fmt.Errorf("unknown method %.40q; want none, %s", method, strings.Join(known, ", "))
}

// drafter makes a drafter of the method that the flags name, for the given
// sampler; nil: none.
func (d *drafting) drafter(pick sampler) speculate.Drafter {
	make, err := d.maker("")
	if err != nil || make == nil {
		return nil
	}
	one := make()
	if draw := pick.Draws(); draw != nil {
		speculate.DrawBy(one, draw)
	}
	return one
}

// behind makes a drafter for a text generated from a source; nil: none.
func (d *drafting) behind(source []int32) speculate.Drafter {
	if d.tokens == 0 {
		return nil
	}
	make, err := d.maker("")
	if err != nil || make == nil {
		return nil
	}
	return speculate.WithSource(source, make())
}

// start starts the draft model, if there is one, next to the engine that
// verifies.
func (d *drafting) start(eng *engine.Engine) (err error) {
	if d.with != nil {
		d.model, err = startDraft(d.with, eng.Options(), "")
	}
	return err
}

func (d *drafting) close() {
	if d.model != nil {
		d.model.close()
	}
}

// A single decodes one sequence, with or without drafts.
type single struct {
	eng     *engine.Engine
	id      engine.ID
	logits  int // index of the output
	vocab   int
	drafter speculate.Drafter // or nil
	history []int32
	draft   speculate.Draft     // verified by the next step
	step    []int32             // sampled in this step
	top     []decode.TokenLogit // scratch
}

// take samples tokens from a result while they match the draft and more returns
// true, and submits the next ones to the engine. left returns how many more
// tokens the caller wants after this step. The error is ErrFull if the context
// is full.
func (s *single) take(r engine.Result, pick sampler, left func() int, more func(token int32) (bool, error)) (ended bool, err error) {
	s.step = s.step[:0]
	r = r.SelectPath(s.logits, s.vocab, pick.Path)
	path, err := r.Walk(s.draft.From, func(node int, drafted int32, from []decode.TokenProb) (int32, bool, error) {
		row := r.RowOf(s.logits, node, s.vocab, s.top[:0])
		s.top = row.Top
		token, err := pick.JudgeRow(row, s.history, drafted, from)
		if err != nil {
			return 0, false, err
		}
		on, err := more(token)
		if ended = !on; on {
			s.history = append(s.history, token)
			s.step = append(s.step, token)
		}
		return token, on, err
	})
	if ended || err != nil {
		return ended, err
	}
	s.draft = speculate.Draft{}
	if s.drafter != nil {
		s.draft = r.Draft(s.drafter, path, s.step, s.history, left())
	}
	if err := s.eng.Advance(s.id, path, s.history[len(s.history)-1]); err != nil {
		return true, err
	}
	return false, s.eng.Propose(s.id, s.draft.Tree)
}
