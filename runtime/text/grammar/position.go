package grammar

import (
	"cmp"
	"encoding/binary"
	"fmt"
	"slices"
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
	next    []*position
	mask    []uint64
}

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
	if p.next == nil {
		p.next = make([]*position, len(g.samples))
	}
	if q := p.next[class]; q != nil {
		return q, nil
	}
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
	p.next[class] = q
	return q, nil
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
	if len(p.configs) == 0 && !p.accept {
		return dead, nil
	}
	return g.intern(p), nil
}

// frame gives the one frame of its kind, so that frames compare as pointers.
func (g *Grammar) frame(ret int32, up *frame) *frame {
	key := frameKey{ret, up}
	f := g.frames[key]
	if f == nil {
		g.lastFrame++
		f = &frame{key, g.lastFrame}
		g.frames[key] = f
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
	if len(g.positions) >= maxPositions {
		g.forget()
	}
	g.positions[string(key)] = p
	return p
}
