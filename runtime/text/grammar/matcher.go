package grammar

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// A Run does work beside the caller's other work, now or later, and calls tick
// often meanwhile: work ends early with the error of tick.
type Run func(work func(tick func() error) error) error

// A Matcher follows one text through a grammar, and finds each mask beside the
// caller's other work. Not safe for concurrent use.
type Matcher struct {
	g    *Grammar
	v    *Vocabulary
	run  Run
	at   *position
	done bool
	work *finding // the mask on its way, nil when none is
}

// A finding is a mask on its way.
type finding struct {
	mu     sync.Mutex
	ready  chan struct{} // closed when it is there
	notify func()        // to be called then; nil: nobody asked

	mask []uint64 // set before ready is closed, as err is
	err  error
}

func (f *finding) end(mask []uint64, err error) {
	f.mask, f.err = mask, err
	f.mu.Lock()
	close(f.ready)
	notify := f.notify
	f.mu.Unlock()
	if notify != nil {
		notify()
	}
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
	return &Matcher{g: g, v: v, at: at, run: func(work func(func() error) error) error {
		return work(func() error { return nil })
	}}, nil
}

// Size is about how many bytes the text's grammar takes.
func (m *Matcher) Size() int64 { return m.g.Size() }

// FindBy begins to find the first mask, and lets run find it and all others.
func (m *Matcher) FindBy(run Run) {
	m.run = run
	m.prepare()
}

// prepare begins to find the next mask, if it is not known.
func (m *Matcher) prepare() {
	if m.work != nil || m.done {
		return
	}
	f := &finding{ready: make(chan struct{})}
	m.work = f
	if mask := m.at.mask.Load(); mask != nil {
		f.end(*mask, nil)
		return
	}
	at := m.at
	go func() {
		var mask []uint64
		err := m.run(func(tick func() error) (err error) {
			mask, err = m.g.mask(m.v, at, tick)
			return err
		})
		f.end(mask, err)
	}()
}

// Ready says whether Mask would return at once; if not, notify is called when it
// would.
func (m *Matcher) Ready(notify func()) bool {
	m.prepare()
	f := m.work
	if f == nil {
		return true
	}
	f.mu.Lock()
	defer f.mu.Unlock()
	select {
	case <-f.ready:
		return true
	default:
		f.notify = notify
		return false
	}
}

// Mask gives the tokens that may come next, one bit each in words of 64; the
// caller must not change it. At the end of the grammar only the end tokens
// may come.
func (m *Matcher) Mask() ([]uint64, error) {
	m.prepare()
	if m.done {
		return nil, errors.New("bug: the text has ended")
	}
	f := m.work
	<-f.ready
	if f.err != nil {
		return nil, f.err
	}
	if !slices.ContainsFunc(f.mask, func(w uint64) bool { return w != 0 }) {
		return nil, ErrNoToken
	}
	return f.mask, nil
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
	at := m.at
	for _, c := range m.v.text[token] {
		var err error
		if at, err = m.g.follow(at, c); err != nil {
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
