package grammar

import (
	"errors"
	"fmt"
	"slices"
	"sync"
)

// A Run executes work concurrently with the caller, now or later. It passes a function
// tick that work calls often; work returns early with an error of tick.
type Run func(work func(tick func() error) error) error

// A Matcher matches one text against a grammar. It computes the next mask concurrently
// with the caller. It is not safe for concurrent use.
type Matcher struct {
	g    *Grammar
	v    *Vocabulary
	run  Run
	at   []point // the text so far; several only if items must be unique
	done bool
	work *finding // the pending mask, or nil
}

// A finding is a pending mask.
type finding struct {
	mu     sync.Mutex
	ready  chan struct{} // closed when the mask is ready
	notify func()        // called when the mask is ready; may be nil

	mask []uint64 // mask and err are set before ready is closed
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

// ErrNoToken reports a position before the end of the grammar at which no token of the
// vocabulary matches.
var ErrNoToken = errors.New("no token of the vocabulary fits the grammar here")

// NewMatcher returns a Matcher at the start of a text. A grammar caches masks for one
// vocabulary, so always use it with the same one.
func NewMatcher(g *Grammar, v *Vocabulary) (*Matcher, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, err := g.first()
	if err != nil {
		return nil, err
	}
	return &Matcher{g: g, v: v, at: []point{{at: at}}, run: func(work func(func() error) error) error {
		return work(func() error { return nil })
	}}, nil
}

// Size returns the approximate size of the grammar in bytes.
func (m *Matcher) Size() int64 { return m.g.Size() }

// Warnings says which parts of a schema the grammar ignores, each with its location.
func (m *Matcher) Warnings() []string { return m.g.Warnings() }

// FindBy sets the function that computes masks, and starts to compute the first one.
func (m *Matcher) FindBy(run Run) {
	m.run = run
	m.prepare()
}

// prepare starts to compute the next mask, unless it is cached.
func (m *Matcher) prepare() {
	if m.work != nil || m.done {
		return
	}
	f := &finding{ready: make(chan struct{})}
	m.work = f
	if mask := m.at[0].at.mask.Load(); mask != nil && !m.g.unique {
		f.end(*mask, nil)
		return
	}
	at := m.at
	go func() {
		var mask []uint64
		err := m.run(func(tick func() error) (err error) {
			mask, err = m.g.maskAt(m.v, at, tick)
			return err
		})
		f.end(mask, err)
	}()
}

// maskAt returns the tokens that are allowed at any of the points.
func (g *Grammar) maskAt(v *Vocabulary, list []point, tick func() error) ([]uint64, error) {
	var out []uint64
	for _, p := range list {
		mask, err := g.mask(v, p.at, tick)
		if err != nil {
			return nil, err
		}
		if out == nil {
			out = mask
			if len(list) > 1 {
				out = slices.Clone(mask) // masks are shared
			}
			continue
		}
		for k, word := range mask {
			out[k] |= word
		}
	}
	if !g.unique {
		return out, nil
	}
	return g.filter(v, list, out, tick)
}

// Ready reports whether Mask would return without waiting. If not, notify is called
// when the mask is ready.
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

// Mask returns the tokens that may come next, as bits in 64-bit words. The caller must
// not modify it. At the end of the grammar only end tokens are allowed.
func (m *Matcher) Mask() ([]uint64, error) {
	m.prepare()
	if m.done {
		return nil, errors.New("bug: Mask after the end of the text")
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

// Done reports whether only the end of the text may follow.
func (m *Matcher) Done() bool {
	return m.done || !slices.ContainsFunc(m.at, func(p point) bool { return !p.at.accept || len(p.at.configs) > 0 })
}

// Accept advances by a token and starts to compute the next mask. It returns an error
// and does not advance if the grammar does not allow the token.
func (m *Matcher) Accept(token int32) error {
	if token < 0 || int(token) >= m.v.size {
		return fmt.Errorf("token %d is out of range; the vocabulary has %d", token, m.v.size)
	}
	m.work = nil
	if slices.Contains(m.v.eos, token) {
		if !accepted(m.at) {
			return fmt.Errorf("token %d ends the text before the end of the grammar", token)
		}
		m.done = true
		return nil
	}
	after, err := m.follow(m.v.text[token])
	if err != nil {
		return err
	}
	if len(after) == 0 || len(m.v.text[token]) == 0 {
		return fmt.Errorf("token %d (%q) does not match the grammar here", token, m.v.text[token])
	}
	m.at = after
	m.prepare()
	return nil
}

// follow returns the points after a text.
func (m *Matcher) follow(text []byte) ([]point, error) {
	if m.g.unique {
		return m.g.followAll(m.at, text)
	}
	at := m.at[0].at
	for _, c := range text {
		var err error
		if at, err = m.g.follow(at, c); at == dead || err != nil {
			return nil, err
		}
	}
	return []point{{at: at}}, nil
}

// accepted reports whether the text may end at one of the points.
func accepted(list []point) bool {
	return slices.ContainsFunc(list, func(p point) bool { return p.at.accept })
}

// Match reports whether the grammar matches the whole text.
func (g *Grammar) Match(text string) (bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	at, err := g.first()
	w, list := &walker{g: g}, []point{{at: at}}
	for i := 0; i < len(text) && err == nil && len(list) > 0; i++ {
		list, err = w.stepAll(list, text[i])
	}
	return err == nil && accepted(list), err
}
