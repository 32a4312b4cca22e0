package grammar

import (
	"math/bits"
	"slices"
	"strings"
)

// A history is what arrays with unique items, and objects with unique names, need to
// remember of a text: the containers that are open since the outermost of these began,
// and their items or names so far. Histories do not change; each byte leads to a new one.
type history struct {
	level           *level // the innermost open container; nil outside of these containers
	quoted, escaped bool   // in a string
	length          int    // of the text since the outermost of them began
}

// A level is an open container.
type level struct {
	up     *level
	array  bool
	unique bool
	done   bool  // its last item or name has ended
	start  int   // where its current item or member starts
	items  *item // if they are unique, the last one first
}

// An item is an item of an array or a name of an object.
type item struct {
	before    *item
	number    int
	text, key string
}

// maxUnique limits the number of unique items of one array, which are compared with one
// another.
const maxUnique = 4096

// next returns the history after a byte; ok is false if an item is equal to an earlier
// one. text is the text since the outermost container began, without white space outside
// of strings; unique reports whether the byte opens a container with unique items.
func (h history) next(text []byte, c byte, unique bool) (after history, extended []byte, ok bool) {
	if h.level == nil && !unique || !h.quoted && c == ' ' {
		return h, text, true
	}
	text = append(text[:h.length], c)
	h.length++
	if h.quoted {
		switch {
		case h.escaped:
			h.escaped = false
		case c == '\\':
			h.escaped = true
		case c == '"':
			h.quoted = false
			return h.end(text, h.length)
		}
		return h, text, true
	}
	switch c {
	case '"':
		h.quoted = true
	case '[', '{':
		h.level = &level{up: h.level, array: c == '[', unique: unique, start: h.length}
	case ',':
		if h, text, ok = h.end(text, h.length-1); !ok {
			return h, text, false
		}
		l := *h.level
		if l.array && l.items != nil && l.items.number == maxUnique {
			return h, text, false
		}
		l.start, l.done = h.length, false
		h.level = &l
	case ']', '}':
		if h, text, ok = h.end(text, h.length-1); !ok {
			return h, text, false
		}
		if h.level = h.level.up; h.level == nil {
			return history{}, nil, true // others may still read the text
		}
		return h.end(text, h.length)
	}
	return h, text, true
}

// end ends the current item or name at a place of the text, unless it has ended.
func (h history) end(text []byte, at int) (after history, same []byte, ok bool) {
	l := h.level
	if !l.array && !l.unique || l.done || at == l.start {
		return h, text, true
	}
	ended := *l
	ended.done = true
	if l.unique {
		one := &item{before: l.items, number: 1, text: string(text[l.start:at])}
		if l.items != nil {
			one.number += l.items.number
		}
		one.key = one.text
		if v, err := readJSON([]byte(one.text)); err == nil {
			one.key = keyOf(v)
		}
		for i := l.items; i != nil; i = i.before {
			if i.key == one.key {
				return h, text, false
			}
		}
		ended.items = one
	}
	h.level = &ended
	return h, text, true
}

// opensUnique reports whether a byte at a position opens a container with unique items.
func (g *Grammar) opensUnique(p *position, c byte) bool {
	return (c == '[' || c == '{') && slices.ContainsFunc(p.configs, func(at config) bool { return g.states[at.state].unique })
}

// A walker follows texts through a grammar with their histories. The caller must hold
// g.mu.
type walker struct {
	g      *Grammar
	visits int
}

// A point is a position with its history. Its text may be overwritten by the text of
// another place that continues the same one.
type point struct {
	at   *position
	past history
	text []byte
}

// step returns the point after a byte; ok is false if the grammar does not allow it.
func (w *walker) step(p point, c byte) (after point, ok bool, err error) {
	if w.visits++; w.visits > mostVisits {
		return p, false, ErrCostly
	}
	at, err := w.g.step(p.at, c)
	if err != nil || at == dead {
		return p, false, err
	}
	past, text, ok := p.past.next(p.text, c, w.g.opensUnique(p.at, c))
	return point{at, past, text}, ok, nil
}

