package jinja

// dictMethods are the non-modifying methods of dict.
var dictMethods = map[string]func(s *state, d *Dict, a args) Value{
	"items":  func(_ *state, d *Dict, a args) Value { a.bind("items"); return &view{d, "items"} },
	"keys":   func(_ *state, d *Dict, a args) Value { a.bind("keys"); return &view{d, "keys"} },
	"values": func(_ *state, d *Dict, a args) Value { a.bind("values"); return &view{d, "values"} },
	"copy":   func(_ *state, d *Dict, a args) Value { a.bind("copy"); return d },
	"get": func(s *state, d *Dict, a args) Value {
		p := a.bind("get", "key", "default=")
		if _, ok := hash(s, p[0]); !ok {
			fail("TypeError: unhashable type: '%s'", typeName(p[0]))
		}
		if v, ok := d.get(s, p[0]); ok {
			return v
		}
		return p[1]
	},
}

// listMethods are the non-modifying methods of lists and tuples.
var listMethods = map[string]func(s *state, l *List, a args) Value{
	"copy": func(_ *state, l *List, a args) Value { a.bind("copy"); return l },
	"count": func(s *state, l *List, a args) Value {
		v, n := a.bind("count", "value")[0], int64(0)
		for _, item := range l.items {
			if equal(s, item, v) {
				n++
			}
		}
		return n
	},
	"index": func(s *state, l *List, a args) Value {
		p := a.bind("index", "value", "start=0", "stop=")
		for i, item := range l.items {
			if int64(i) >= toInt(p[1]) && (p[2] == nil || int64(i) < toInt(p[2])) && equal(s, item, p[0]) {
				return int64(i)
			}
		}
		fail("ValueError: %s is not in list", toStr(s, p[0]))
		return nil
	},
}

// groupAttr returns a named part of an item of groupby.
func groupAttr(l *List, name string) (Value, bool) {
	if len(l.items) == 2 && l.group {
		switch name {
		case "grouper":
			return l.items[0], true
		case "list":
			return l.items[1], true
		}
	}
	return nil, false
}
