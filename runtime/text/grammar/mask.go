package grammar

import "fmt"

// Limits of the search for a mask. With 150,000 tokens, the mask inside a JSON string
// takes 7,000 visits (0.2 ms). That of (.|\n)*[a-m ](.|\n){300} after 13 tokens takes 3.5
// million, mostly of states (0.3 s).
const (
	mostVisits = 4 << 20 // visited states of the network and nodes of the vocabulary
	tickVisits = 4 << 10 // visits between calls of tick
)

// ErrCostly reports a position at which the search for the mask exceeds its limit.
var ErrCostly = fmt.Errorf("%w: finding the next tokens takes more than %d steps; use fewer alternatives and shorter repetitions", ErrTooLarge, mostVisits)

// A search finds the tokens that are allowed at a position. It walks over the trie of
// the vocabulary, except for the tokens that a run allows or excludes.
type search struct {
	g    *Grammar
	v    *Vocabulary
	run  *run
	mask []uint64
	tick func() error

	visits, since int

	stack []siblings
}

// siblings are nodes that the walk has yet to visit, the position before them, and
// whether the run has the bytes up to there.
type siblings struct {
	next, end int32
	at        *position
	pure      bool
}

// mask returns the tokens that are allowed at p. It releases the grammar's lock during
// calls of tick.
func (g *Grammar) mask(v *Vocabulary, p *position, tick func() error) ([]uint64, error) {
	if known := p.mask.Load(); known != nil {
		return *known, nil
	}
	g.mu.Lock()
	defer g.mu.Unlock()
	if known := p.mask.Load(); known != nil { // computed while this waited
		return *known, nil
	}
	s := search{g: g, v: v, mask: make([]uint64, v.Words()), tick: tick}
	before := g.visits
	s.run = g.run(p)
	s.since = g.visits - before
	if s.run.length > 0 {
		s.start()
	}
	if err := s.walk(p); err != nil {
		return nil, err
	}
	if p.accept {
		for _, id := range v.eos {
			if id >= 0 && int(id) < v.size {
				s.mask[id/64] |= 1 << (id % 64)
			}
		}
	}
	if p.mask.CompareAndSwap(nil, &s.mask) {
		g.memory.add(8 * len(s.mask))
	}
	return s.mask, nil
}

// start sets the tokens of the run. The walk adds those whose first character is in
// the tail but not in the head.
func (s *search) start() {
	s.v.tokensOf(s.run.tail).upTo(s.run.length, s.mask)
	if s.run.head == s.run.tail {
		return
	}
	nodes := s.v.nodes
	from, to := nodes[0].children()
	for i := from; i < to; i++ {
		if s.run.spells(&nodes[i]) {
			continue
		}
		last := int32(len(s.v.order))
		if i+1 < to {
			last = nodes[i+1].first
		}
		for _, id := range s.v.order[nodes[i].first:last] {
			s.mask[id/64] &^= 1 << (id % 64)
		}
	}
}

// pause calls tick now and then, without the lock.
func (s *search) pause() error {
	if s.visits += s.since; s.visits > mostVisits {
		return ErrCostly
	}
	s.since = 0
	s.g.mu.Unlock()
	err := s.tick()
	s.g.mu.Lock()
	return err
}

// walk sets the tokens that the run does not decide.
func (s *search) walk(p *position) error {
	s.push(&s.v.nodes[0], p, s.run.length > 0)
	for len(s.stack) > 0 {
		l := &s.stack[len(s.stack)-1]
		if l.next == l.end {
			s.stack = s.stack[:len(s.stack)-1]
			continue
		}
		n := &s.v.nodes[l.next]
		l.next++
		pure := l.pure && s.run.spells(n)
		if pure && s.run.decides(n) {
			s.since++
			continue
		}
		before := s.g.visits
		q, err := s.g.step(l.at, n.b)
		if err != nil {
			return err
		}
		if s.since += 1 + s.g.visits - before; s.since > tickVisits {
			if err := s.pause(); err != nil {
				return err
			}
		}
		if q == dead {
			continue
		}
		for _, id := range s.v.order[n.first:n.last] {
			s.mask[id/64] |= 1 << (id % 64)
		}
		s.push(n, q, pure)
	}
	return nil
}

func (s *search) push(n *node, at *position, pure bool) {
	if n.kids != 0 {
		from, to := n.children()
		s.stack = append(s.stack, siblings{from, to, at, pure})
	}
}
