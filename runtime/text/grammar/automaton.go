package grammar

import (
	"encoding/binary"
	"fmt"
	"slices"
)

// A machine is a deterministic automaton over the classes of an alphabet. It computes
// its states when they are needed.
type machine interface {
	start() (int32, error)
	step(state int32, class int) (int32, error) // noState: no text follows
	accepts(state int32) bool
}

// noState is the state after a character that a machine does not allow.
const noState = -1

// A counter accepts texts of lo to hi characters; hi < 0: no limit.
type counter struct{ lo, hi int }

func (c counter) start() (int32, error) { return 0, nil }

func (c counter) step(state int32, _ int) (int32, error) {
	switch {
	case c.hi < 0:
		return min(state+1, int32(c.lo)), nil
	case int(state) >= c.hi:
		return noState, nil
	}
	return state + 1, nil
}

func (c counter) accepts(state int32) bool { return int(state) >= c.lo }

// A wordList accepts a list of words. Each of their characters is a class of its own.
type wordList struct {
	next []map[int]int32
	last []bool
}

func newWordList(words []string, a *alphabet) *wordList {
	l := &wordList{next: []map[int]int32{{}}, last: []bool{false}}
	for _, word := range words {
		at := int32(0)
		for _, c := range word {
			to, ok := l.next[at][a.of(c)]
			if !ok {
				to = int32(len(l.next))
				l.next[at][a.of(c)] = to
				l.next, l.last = append(l.next, map[int]int32{}), append(l.last, false)
			}
			at = to
		}
		l.last[at] = true
	}
	return l
}

func (l *wordList) start() (int32, error) { return 0, nil }

func (l *wordList) step(state int32, class int) (int32, error) {
	if to, ok := l.next[state][class]; ok {
		return to, nil
	}
	return noState, nil
}

func (l *wordList) accepts(state int32) bool { return l.last[state] }

// A complement accepts what another machine does not. Its states are those of the other
// one plus 1; state 0 accepts every text.
type complement struct{ of machine }

func (c complement) start() (int32, error) {
	s, err := c.of.start()
	return s + 1, err
}

func (c complement) step(state int32, class int) (int32, error) {
	if state == 0 {
		return 0, nil
	}
	s, err := c.of.step(state-1, class)
	return s + 1, err
}

func (c complement) accepts(state int32) bool { return state == 0 || !c.of.accepts(state-1) }

// An automaton is the deterministic automaton of texts that a list of machines accepts.
// State 0 is its start.
type automaton struct {
	alphabet *alphabet
	next     [][]int32 // by state and class; noState: no text follows
	final    []bool
}

// maxAutomaton limits the states of an automaton: a URI of up to 2,083 characters needs
// 98,000. A state with n classes takes 4n bytes and n/8 or more of the 4 million units of
// work, and a state of the programs of its patterns as many bytes and n/16 units. So the
// transitions of both need at most 256 MB.
const maxAutomaton = 1 << 17

// A union lists groups of machines. A text is in it if all machines of a group accept it.
type union struct {
	machines []machine
	groups   [][]int
}

// automaton returns the automaton of a union's texts, with at most the given number of
// states. spend counts steps and returns false when there were too many.
func (u *union) automaton(a *alphabet, most int, spend func(int) bool) (*automaton, error) {
	out := &automaton{alphabet: a}
	ids := map[string]int32{}
	var states [][]int32
	add := func(state []int32) (int32, error) {
		if !u.clear(state) {
			return noState, nil
		}
		key := stateKey(state)
		id, ok := ids[key]
		if !ok {
			id = int32(len(states))
			if int(id) >= most || !spend(1+len(a.classes)*len(state)/8) {
				return 0, fmt.Errorf("%w: the automaton of these texts has more than %d states; use shorter lengths and repetitions", ErrTooLarge, id)
			}
			ids[key] = id
			states = append(states, state)
			out.final = append(out.final, u.accepts(state))
		}
		return id, nil
	}
	begin := make([]int32, len(u.machines))
	for i, m := range u.machines {
		var err error
		if begin[i], err = m.start(); err != nil {
			return nil, err
		}
	}
	if first, err := add(begin); first == noState || err != nil {
		return &automaton{alphabet: a, next: [][]int32{nil}, final: []bool{false}}, err
	}
	for at := 0; at < len(states); at++ {
		row := make([]int32, len(a.classes))
		for class := range row {
			to, err := u.step(states[at], class)
			if err == nil {
				row[class], err = add(to)
			}
			if err != nil {
				return nil, err
			}
		}
		out.next = append(out.next, row)
	}
	out.trim()
	return out, nil
}

func (u *union) step(from []int32, class int) ([]int32, error) {
	to := make([]int32, len(from))
	for i, m := range u.machines {
		to[i] = noState
		if from[i] == noState {
			continue
		}
		var err error
		if to[i], err = m.step(from[i], class); err != nil {
			return nil, err
		}
	}
	return to, nil
}

