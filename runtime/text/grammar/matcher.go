package grammar

import (
	"errors"
	"fmt"
	"slices"
)

// A Matcher follows one text through a grammar, and finds each mask beside the
// caller's other work. Not safe for concurrent use.
type Matcher struct {
	g    *Grammar
	v    *Vocabulary
	at   *position
	done bool
	work chan prepared // the mask on its way, nil when none is
}

type prepared struct {
	mask []uint64
	err  error
}

// ErrNoToken is the error of a position that no token of the vocabulary can
// lead on from, although the grammar is not at its end.
var ErrNoToken = errors.New("no token of the vocabulary fits the grammar here")

// NewMatcher starts a text. A grammar keeps its masks for one vocabulary, so
// it must always be used with the same.
func NewMatcher(g *Grammar, v *Vocabulary) (*Matcher, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, err := g.first()
	if err != nil {
		return nil, err
	}
	m := &Matcher{g: g, v: v, at: at}
	m.prepare()
	return m, nil
}

// prepare begins to find the next mask, in the background: a step of the model
// takes longer than that.
func (m *Matcher) prepare() {
	if m.work != nil || m.done {
		return
	}
	work := make(chan prepared, 1)
	m.work = work
	at := m.at
	go func() {
		m.g.mu.Lock()
		defer m.g.mu.Unlock()
		mask, err := m.g.mask(m.v, at)
		work <- prepared{mask, err}
	}()
}

// Mask gives the tokens that may come next, one bit each in words of 64; the
// caller must not change it. At the end of the grammar only the end tokens
// may come.
func (m *Matcher) Mask() ([]uint64, error) {
	m.prepare()
	if m.done {
		return nil, errors.New("bug: the text has ended")
	}
	got := <-m.work
	m.work = nil
	if got.err != nil {
		return nil, got.err
	}
	if !slices.ContainsFunc(got.mask, func(w uint64) bool { return w != 0 }) {
		return nil, ErrNoToken
	}
	return got.mask, nil
}

// Done tells whether nothing but the end of the text may come.
func (m *Matcher) Done() bool { return m.done || m.at.accept && len(m.at.configs) == 0 }

// Accept moves over a token and begins to find the next mask. A token that the
// grammar does not allow is an error and moves nothing.
func (m *Matcher) Accept(token int32) error {
	if token < 0 || int(token) >= m.v.size {
		return fmt.Errorf("token %d is not among %d", token, m.v.size)
	}
	m.work = nil
	if slices.Contains(m.v.eos, token) {
		if !m.at.accept {
			return fmt.Errorf("token %d ends the text where the grammar does not", token)
		}
		m.done = true
		return nil
	}
	m.g.mu.Lock()
	defer m.g.mu.Unlock()
	at := m.at
	for _, c := range m.v.text[token] {
		var err error
		if at, err = m.g.step(at, c); err != nil {
			return err
		}
	}
	if at == dead || len(m.v.text[token]) == 0 {
		return fmt.Errorf("token %d (%q) does not fit the grammar here", token, m.v.text[token])
	}
	m.at = at
	m.prepare()
	return nil
}

// Match tells whether a whole text is one of the grammar's.
func (g *Grammar) Match(text string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, err := g.first()
	for i := 0; i < len(text) && err == nil && at != dead; i++ {
		at, err = g.step(at, text[i])
	}
	return err == nil && at.accept, err
}
