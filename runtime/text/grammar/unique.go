package grammar

import (
	"cmp"
	"fmt"
	"math/bits"
	"slices"
)

// A point is a place in a text with unique items: a position with the history of the text.
// Where a bracket may open a container with unique items or another one, the text is at
// several points.
type point struct {
	at   *position
	past history
	text []byte // others that continue the same text may overwrite what follows it
}

// maxPoints limits the points of one text. Others are dropped, which only arrays in more
// than six arrays with such a choice in each have.
const maxPoints = 64

// A walker follows texts through a grammar with their histories. The caller must hold
// g.mu.
type walker struct {
	g      *Grammar
	visits int
	tick   func() error // called now and then without the lock; may be nil
	ticked int          // visits at the last call
}

// visited counts visits. It calls tick now and then.
func (w *walker) visited(n int) error {
	if w.visits += n; w.visits > mostVisits {
		return ErrCostly
	}
	if w.tick == nil || w.visits-w.ticked <= tickVisits {
		return nil
	}
	w.ticked = w.visits
	w.g.mu.Unlock()
	defer w.g.mu.Lock()
	return w.tick()
}

// step appends the points after a byte at p to list.
func (w *walker) step(list []point, p point, c byte) ([]point, error) {
	g := w.g
	at, err := g.step(p.at, c)
	if at == dead || err != nil {
		return list, err
	}
	if err := w.visited(1); err != nil {
		return nil, err
	}
	if c == ',' && p.past.full() {
		if end, err := g.step(p.at, p.past.level.shut()); end != dead || err != nil {
			return list, err
		}
	}
	var unique, others []config
	if (c == '[' || c == '{') && !p.past.quoted {
		unique, others = g.split(p.at, c)
	}
	if len(unique) == 0 || len(others) == 0 {
		return w.add(list, p, at, c, len(unique) > 0)
	}
	for i, after := range [][]config{unique, others} {
		if at, err = g.after(after); err != nil {
			return nil, err
		}
		if list, err = w.add(list, p, at, c, i == 0); err != nil {
			return nil, err
		}
	}
	return list, nil
}

// add appends the point at a position after a byte at p, unless two items are equal. It
// unites points with the same history.
func (w *walker) add(list []point, p point, at *position, c byte, unique bool) ([]point, error) {
	if at == dead {
		return list, nil
	}
	past, text, ok := p.past.next(p.text, c, unique)
	if !ok {
		return list, nil
	}
	for i := range list {
		if q := &list[i]; q.past.same(past) {
			both, err := w.g.union(q.at, at)
			q.at = both
			return list, err
		}
	}
	if len(list) == maxPoints {
		return list, nil
	}
	return append(list, point{at, past, text}), nil
}

// stepAll returns the points after a byte at any of the points of list.
func (w *walker) stepAll(list []point, c byte) (after []point, err error) {
	for _, p := range list {
		if after, err = w.step(after, p, c); err != nil {
			return nil, err
		}
	}
	return after, nil
}

// split returns the configs after a bracket that opens a container with unique items, and
// those after one that does not.
func (g *Grammar) split(p *position, c byte) (unique, others []config) {
	if !g.unique {
		return nil, nil
	}
	for _, at := range p.configs {
		if g.states[at.state].unique {
			unique = g.move(unique, at, c)
		} else {
			others = g.move(others, at, c)
		}
	}
	return unique, others
}

// union returns the position with the configs of both.
func (g *Grammar) union(p, q *position) (*position, error) {
	if p == q {
		return p, nil
	}
	both := &position{accept: p.accept || q.accept}
	list := configs{list: slices.Clone(p.configs)}
	for _, c := range q.configs {
		list.add(c)
	}
	if both.configs = list.list; len(both.configs) > maxConfigs {
		return nil, fmt.Errorf("%w: the text so far has more than %d parses", ErrTooLarge, maxConfigs)
	}
	g.visits += len(both.configs)
	return g.intern(both), nil
}