// clear stops the machines whose groups can accept no text anymore. It reports false if
// no group can.
func (u *union) clear(state []int32) bool {
	needed := make([]bool, len(state))
	some := false
	for _, group := range u.groups {
		if slices.ContainsFunc(group, func(m int) bool { return state[m] == noState }) {
			continue
		}
		some = true
		for _, m := range group {
			needed[m] = true
		}
	}
	for m := range state {
		if !needed[m] {
			state[m] = noState
		}
	}
	return some
}

func (u *union) accepts(state []int32) bool {
	return slices.ContainsFunc(u.groups, func(group []int) bool {
		return !slices.ContainsFunc(group, func(m int) bool { return state[m] == noState || !u.machines[m].accepts(state[m]) })
	})
}

func stateKey(state []int32) string { return string(appendKey(nil, state...)) }

// appendKey appends numbers to a key.
func appendKey(key []byte, numbers ...int32) []byte {
	key = slices.Grow(key, 4*len(numbers))
	for _, n := range numbers {
		key = binary.LittleEndian.AppendUint32(key, uint32(n))
	}
	return key
}

// trim removes transitions to states from which no text ends.
func (d *automaton) trim() {
	back := make([][]int32, len(d.next))
	for s, row := range d.next {
		for _, to := range row {
			if to != noState {
				back[to] = append(back[to], int32(s))
			}
		}
	}
	alive := make([]bool, len(d.next))
	var work []int32
	for s, final := range d.final {
		if final {
			alive[s] = true
			work = append(work, int32(s))
		}
	}
	for len(work) > 0 {
		s := work[len(work)-1]
		work = work[:len(work)-1]
		for _, p := range back[s] {
			if !alive[p] {
				alive[p] = true
				work = append(work, p)
			}
		}
	}
	for _, row := range d.next {
		for class, to := range row {
			if to != noState && !alive[to] {
				row[class] = noState
			}
		}
	}
	if !alive[0] {
		d.next, d.final = [][]int32{nil}, []bool{false}
	}
}

// empty reports whether the automaton accepts no text.
func (d *automaton) empty() bool { return len(d.next) == 1 && d.next[0] == nil }

// An automatonWriter writes an automaton to the network.
type automatonWriter struct {
	*builder
	*automaton
	chars  charset
	states []int32          // by state of the automaton, created when they are reached
	order  []int32          // states of the automaton that were reached
	links  map[string]state // transitions of sets of classes, without their targets
}

// largeAutomaton is the number of states above which even few ranges of characters beyond
// ASCII are rules. Without them, each state of an automaton needs up to nine of the
// network, but masks over 50,000 tokens take 0.5 ms instead of 0.8 ms.
const largeAutomaton = 1 << 12

// automaton writes an automaton to the network.
func (b *builder) automaton(d *automaton, chars charset) part {
	p := part{b.state(), b.state()}
	b.compact = len(d.next) > largeAutomaton
	defer func() { b.compact = false }()
	w := &automatonWriter{builder: b, automaton: d, chars: chars, states: make([]int32, len(d.next)), order: []int32{0}, links: map[string]state{}}
	w.states[0] = p.in
	for i := 0; i < len(w.order) && b.err == nil; i++ {
		at := w.order[i]
		if d.final[at] {
			b.eps(w.states[at], p.out)
		}
		w.write(at)
	}
	return p
}

// write writes the transitions of a state.
func (w *automatonWriter) write(at int32) {
	var targets []int32
	classes := map[int32][]byte{}
	for class, to := range w.next[at] {
		if to == noState {
			continue
		}
		if classes[to] == nil {
			targets = append(targets, to)
		}
		classes[to] = append(classes[to], byte(class), byte(class>>8))
	}
	for _, to := range targets {
		if w.states[to] == 0 && to != 0 {
			w.states[to] = w.state()
			w.order = append(w.order, to)
		}
		w.link(w.states[at], w.states[to], classes[to])
	}
}

// link adds a transition for a set of classes. Most sets need no states of their own and
// occur in many states, so their transitions are determined once.
func (w *automatonWriter) link(from, to int32, classes []byte) {
	known, ok := w.links[string(classes)]
	if !ok {
		var ranges []runeRange
		for i := 0; i < len(classes); i += 2 {
			ranges = append(ranges, w.alphabet.classes[int(classes[i])|int(classes[i+1])<<8]...)
		}
		before, states := w.builder.states[from], len(w.builder.states)
		w.chars(w.builder, part{from, to}, merged(ranges))
		if len(w.builder.states) == states {
			s := &w.builder.states[from]
			w.links[string(classes)] = state{edges: slices.Clone(s.edges[len(before.edges):]), calls: slices.Clone(s.calls[len(before.calls):])}
		}
		return
	}
	s := &w.builder.states[from]
	for _, e := range known.edges {
		s.edges = append(s.edges, edge{e.lo, e.hi, to})
	}
	for _, c := range known.calls {
		s.calls = append(s.calls, call{c.rule, to})
	}
}
