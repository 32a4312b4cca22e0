package grammar

import (
	"cmp"
	"fmt"
	"slices"
)

// A program runs a pattern with look-around as a machine. Its states are sets of
// threads: each is an instruction with the look-aheads that the rest of the text must
// still meet. Looks behind run beside it as programs of their own.
type program struct {
	code    []instruction
	sets    [][]bool   // by set and class
	looks   []*program // looks ahead
	behind  []*program // looks behind
	anyEnd  bool       // the match may be followed by other text
	spend   func(int) bool
	ids     map[string]int32
	states  []programState
	next    [][]int32
	classes int

	accepting map[int32]bool // whether the text may end in a state, once it is known
}

type instruction struct {
	op     instructionOp
	index  int     // of the set, or of the look among those in its direction
	not    bool    // of a look
	behind bool    // of a look
	to     []int32 // where it continues
}

type instructionOp uint8

const (
	runSet instructionOp = iota
	runSplit
	runLook
	runBegin
	runMatch
)

// A programState is a set of threads, and the states of the looks behind.
type programState struct {
	threads []thread
	behind  []int32
	now     bool // a match has ended, whatever text follows
}

type thread struct {
	at      int32
	pending []pending // in order
}

// pending is a look-ahead that has begun.
type pending struct {
	look, state int32
	not         bool
}

const maxThreads = 2000

var errParses = fmt.Errorf("%w: the pattern has too many parses; use fewer alternatives and repetitions", ErrTooLarge)

func (g *program) start() (int32, error) {
	behind := make([]int32, len(g.behind))
	for i, l := range g.behind {
		var err error
		if behind[i], err = l.start(); err != nil {
			return 0, err
		}
	}
	return g.close([]thread{{at: int32(len(g.code) - 1)}}, behind, true)
}

func (g *program) accepts(state int32) bool {
	s := &g.states[state]
	if s.now {
		return true
	}
	known, ok := g.accepting[state]
	if !ok { // look-aheads in look-aheads ask for the same states many times
		known = slices.ContainsFunc(s.threads, func(t thread) bool {
			return g.code[t.at].op == runMatch && !slices.ContainsFunc(t.pending, func(p pending) bool {
				return g.looks[p.look].accepts(p.state) == p.not
			})
		})
		g.accepting[state] = known
	}
	return known
}

func (g *program) step(state int32, class int) (int32, error) {
	if g.states[state].now {
		return state, nil
	}
	if g.next[state] == nil {
		if !g.spend(g.classes / 16) {
			return 0, errParses
		}
		g.next[state] = slices.Repeat([]int32{noState - 1}, g.classes)
	}
	if to := g.next[state][class]; to >= noState {
		return to, nil
	}
	s := g.states[state] // a copy: close appends to the states
	if !g.spend((len(g.behind) + len(s.threads)) / 4) {
		return 0, errParses
	}
	behind := make([]int32, len(g.behind))
	for i, l := range g.behind {
		behind[i] = s.behind[i]
		if behind[i] == noState {
			continue
		}
		var err error
		if behind[i], err = l.step(behind[i], class); err != nil {
			return 0, err
		}
	}
	var threads []thread
	for _, t := range s.threads {
		code := &g.code[t.at]
		rest, ok, err := g.advance(t.pending, class)
		if err != nil {
			return 0, err
		}
		switch {
		case !ok:
		case code.op == runMatch && g.anyEnd:
			threads = append(threads, thread{t.at, rest})
		case code.op == runSet && g.sets[code.index][class]:
			threads = append(threads, thread{code.to[0], rest})
		}
	}
	to, err := g.close(threads, behind, false)
	g.next[state][class] = to
	return to, err
}

// advance steps look-aheads by a character; ok is false if one of them fails.
func (g *program) advance(list []pending, class int) (rest []pending, ok bool, err error) {
	for _, p := range list {
		to, err := g.looks[p.look].step(p.state, class)
		if err != nil {
			return nil, false, err
		}
		if rest, ok = g.begin(rest, pending{p.look, to, p.not}); !ok {
			return nil, false, nil
		}
	}
	return rest, true, nil
}

