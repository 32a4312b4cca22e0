package jinja

import "time"

// A state is the state of one render.
type state struct {
	limits  Limits
	steps   int
	ticked  int // steps at the last call of Tick
	depth   int // of calls
	nested  int // of values being compared
	line    int // of the current statement
	now     time.Time
	filters map[string]filterFunc
	tests   map[string]testFunc
	out     *builder
	scope   *scope
	items   []Value // of the running loops, outermost first
}

func newState(opt Options) *state {
	l := opt.Limits
	fill := func(v *int, otherwise int) {
		if *v == 0 {
			*v = otherwise
		}
	}
	fill(&l.Steps, 20_000_000)
	fill(&l.Bytes, 16<<20)
	fill(&l.Depth, 200)
	return &state{limits: l, now: opt.Now, out: &builder{}, tests: tests}
}

// tickSteps is the number of steps between two calls of Tick: about 100 µs.
const tickSteps = 1000

// charge counts steps before they are taken, and fails beyond the limit.
func (s *state) charge(n int) {
	if s.steps += n; s.steps > s.limits.Steps {
		fail("the template takes more than %d steps", s.limits.Steps)
	}
	if s.limits.Tick != nil && s.steps-s.ticked >= tickSteps {
		s.ticked = s.steps
		if err := s.limits.Tick(); err != nil {
			panic(&Stopped{err})
		}
	}
}

// weigh charges for reading the texts among the values once, as every filter, test,
// method and operator may do. One that takes longer, or that reads the items of a list,
// charges for that itself.
func (s *state) weigh(values ...Value) {
	n := 0
	for _, v := range values {
		if text, ok := v.(Str); ok {
			n += len(text.s)/32 + len(text.user)/4
		}
	}
	s.charge(n)
}

// checkLen limits the length of a string or a list, and charges for creating it.
func (s *state) checkLen(n int) {
	if n > s.limits.Bytes || n < 0 {
		fail("the template makes a text or list larger than %d", s.limits.Bytes)
	}
}

// made charges for a new string.
func (s *state) made(v Str) Str {
	s.checkLen(len(v.s))
	s.charge(len(v.s)/16 + len(v.user))
	return v
}

func (s *state) enter() {
	if s.depth++; s.depth > s.limits.Depth {
		fail("RecursionError: calls nested deeper than %d", s.limits.Depth)
	}
}

func (s *state) leave() { s.depth-- }

// nest limits the depth of nested values.
func (s *state) nest() {
	if s.nested++; s.nested > maxNesting {
		fail("RecursionError: a value is nested deeper than %d", maxNesting)
	}
}

func (s *state) unnest() { s.nested-- }

// A scope holds the variables of a block. Reads also search the enclosing scopes;
// writes do not.
type scope struct {
	vars   map[string]Value
	parent *scope
}

func (c *scope) get(name string) (Value, bool) {
	for ; c != nil; c = c.parent {
		if v, ok := c.vars[name]; ok {
			return v, true
		}
	}
	return nil, false
}

func (c *scope) set(name string, v Value) {
	if c.vars == nil {
		c.vars = map[string]Value{}
	}
	c.vars[name] = v
}

// in runs f in a new scope inside of parent.
func (s *state) in(parent *scope, f func()) {
	old := s.scope
	s.scope = &scope{parent: parent}
	f()
	s.scope = old
}

// capture returns the output of f.
func (s *state) capture(f func()) Str {
	old := s.out
	s.out = &builder{}
	f()
	out := s.out.str()
	s.out = old
	return s.made(out)
}

// write appends to the output.
func (s *state) write(v Str) {
	s.out.add(v)
	s.charge(1 + len(v.s)/16)
	s.checkLen(len(s.out.b))
}
