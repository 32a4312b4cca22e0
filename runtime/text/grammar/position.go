package grammar

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
	"sync/atomic"
)

// A frame is an entry of a call stack: the state to return to, and the frame below it.
type frame struct {
	frameKey
	id uint32
}

type frameKey struct {
	ret int32
	up  *frame
}

// A config is a state of the network with its call stack.
type config struct {
	state int32
	frame *frame
}

// A position is the set of all configs that the bytes so far lead to. All but its configs
// is computed on demand.
type position struct {
	configs  []config // those with edges
	accept   bool     // the text may end here
	next     atomic.Pointer[transitions]
	mask     atomic.Pointer[[]uint64]
	majority *majority // nil: not computed
	run      *run      // nil: not computed
}

// transitions are the positions after one byte of each class; nil: not computed. They
// are read without the grammar's lock, which others may hold while they compute masks.
type transitions []atomic.Pointer[position]

// dead is the position after a byte that the grammar does not allow.
var dead = &position{}

// first returns the position before any byte.
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

// step returns the position after a byte. The caller must hold g.mu.
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
	after := g.moved[:0]
	for _, at := range p.configs {
		after = g.move(after, at, sample)
	}
	g.moved = after
	q, err := g.after(after)
	if err != nil {
		return nil, err
	}
	(*next)[class].Store(q)
	return q, nil
}

// move appends the configs after a byte to list.
func (g *Grammar) move(list []config, at config, c byte) []config {
	for _, e := range g.states[at.state].edges {
		if e.lo <= c && c <= e.hi {
			list = append(list, config{e.to, at.frame})
		}
	}
	return list
}

// follow is like step for callers without the lock. The transition is usually cached,
// because a mask was computed at p.
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

// after returns the position of the configs and of those that follow without a byte. It
// caches lists of one config, which are frequent, and the last other list: neighboring
// classes often lead to the same configs.
func (g *Grammar) after(list []config) (*position, error) {
	switch {
	case len(list) == 0:
		return dead, nil
	case len(list) == 1:
		if p := g.closed[list[0]]; p != nil {
			return p, nil
		}
	case slices.Equal(list, g.last):
		return g.lastTo, nil
	}
	p, err := g.close(list)
	if err != nil {
		return nil, err
	}
	if len(list) == 1 {
		g.closed[list[0]] = p
		g.memory.add(closedBytes)
	} else {
		g.last, g.lastTo = append(g.last[:0], list...), p
	}
	return p, nil
}

// close follows all transitions that consume no byte (eps, calls and returns) and
// returns the position of the resulting configs.
func (g *Grammar) close(begin []config) (*position, error) {
	list := configs{list: g.buffer[:0]}
	for _, c := range begin {
		list.add(c)
	}
	p := &position{}
	for i := 0; i < len(list.list); i++ {
		if i > maxConfigs {
			return nil, fmt.Errorf("%w: the text so far has more than %d parses", ErrTooLarge, maxConfigs)
		}
		c := list.list[i]
		st := &g.states[c.state]
		for _, t := range st.eps {
			list.add(config{t, c.frame})
		}
		for _, call := range st.calls {
			f := c.frame
			if !g.states[call.ret].tail {
				f = g.frame(call.ret, c.frame)
			}
			list.add(config{g.rules[call.rule].start, f})
		}
		switch {
		case st.final && c.frame == nil:
			p.accept = true
		case st.final:
			list.add(config{c.frame.ret, c.frame.up})
		}
		if len(st.edges) > 0 {
			p.configs = append(p.configs, c)
		}
	}
	g.visits += len(list.list)
	g.buffer = list.list
	if len(p.configs) == 0 && !p.accept {
		return dead, nil
	}
	return g.intern(p), nil
}

// configs is a list of distinct configs.
type configs struct {
	list []config
	seen map[config]bool // of long lists
}

func (l *configs) add(c config) {
	const short = 24 // 8 and 64 made no difference
	switch {
	case len(l.list) < short:
		if slices.Contains(l.list, c) {
			return
		}
	case l.seen == nil:
		l.seen = make(map[config]bool, 4*short)
		for _, c := range l.list {
			l.seen[c] = true
		}
		fallthrough
	default:
		if l.seen[c] {
			return
		}
		l.seen[c] = true
	}
	l.list = append(l.list, c)
}

// Approximate sizes of a position and a frame without their lists, of an entry of closed
// and of a run, including map entries.
const (
	positionBytes = 176
	frameBytes    = 96
	closedBytes   = 48
	runBytes      = 112 // with the majority that it comes from
)

// frame returns the canonical frame of its kind, so frames can be compared as pointers.
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

// intern returns the cached position with the same configs, or p.
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