// open reports whether each current item that must be unique can still become different
// from the earlier ones, in the containers below a depth.
func (w *walker) open(p point, below int) (bool, error) {
	depth := depthOf(p.past.level)
	for l := p.past.level; depth > below; l, depth = l.up, depth-1 {
		if !l.unique || l.done || len(l.items) == 0 {
			continue
		}
		text := p.text[l.start:p.past.length]
		if err := w.visited((len(text) + len(l.items)) / bytesPerVisit); err != nil {
			return false, err
		}
		if rest := itemsAlike(l.items, text); len(rest) > 0 {
			if ok, err := w.differs(p, depth, rest); !ok || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

// bytesPerVisit is the number of bytes whose comparison takes as long as the visit of a
// state.
const bytesPerVisit = 64

// above returns the level n levels above l.
func (l *level) above(n int) *level {
	for ; n > 0; n-- {
		l = l.up
	}
	return l
}

func depthOf(l *level) (n int) {
	for ; l != nil; l = l.up {
		n++
	}
	return n
}

// differs reports whether the current item at a depth can become different from all
// earlier ones, of which the given ones may begin like it. It tries the bytes first with
// which none of these goes on.
func (w *walker) differs(p point, depth int, earlier []item) (bool, error) {
	at := p.past.length - p.past.level.above(depthOf(p.past.level)-depth).start
	var goesOn [256]bool
	for _, i := range earlier {
		if i.value == nil && at < len(i.key) {
			goesOn[i.key[at]] = true
		}
	}
	for _, last := range []bool{false, true} {
		for c := range 256 {
			if goesOn[c] != last || c == ' ' && !p.past.quoted {
				continue
			}
			list, err := w.step(nil, p, byte(c))
			if err != nil {
				return false, err
			}
			for _, q := range list {
				if ok, err := w.differsAfter(q, depth, earlier); ok || err != nil {
					return ok, err
				}
			}
		}
	}
	return false, nil
}

// differsAfter is differs after one more byte.
func (w *walker) differsAfter(p point, depth int, earlier []item) (bool, error) {
	if ok, err := w.open(p, depth); !ok || err != nil {
		return false, err
	}
	n := depthOf(p.past.level)
	if n < depth { // the item has ended, as a new one
		return true, nil
	}
	l := p.past.level.above(n - depth)
	if l.done || p.past.length == l.start { // the same
		return true, nil
	}
	rest := itemsAlike(earlier, p.text[l.start:p.past.length])
	if len(rest) == 0 {
		return true, nil
	}
	return w.differs(p, depth, rest)
}

// filter removes from a mask the tokens after which two items that must differ are equal,
// or cannot avoid it, at all points of a list. It releases the grammar's lock during
// calls of tick.
func (g *Grammar) filter(v *Vocabulary, list []point, mask []uint64, tick func() error) ([]uint64, error) {
	var suspects []int32
	for _, p := range list {
		suspects = append(suspects, p.suspects(v, mask)...)
	}
	return g.filterOf(v, list, mask, suspects, tick)
}

// filterOf is filter for some of the tokens.
func (g *Grammar) filterOf(v *Vocabulary, list []point, mask []uint64, suspects []int32, tick func() error) ([]uint64, error) {
	suspects = slices.DeleteFunc(slices.Clone(suspects), func(id int32) bool { return mask[id/64]>>(id%64)&1 == 0 })
	slices.SortFunc(suspects, func(a, b int32) int { return cmp.Compare(v.rank[a], v.rank[b]) })
	g.mu.Lock()
	defer g.mu.Unlock()
	out := slices.Clone(mask)
	w := &walker{g: g, tick: tick}
	var token []byte
	after := [][]point{detached(list)} // after[i]: the points after i bytes of a token
	for _, id := range slices.Compact(suspects) {
		same := 0 // bytes that the token shares with the one before
		for text := v.text[id]; same < min(len(text), len(token), len(after)-1) && text[same] == token[same]; {
			same++
		}
		token, after = v.text[id], after[:same+1]
		for i := same; i < len(token) && len(after[i]) > 0; i++ {
			next, err := w.allowed(after[i], token[i])
			if err != nil {
				return nil, err
			}
			after = append(after, next)
		}
		if len(after) <= len(token) || len(after[len(token)]) == 0 {
			out[id/64] &^= 1 << (id % 64)
		}
	}
	return out, nil
}

// detached returns points with texts of their own, with room for a token.
func detached(list []point) []point {
	list = slices.Clone(list)
	for i := range list {
		if p := &list[i]; p.past.level != nil {
			p.text = append(make([]byte, 0, len(p.text)+64), p.text...)
		}
	}
	return list
}

// allowed returns the points after a byte at which each current item can still differ
// from the earlier ones.
func (w *walker) allowed(list []point, c byte) ([]point, error) {
	after, err := w.stepAll(list, c)
	if err != nil {
		return nil, err
	}
	open := after[:0]
	for _, p := range after {
		ok, err := w.open(p, 0)
		if err != nil {
			return nil, err
		}
		if ok {
			open = append(open, p)
		}
	}
	return open, nil
}

// suspects lists the tokens after which two items may be equal. Outside of strings these
// are all tokens of the mask, which are few. In a string, a token that differs from what
// follows in each earlier item that begins alike is only suspect if it leaves the string.
func (p point) suspects(v *Vocabulary, mask []uint64) []int32 {
	switch {
	case p.past.level == nil:
		return v.opening
	case !p.past.quoted:
		return slices.DeleteFunc(tokensIn(mask), func(id int32) bool { return slices.Contains(v.eos, id) })
	}
	list := v.leaving[:len(v.leaving):len(v.leaving)]
	for l := p.past.level; l != nil; l = l.up {
		if l.done || len(l.items) == 0 {
			continue
		}
		text := p.text[l.start:p.past.length]
		for _, one := range itemsAlike(l.items, text) {
			one.following(text, func(rest string) { list = v.along(list, rest) })
		}
	}
	return list
}

// tokensIn lists the tokens of a mask.
func tokensIn(mask []uint64) (list []int32) {
	for i, word := range mask {
		for ; word != 0; word &= word - 1 {
			list = append(list, int32(64*i+bits.TrailingZeros64(word)))
		}
	}
	return list
}

// followAll returns the points after a text.
func (g *Grammar) followAll(list []point, text []byte) ([]point, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &walker{g: g}
	list = detached(list) // masks may still be computed from it
	var err error
	for _, c := range text {
		if list, err = w.stepAll(list, c); err != nil {
			return nil, err
		}
	}
	return list, nil
}
