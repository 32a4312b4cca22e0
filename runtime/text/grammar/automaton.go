package grammar

import "fmt"

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
// 62,000.
const maxAutomaton = 1 << 17

// intersection returns the automaton of the texts that all machines accept. spend counts
// steps and returns false when there were too many.
func intersection(machines []machine, a *alphabet, spend func(int) bool) (*automaton, error) {
	out := &automaton{alphabet: a}
	ids := map[string]int32{}
	var states [][]int32
	add := func(state []int32) (int32, error) {
		key := stateKey(state)
		id, ok := ids[key]
		if !ok {
			id = int32(len(states))
			if id >= maxAutomaton || !spend(1+len(a.classes)*len(machines)/8) {
				return 0, fmt.Errorf("%w: the automaton of these texts has more than %d states; use shorter lengths and repetitions", ErrTooLarge, id)
			}
			ids[key] = id
			states = append(states, state)
			final := true
			for i, m := range machines {
				final = final && m.accepts(state[i])
			}
			out.final = append(out.final, final)
		}
		return id, nil
	}
	begin := make([]int32, len(machines))
	for i, m := range machines {
		var err error
		if begin[i], err = m.start(); err != nil {
			return nil, err
		}
		if begin[i] == noState {
			return &automaton{alphabet: a, next: [][]int32{nil}, final: []bool{false}}, nil
		}
	}
	if _, err := add(begin); err != nil {
		return nil, err
	}
	for at := 0; at < len(states); at++ {
		row := make([]int32, len(a.classes))
		for class := range row {
			to, err := stepAll(machines, states[at], class)
			if err != nil {
				return nil, err
			}
			row[class] = noState
			if to != nil {
				if row[class], err = add(to); err != nil {
					return nil, err
				}
			}
		}
		out.next = append(out.next, row)
	}
	out.trim()
	return out, nil
}

func stepAll(machines []machine, from []int32, class int) ([]int32, error) {
	to := make([]int32, len(machines))
	for i, m := range machines {
		s, err := m.step(from[i], class)
		if err != nil || s == noState {
			return nil, err
		}
		to[i] = s
	}
	return to, nil
}

func stateKey(state []int32) string {
	key := make([]byte, 0, 4*len(state))
	for _, s := range state {
		key = append(key, byte(s), byte(s>>8), byte(s>>16), byte(s>>24))
	}
	return string(key)
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

// write writes the automaton to the network.
func (b *builder) automaton(d *automaton, chars charset) part {
	p := part{b.state(), b.state()}
	states := make([]int32, len(d.next)) // created when they are reached
	states[0] = p.in
	order := []int32{0}
	for i := 0; i < len(order) && b.err == nil; i++ {
		at := order[i]
		from := states[at]
		if d.final[at] {
			b.eps(from, p.out)
		}
		targets := map[int32][]runeRange{}
		var list []int32
		for class, to := range d.next[at] {
			if to == noState {
				continue
			}
			if targets[to] == nil {
				list = append(list, to)
			}
			targets[to] = append(targets[to], d.alphabet.classes[class]...)
		}
		for _, to := range list {
			if states[to] == 0 && to != 0 {
				states[to] = b.state()
				order = append(order, to)
			}
			chars(b, part{from, states[to]}, merged(targets[to]))
		}
	}
	return p
}