// begin adds a look-ahead to a list unless it has already succeeded; ok is false if it
// has failed.
func (g *program) begin(list []pending, p pending) ([]pending, bool) {
	switch {
	case p.state == noState:
		return list, p.not
	case g.looks[p.look].states[p.state].now:
		return list, !p.not
	}
	i, found := slices.BinarySearchFunc(list, p, comparePending)
	if found {
		return list, true
	}
	return slices.Insert(slices.Clone(list), i, p), true
}

// close follows the instructions that read no character and returns the resulting
// state.
func (g *program) close(list []thread, behind []int32, first bool) (int32, error) {
	seen := map[string]bool{} // threads that need look-aheads
	free := map[int32]bool{}  // instructions with a thread that needs none
	out := programState{behind: behind}
	var key []byte
	for len(list) > 0 {
		t := list[len(list)-1]
		list = list[:len(list)-1]
		if free[t.at] {
			continue
		}
		if len(t.pending) == 0 {
			free[t.at] = true
		} else {
			key = appendThread(key[:0], t)
			if seen[string(key)] {
				continue
			}
			seen[string(key)] = true
		}
		if len(seen)+len(free) > maxThreads || !g.spend(1+2*len(t.pending)+len(g.code[t.at].to)/4) {
			return 0, errParses
		}
		switch code := &g.code[t.at]; code.op {
		case runSplit:
			for _, to := range slices.Backward(code.to) {
				list = append(list, thread{to, t.pending})
			}
		case runBegin:
			if first {
				list = append(list, thread{code.to[0], t.pending})
			}
		case runLook:
			rest, ok, err := g.look(code, t.pending, behind, first)
			if err != nil {
				return 0, err
			}
			if ok {
				list = append(list, thread{code.to[0], rest})
			}
		default:
			out.now = out.now || code.op == runMatch && g.anyEnd && len(t.pending) == 0
			out.threads = append(out.threads, t)
		}
	}
	return g.state(out)
}

// look evaluates a look at the current place of the text.
func (g *program) look(code *instruction, list []pending, behind []int32, first bool) (rest []pending, ok bool, err error) {
	if code.behind {
		at := behind[code.index]
		return list, (at != noState && g.behind[code.index].accepts(at)) != code.not, nil
	}
	l := g.looks[code.index]
	if len(l.behind) > 0 {
		return nil, false, fmt.Errorf("a look-behind or a word boundary in a look-ahead is not supported; write it outside of it")
	}
	at, err := l.close([]thread{{at: int32(len(l.code) - 1)}}, nil, first)
	if err != nil {
		return nil, false, err
	}
	rest, ok = g.begin(list, pending{int32(code.index), at, code.not})
	return rest, ok, nil
}

func comparePending(a, b pending) int {
	return cmp.Or(cmp.Compare(a.look, b.look), cmp.Compare(a.state, b.state))
}

// appendThread appends a thread to the key of a state.
func appendThread(key []byte, t thread) []byte {
	key = appendKey(key, t.at)
	for _, p := range t.pending {
		key = appendKey(key, p.look, p.state)
	}
	return key
}

// state returns the number of a state.
func (g *program) state(s programState) (int32, error) {
	if len(s.threads) == 0 {
		return noState, nil
	}
	key := []byte("now")
	if s.now {
		s = programState{now: true}
	} else {
		slices.SortFunc(s.threads, func(a, b thread) int {
			return cmp.Or(cmp.Compare(a.at, b.at), slices.CompareFunc(a.pending, b.pending, comparePending))
		})
		key = appendKey(nil, s.behind...)
		for _, t := range s.threads {
			key = appendKey(appendThread(key, t), -1)
		}
	}
	if !g.spend(len(key) / 32) {
		return 0, errParses
	}
	id, ok := g.ids[string(key)]
	if !ok {
		id = int32(len(g.states))
		g.ids[string(key)] = id
		g.states = append(g.states, s)
		g.next = append(g.next, nil)
	}
	return id, nil
}
