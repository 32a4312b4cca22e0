package grammar

import (
	"math/big"
	"slices"
	"strings"
)

// A lister lists the values of finite sets: those that the grammar writes.
type lister struct {
	w     *schemaWriter
	path  string
	most  int // number of values up to which a list is needed
	steps int // for the current list
	known map[int32]listing

	// A set may contain itself. Its list is empty at first, and is determined again until
	// it does not grow.
	last         map[int32]listing
	under        map[int32]bool
	cyclic, grew bool
}

// A listing is a list of different values. It is not complete if there are more than the
// lister needs.
type listing struct {
	values   []any
	keys     map[string]bool
	complete bool
}

// Limits of a lister. A set that exceeds one is taken as too large to list. 1,024 states
// of the automaton of a URI with a length take 2 ms.
const (
	maxListSteps  = 1 << 14 // values, and items and members of arrays and objects
	maxListStates = 1 << 10 // of the automaton of strings
	maxListWeight = 1 << 12 // bytes of an array or object
)

func (w *schemaWriter) lister(most int, path string) *lister {
	return &lister{w: w, path: path, most: most, known: map[int32]listing{}, last: map[int32]listing{}, under: map[int32]bool{}}
}

// list returns the values of a node.
func (l *lister) list(n *expr) listing {
	l.steps = 0
	for {
		l.cyclic, l.grew = false, false
		found := l.find(n)
		if !l.cyclic || !l.grew {
			return found
		}
		l.known = map[int32]listing{}
	}
}

// find returns the values of a node. While it is under way, the node has the values that
// were found before.
func (l *lister) find(n *expr) listing {
	if found, ok := l.known[n.id]; ok {
		l.cyclic = l.cyclic || l.under[n.id]
		return found
	}
	before, again := l.last[n.id]
	if !again {
		before = listing{complete: true}
	}
	l.known[n.id], l.under[n.id] = before, true
	found := listing{keys: map[string]bool{}, complete: true}
	for k, list := range l.w.shapes(n, false) {
		for _, s := range list {
			found.complete = found.complete && l.w.spend(4, n.path) && l.shape(&found, kind(k), s)
		}
	}
	if !found.complete {
		found = listing{}
	}
	l.grew = l.grew || len(found.values) != len(before.values) || found.complete != before.complete
	l.known[n.id], l.last[n.id], l.under[n.id] = found, found, false
	return found
}

// add adds a value to a list. It reports false if there are too many.
func (l *lister) add(to *listing, v any) bool {
	if key := keyOf(v); !to.keys[key] {
		to.keys[key] = true
		to.values = append(to.values, v)
	}
	return len(to.values) <= l.most && l.step(1) && l.w.spend(weight(v)/8, l.path)
}

func (l *lister) step(n int) bool {
	l.steps += n
	return l.steps <= maxListSteps && l.w.spend(n, l.path)
}

// shape adds the values of a shape. It reports false if there are too many.
func (l *lister) shape(to *listing, k kind, s *shape) bool {
	switch {
	case s.values != nil:
		return !slices.ContainsFunc(s.values, func(v any) bool { return !l.add(to, v) })
	case k == kindNull:
		return l.add(to, nil)
	case k == kindTrue || k == kindFalse:
		return l.add(to, k == kindTrue)
	case s.free():
		return false
	case k == kindNumber:
		return l.numbers(to, s.number)
	case k == kindString:
		return l.strings(to, s.texts)
	case k == kindArray:
		return l.arrays(to, s.array)
	}
	return l.objects(to, s.object)
}