// open reports whether each current item that must be unique can still become different
// from the earlier ones, in the containers below a depth.
func (w *walker) open(p point, below int) (bool, error) {
	depth := depthOf(p.past.level)
	for l := p.past.level; depth > below; l, depth = l.up, depth-1 {
		if !l.unique || l.done {
			continue
		}
		if l.items != nil {
			w.visits += l.items.number / comparesPerVisit
		}
		if rest := l.alike(string(p.text[l.start:p.past.length])); len(rest) > 0 {
			if ok, err := w.differs(p, depth, rest); !ok || err != nil {
				return false, err
			}
		}
	}
	return true, nil
}

func depthOf(l *level) (n int) {
	for ; l != nil; l = l.up {
		n++
	}
	return n
}

// alike returns the texts of earlier items that begin with a text.
func (l *level) alike(text string) []string {
	var list []string
	for i := l.items; i != nil; i = i.before {
		if strings.HasPrefix(i.text, text) {
			list = append(list, i.text)
		}
	}
	return list
}

// differs reports whether the current item at a depth can become different from all
// earlier ones, of which the given ones begin like it.
func (w *walker) differs(p point, depth int, alike []string) (bool, error) {
	for c := range 256 {
		if c == ' ' && !p.past.quoted {
			continue
		}
		q, ok, err := w.step(p, byte(c))
		if ok {
			ok, err = w.open(q, depth)
		}
		if err != nil {
			return false, err
		}
		if !ok {
			continue
		}
		l := q.past.level
		n := depthOf(l)
		for ; n > depth; n-- {
			l = l.up
		}
		if n < depth || l.done || q.past.length == l.start { // the item has ended, as a new one
			return true, nil
		}
		text := string(q.text[l.start:q.past.length])
		rest := slices.DeleteFunc(slices.Clone(alike), func(one string) bool { return !strings.HasPrefix(one, text) })
		if len(rest) == 0 {
			return true, nil
		}
		if ok, err = w.differs(q, depth, rest); ok || err != nil {
			return ok, err
		}
	}
	return false, nil
}

// comparesPerVisit is the number of comparisons with earlier items that take as long as
// the visit of a state.
const comparesPerVisit = 8

// filter removes from a mask the tokens after which two items that must differ are
// equal, or cannot avoid it. It releases the grammar's lock during calls of tick.
func (g *Grammar) filter(v *Vocabulary, from point, mask []uint64, tick func() error) ([]uint64, error) {
	return g.filterOf(v, from, mask, from.suspects(v, mask), tick)
}

// filterOf is filter for some of the tokens.
func (g *Grammar) filterOf(v *Vocabulary, from point, mask []uint64, suspects []int32, tick func() error) ([]uint64, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	out := slices.Clone(mask)
	w, ticked := &walker{g: g}, 0
	from.text = slices.Grow(slices.Clone(from.text), 64) // tokens overwrite what follows it
	for _, id := range suspects {
		if out[id/64]>>(id%64)&1 == 0 {
			continue
		}
		if w.visits-ticked > tickVisits {
			ticked = w.visits
			g.mu.Unlock()
			err := tick()
			g.mu.Lock()
			if err != nil {
				return nil, err
			}
		}
		ok, err := w.allows(from, v.text[id])
		if err != nil {
			return nil, err
		}
		if !ok {
			out[id/64] &^= 1 << (id % 64)
		}
	}
	return out, nil
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
		text := string(p.text[min(l.start, len(p.text)):p.past.length])
		for _, one := range l.alike(text) {
			if rest := one[len(text):]; rest != "" {
				list = v.along(list, rest)
			}
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

func (w *walker) allows(p point, text []byte) (ok bool, err error) {
	for _, c := range text {
		if p, ok, err = w.step(p, c); !ok || err != nil {
			return false, err
		}
		if ok, err = w.open(p, 0); !ok || err != nil {
			return false, err
		}
	}
	return true, nil
}

// followAll returns the point after a text, unless two items that must differ are equal.
func (g *Grammar) followAll(p point, text []byte) (point, bool, error) {
	g.mu.Lock()
	defer g.mu.Unlock()
	w := &walker{g: g}
	p.text = slices.Clone(p.text)
	for _, c := range text {
		var ok bool
		var err error
		if p, ok, err = w.step(p, c); !ok || err != nil {
			return p, false, err
		}
	}
	return p, true, nil
}
