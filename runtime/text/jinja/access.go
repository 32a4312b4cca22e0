package jinja

import "strings"

// attr evaluates value.name: a method or attribute, else the item with that key.
func attr(v Value, name string) Value {
	if u, ok := v.(*undefined); ok {
		if strings.HasPrefix(name, "__") && strings.HasSuffix(name, "__") {
			return noAttr(v, name)
		}
		fail("%s", u.message)
	}
	if a, ok := attribute(v, name); ok {
		return a
	}
	if d, ok := v.(*Dict); ok {
		if got, ok := d.Get(name); ok {
			return got
		}
	}
	return noAttr(v, name)
}

func noAttr(v Value, name string) *undefined {
	return &undefined{message: "'" + describe(v) + "' has no attribute '" + name + "'"}
}

// attribute returns Python's getattr, for the attributes that templates may access.
func attribute(v Value, name string) (Value, bool) {
	switch v := v.(type) {
	case Str:
		if name == "format" {
			return &function{name, func(s *state, a args) Value { s.weigh(v); return formatBraces(s, v, a) }}, true
		}
		if m, ok := strMethods[name]; ok {
			return &function{name, func(s *state, a args) Value { s.weigh(v); return m(s, v, a) }}, true
		}
	case *Dict:
		if m, ok := dictMethods[name]; ok {
			return &function{name, func(s *state, a args) Value { return m(s, v, a) }}, true
		}
		return unsafe("dict", name, "clear", "pop", "popitem", "setdefault", "update")
	case *List:
		if m, ok := listMethods[name]; ok {
			return &function{name, func(s *state, a args) Value { return m(s, v, a) }}, true
		}
		if !v.tuple {
			return unsafe("list", name, "append", "clear", "pop", "reverse", "insert", "sort", "extend", "remove")
		}
		return groupAttr(v, name)
	case *namespace:
		return v.vars.Get(name)
	case *loop:
		return v.attr(name)
	case *cycler:
		return v.attr(name)
	case *macro:
		if name == "name" {
			return Text(v.name), true
		}
	case float64:
		if name == "is_integer" {
			return &function{name, func(*state, args) Value { return v == float64(int64(v)) }}, true
		}
	case pyRange:
		for i, key := range []string{"start", "stop", "step"} {
			if key == name {
				return []Value{v.start, v.stop, v.step}[i], true
			}
		}
	}
	return nil, false
}

// unsafe returns methods that modify their object; their use is an error.
func unsafe(kind, name string, names ...string) (Value, bool) {
	for _, n := range names {
		if n == name {
			return &undefined{message: "SecurityError: access to attribute '" + name + "' of '" + kind + "' object is unsafe.", unsafe: true}, true
		}
	}
	return nil, false
}

// item evaluates value[key]: the item, else the attribute with that name.
func item(s *state, v, key Value) Value {
	switch at := key.(type) {
	case *undefined:
		if _, isDict := v.(*Dict); !isDict {
			return &undefined{message: describe(v) + " has no element Undefined"}
		}
	case bool, int64:
		i, _, _, _ := number(at)
		if got, ok := index(s, v, i); ok {
			return got
		}
	}
	if u, ok := v.(*undefined); ok {
		fail("%s", u.message)
	}
	if d, ok := v.(*Dict); ok {
		if got, ok := d.get(s, key); ok {
			return got
		}
	}
	if name, ok := key.(Str); ok {
		if a, ok := attribute(v, name.s); ok {
			return a
		}
		return noAttr(v, name.s)
	}
	var b builder
	repr(s, &b, key, 0)
	return &undefined{message: describe(v) + " has no element " + string(b.b)}
}

// index returns the item at an index of a sequence; negative indices count from the
// end.
func index(s *state, v Value, i int64) (Value, bool) {
	n := 0
	switch v := v.(type) {
	case *List:
		n = len(v.items)
	case Str:
		n = len(v.s)
		if s.weigh(v); !isASCII(v.s) {
			s.charge(n / 8)
			n = v.length()
		}
	case pyRange:
		n = v.len()
	default:
		return nil, false
	}
	if i < 0 {
		i += int64(n)
	}
	if i < 0 || i >= int64(n) {
		return nil, false
	}
	switch v := v.(type) {
	case *List:
		return v.items[i], true
	case pyRange:
		return v.at(int(i)), true
	case Str:
		if n == len(v.s) {
			return v.sub(int(i), int(i)+1), true
		}
		at := offsets(v.s)
		return v.sub(at[i], at[i+1]), true
	}
	return nil, false
}

func (n *sliceExpr) eval(s *state) Value {
	of := n.of.eval(s)
	if u, ok := of.(*undefined); ok {
		fail("%s", u.message)
	}
	bound := func(e expr) (int64, bool) {
		if e == nil {
			return 0, false
		}
		v := e.eval(s)
		if v == nil {
			return 0, false
		}
		i, _, isFloat, ok := number(v)
		if !ok || isFloat {
			fail("TypeError: slice indices must be integers or None")
		}
		return i, true
	}
	from, hasFrom := bound(n.from)
	to, hasTo := bound(n.to)
	step, hasStep := bound(n.step)
	if !hasStep {
		step = 1
	}
	if step == 0 {
		fail("ValueError: slice step cannot be zero")
	}
	return slice(s, of, sliceBounds{from, to, step, hasFrom, hasTo})
}

type sliceBounds struct {
	from, to, step int64
	hasFrom, hasTo bool
}

// list returns the indices that a slice selects from n items.
func (b sliceBounds) list(n int) (out []int) {
	size := int64(n)
	low, high := int64(0), size // indices, clipped as in Python
	if b.step < 0 {
		low, high = -1, size-1
	}
	clip := func(i int64, given bool, otherwise int64) int64 {
		if !given {
			return otherwise
		}
		if i < 0 {
			i += size
		}
		return min(max(i, low), high)
	}
	if b.step > 0 {
		from, to := clip(b.from, b.hasFrom, low), clip(b.to, b.hasTo, high)
		for i := from; i < to; i += b.step {
			out = append(out, int(i))
			if b.step > size {
				break
			}
		}
		return out
	}
	from, to := clip(b.from, b.hasFrom, high), clip(b.to, b.hasTo, low)
	for i := from; i > to; i += b.step {
		out = append(out, int(i))
		if -b.step > size {
			break
		}
	}
	return out
}

func slice(s *state, v Value, b sliceBounds) Value {
	switch v := v.(type) {
	case *List:
		at := b.list(len(v.items))
		s.charge(len(at))
		out := make([]Value, len(at))
		for i, p := range at {
			out[i] = v.items[p]
		}
		return &List{items: out, tuple: v.tuple}
	case Str:
		return sliceStr(s, v, b)
	case pyRange:
		at := b.list(v.len())
		if len(at) == 0 {
			return pyRange{0, 0, 1}
		}
		first := v.at(at[0]).(int64)
		step := v.step * b.step
		return pyRange{first, first + step*int64(len(at)), step}
	}
	return &undefined{message: describe(v) + " has no element slice"}
}

func sliceStr(s *state, v Str, b sliceBounds) Value {
	at := offsets(v.s)
	list := b.list(len(at) - 1)
	s.charge(len(list)/8 + len(at)/16)
	if len(list) == 0 {
		return Str{}
	}
	if b.step == 1 {
		return v.sub(at[list[0]], at[list[len(list)-1]+1])
	}
	var out builder
	for _, i := range list {
		out.add(v.sub(at[i], at[i+1]))
	}
	return out.str()
}
