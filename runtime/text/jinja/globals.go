package jinja

import "time"

// maxRange is the maximum length of a range, as in Jinja's sandbox.
const maxRange = 100000

// globals are the functions available to every template.
var globals = map[string]Value{
	"range":           &function{"range", makeRange},
	"dict":            &function{"dict", makeDict},
	"namespace":       &function{"namespace", func(s *state, a args) Value { return &namespace{makeDict(s, a).(*Dict)} }},
	"cycler":          &function{"cycler", makeCycler},
	"joiner":          &function{"joiner", makeJoiner},
	"raise_exception": &function{"raise_exception", raiseException},
	"strftime_now":    &function{"strftime_now", strftimeNow},
}

func makeRange(_ *state, a args) Value {
	if len(a.names) > 0 || len(a.pos) < 1 || len(a.pos) > 3 {
		fail("TypeError: range expected 1 to 3 arguments, got %d", len(a.pos))
	}
	r := pyRange{step: 1}
	switch len(a.pos) {
	case 1:
		r.stop = toInt(a.pos[0])
	case 3:
		r.step = toInt(a.pos[2])
		fallthrough
	case 2:
		r.start, r.stop = toInt(a.pos[0]), toInt(a.pos[1])
	}
	if r.step == 0 {
		fail("ValueError: range() arg 3 must not be zero")
	}
	const far = 1 << 61 // beyond this, differences could overflow
	if r.start > far || r.start < -far || r.stop > far || r.stop < -far || r.step > far || r.step < -far || r.len() > maxRange {
		fail("OverflowError: Range too big. The sandbox blocks ranges larger than MAX_RANGE (%d).", maxRange)
	}
	return r
}

// makeDict is dict(mapping or pairs, key=value, …).
func makeDict(s *state, a args) Value {
	d := NewDict()
	if len(a.pos) > 1 {
		fail("TypeError: dict expected at most 1 argument, got %d", len(a.pos))
	}
	if len(a.pos) == 1 {
		if from, ok := a.pos[0].(*Dict); ok {
			s.charge(len(from.keys))
			for i, k := range from.keys {
				d.put(s, k, from.vals[i])
			}
		} else {
			for _, pair := range items(s, a.pos[0]) {
				kv := items(s, pair)
				if len(kv) != 2 || !d.put(s, kv[0], kv[1]) {
					fail("ValueError: dict(): expected pairs of a key and a value")
				}
			}
		}
	}
	for i, name := range a.names {
		d.Set(name, a.named[i])
	}
	s.charge(d.Len())
	return d
}

func raiseException(s *state, a args) Value {
	message := toStr(s, a.bind("raise_exception", "message")[0])
	panic(failure{&Error{Message: short(message.s), Raised: true}})
}

func strftimeNow(s *state, a args) Value {
	now := s.now
	if now.IsZero() {
		now = time.Now()
	}
	format := needStr("strftime_now", a.bind("strftime_now", "format")[0])
	s.charge(len(format.s))
	return format.like(strftime(now, format.s))
}

// A cycler returns its values in turn.
type cycler struct {
	items []Value
	at    int
}

func makeCycler(_ *state, a args) Value {
	if len(a.pos) == 0 {
		fail("TypeError: at least one item has to be provided")
	}
	return &cycler{items: a.pos}
}

func (c *cycler) attr(name string) (Value, bool) {
	switch name {
	case "current":
		return c.items[c.at], true
	case "next":
		return &function{"next", func(*state, args) Value {
			v := c.items[c.at]
			c.at = (c.at + 1) % len(c.items)
			return v
		}}, true
	case "reset":
		return &function{"reset", func(*state, args) Value { c.at = 0; return nil }}, true
	}
	return nil, false
}

// A joiner returns "" on its first call and its separator afterwards.
type joiner struct {
	sep  Value
	used bool
}

func makeJoiner(_ *state, a args) Value { return &joiner{sep: a.bind("joiner", "sep=, ")[0]} }

func (j *joiner) call() Value {
	if !j.used {
		j.used = true
		return Str{}
	}
	return j.sep
}