// numbers adds the multiples of a number, or one number, between two limits.
func (l *lister) numbers(to *listing, n *numberShape) bool {
	if n.lo == nil || n.hi == nil {
		return false
	}
	var every *big.Rat
	if n.whole > 0 {
		every = big.NewRat(1, 1)
	}
	for _, s := range n.steps {
		switch {
		case s.not:
		case every == nil:
			every = s.of
		default:
			every = commonMultiple(every, s.of)
		}
	}
	at := n.lo.value
	if every != nil {
		at = new(big.Rat).Mul(every, new(big.Rat).SetInt(floor(new(big.Rat).Quo(at, every))))
	} else if at.Cmp(n.hi.value) < 0 {
		return false
	}
	_, _, byDigits := n.residues()
	for ; at.Cmp(n.hi.value) <= 0; at = new(big.Rat).Add(at, every) {
		text, written := decimal(at)
		if byDigits && !at.IsInt() {
			written = written && len(strings.Trim(text, "-")) <= precise+len(".")
		}
		if !l.step(1+size(at)/64) || written && l.w.rationalFits(at, n, n.path) && !l.add(to, jsonNumber(text)) {
			return false
		}
		if every == nil {
			break
		}
	}
	return true
}

// strings adds the strings that meet all tests.
func (l *lister) strings(to *listing, tests []textTest) bool {
	if t := tests[0]; len(tests) == 1 && !t.not {
		switch {
		case t.kind == testFormat: // each has more strings than an array may have items
			return false
		case t.kind == testLength && t.hi != 0:
			return t.hi > 0 && t.lo > t.hi
		}
	}
	d, err := l.w.automaton([][]textTest{tests}, maxListStates)
	return err == nil && (d.empty() || l.words(to, d, 0, nil))
}

// words adds the texts from a state of an automaton, which begin with a text.
func (l *lister) words(to *listing, d *automaton, at int32, text []rune) bool {
	if len(text) > len(d.next) || d.final[at] && !l.add(to, string(text)) {
		return false // after more characters than states, there is a cycle
	}
	for class, next := range d.next[at] {
		if next == noState {
			continue
		}
		for _, r := range d.alphabet.classes[class] {
			for c := r.lo; c <= r.hi; c++ {
				if c >= 0xD800 && c <= 0xDFFF {
					continue // surrogates are no characters
				}
				if !l.step(1) || !l.words(to, d, next, append(text, c)) {
					return false
				}
			}
		}
	}
	return true
}

// objects adds the objects of a shape.
func (l *lister) objects(to *listing, o *objectShape) bool {
	for _, name := range o.required {
		if value := l.find(l.w.property(o, name)); value.complete && len(value.values) == 0 {
			return true
		}
	}
	names, others := l.w.declared(o)
	if others && (o.hi < 0 || o.hi > len(o.required)) {
		more, ok := l.otherNames(l.w.otherMembers(o, false), names)
		if !ok {
			return false
		}
		names = append(names, more...)
	}
	return l.objectsFrom(to, o, names, newObject())
}

// otherNames lists the names of classes of members, without the given names. ok is false
// if there are too many.
func (l *lister) otherNames(classes []member, names []string) (list []string, ok bool) {
	known := map[string]bool{}
	for _, name := range names {
		known[name] = true
	}
	all := listing{keys: map[string]bool{}}
	for _, m := range classes {
		for _, s := range l.w.shapes(m.name, false)[kindString] {
			if !l.shape(&all, kindString, s) {
				return nil, false
			}
		}
	}
	for _, v := range all.values {
		if name := v.(string); !known[name] {
			list = append(list, name)
		}
	}
	return list, true
}

// objectsFrom adds the objects that begin with some members. The given names may follow.
func (l *lister) objectsFrom(to *listing, o *objectShape, names []string, begin *object) bool {
	if !l.step(1 + len(begin.keys)/8) {
		return false
	}
	if len(names) == 0 {
		return !l.w.objectFits(begin, o) || weight(begin) <= maxListWeight && l.add(to, begin)
	}
	if !slices.Contains(o.required, names[0]) && !l.objectsFrom(to, o, names[1:], begin) {
		return false
	}
	if o.hi >= 0 && len(begin.keys) >= o.hi {
		return true
	}
	value := l.find(l.w.property(o, names[0]))
	return value.complete && !slices.ContainsFunc(value.values, func(v any) bool {
		with := newObject()
		for _, k := range begin.keys {
			with.set(k, begin.values[k])
		}
		with.set(names[0], v)
		return !l.objectsFrom(to, o, names[1:], with)
	})
}
