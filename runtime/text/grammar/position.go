package grammar

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
)

// A frame is a call that waits: where it returns to, and the call below it.
type frame struct {
	frameKey
	id uint32
}

type frameKey struct {
	ret int32
	up  *frame
}

// A config is one place in which the network may be: a state, and the calls
// that wait.
type config struct {
	state int32
	frame *frame
}

// A position is the set of all configs that the bytes so far lead to. Its
// transitions and its mask are found when they are first asked for.
type position struct {
	configs []config // those that a byte can lead on from
	accept  bool     // the text may end here
	next    atomic.Pointer[transitions]
	mask    atomic.Pointer[[]uint64]
}

// transitions are the positions behind one byte of each class; nil: not found.
// They are read without the grammar's lock, which others may hold while they find
// masks.
type transitions []atomic.Pointer[position]

// dead is the position after a byte that the grammar does not allow.
var dead = &position{}

// first gives the position before any byte.
func (g *Grammar) first() (*position, error) {
	if g.start == nil {
		p, err := g.close([]config{{state: g.rules[g.root].start}})
		if err != nil {
			return nil, err
		}
		g.start = p
	}
	return g.start, nil
}

// step gives the position after a byte. The caller holds g.mu.
func (g *Grammar) step(p *position, c byte) (*position, error) {
	if p == dead {
		return dead, nil
	}
	class := g.classes[c]
	next := p.next.Load()
	if next == nil {
		list := make(transitions, len(g.samples))
		next = &list
		p.next.Store(next)
		g.memory.add(8 * len(list))
	}
	if q := (*next)[class].Load(); q != nil {
		return q, nil
	}
	g.visits += len(p.configs)
	sample := g.samples[class]
	var after []config
	for _, at := range p.configs {
		for _, e := range g.states[at.state].edges {
			if e.lo <= sample && sample <= e.hi {
				after = append(after, config{e.to, at.frame})
			}
		}
	}
	q, err := g.close(after)
	if err != nil {
		return nil, err
	}
	(*next)[class].Store(q)
	return q, nil
}

// follow is step for callers without the lock: a mask has found where its tokens
// lead.
func (g *Grammar) follow(p *position, c byte) (*position, error) {
	if next := p.next.Load(); next != nil {
		if q := (*next)[g.classes[c]].Load(); q != nil {
			return q, nil
		}
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.step(p, c)
}

// close follows everything that needs no byte (eps, calls and returns) and
// gives the position of what is reached.
func (g *Grammar) close(list []config) (*position, error) {
	seen := make(map[config]bool, len(list))
	add := func(c config) {
		if !seen[c] {
			seen[c] = true
			list = append(list, c)
		}
	}
	begin := list
	list = nil
	for _, c := range begin {
		add(c)
	}
	p := &position{}
	for i := 0; i < len(list); i++ {
		if i > maxConfigs {
			return nil, fmt.Errorf("%w: the text so far can be read in over %d ways", ErrTooLarge, maxConfigs)
		}
		c := list[i]
		st := &g.states[c.state]
		for _, t := range st.eps {
			add(config{t, c.frame})
		}
		for _, call := range st.calls {
			f := c.frame
			if !g.states[call.ret].tail {
				f = g.frame(call.ret, c.frame)
			}
			add(config{g.rules[call.rule].start, f})
		}
		switch {
		case st.final && c.frame == nil:
			p.accept = true
		case st.final:
			add(config{c.frame.ret, c.frame.up})
		}
		if len(st.edges) > 0 {
			p.configs = append(p.configs, c)
		}
	}
	g.visits += len(list)
	if len(p.configs) == 0 && !p.accept {
		return dead, nil
	}
	return g.intern(p), nil
}

// What a position and a frame take besides their lists, in their maps too.
const (
	positionBytes = 160
	frameBytes    = 96
)

// frame gives the one frame of its kind, so that frames compare as pointers.
func (g *Grammar) frame(ret int32, up *frame) *frame {
	key := frameKey{ret, up}
	f := g.frames[key]
	if f == nil {
		g.lastFrame++
		f = &frame{key, g.lastFrame}
		g.frames[key] = f
		g.memory.add(frameBytes)
	}
	return f
}

// intern gives the position that has the same configs, if it is known.
func (g *Grammar) intern(p *position) *position {
	id := func(c config) uint64 {
		if c.frame == nil {
			return uint64(uint32(c.state)) << 32
		}
		return uint64(uint32(c.state))<<32 | uint64(c.frame.id)
	}
	slices.SortFunc(p.configs, func(a, b config) int { return cmp.Compare(id(a), id(b)) })
	key := make([]byte, 0, 8*len(p.configs)+1)
	for _, c := range p.configs {
		key = binary.LittleEndian.AppendUint64(key, id(c))
	}
	if p.accept {
		key = append(key, 1)
	}
	if known := g.positions[string(key)]; known != nil {
		return known
	}
	if g.memory.full() {
		g.forget()
	}
	g.positions[string(key)] = p
	g.memory.add(positionBytes + 16*cap(p.configs) + len(key))
	return p
}
