package jinja

import (
	"sort"
	"strings"
)

// attrGetter returns a function that reads the attribute at path, a path of names and
// indices, from an item. A nil path selects the item itself. Missing values are
// replaced by otherwise, unless it is nil.
func attrGetter(s *state, path, otherwise Value) func(Value) Value {
	if path == nil {
		return func(v Value) Value { return v }
	}
	var parts []Value
	if text, ok := path.(Str); ok {
		for part := range strings.SplitSeq(text.s, ".") {
			if allRunes(part, isDecimalRune) {
				parts = append(parts, parseNumber(part))
			} else {
				parts = append(parts, Text(part))
			}
		}
	} else {
		parts = []Value{path}
	}
	return func(v Value) Value {
		for _, part := range parts {
			s.charge(1)
			v = item(s, v, part)
			if _, missing := v.(*undefined); missing && otherwise != nil {
				v = otherwise
			}
		}
		return v
	}
}

// folded returns a function that lowers text, unless caseSensitive is true.
func folded(s *state, caseSensitive Value) func(Value) Value {
	return func(v Value) Value {
		if text, ok := v.(Str); ok && !truth(caseSensitive) {
			s.charge(len(text.s) / 8)
			return lower(text)
		}
		return v
	}
}

func reverseFilter(s *state, a args) Value {
	v := a.bind("reverse", "value")[0]
	list := items(s, v)
	s.charge(len(list))
	out := make([]Value, len(list))
	for i, item := range list {
		out[len(list)-1-i] = item
	}
	if _, ok := v.(Str); ok {
		return joinStrict(s, Str{}, &List{items: out})
	}
	return &generator{items: out, name: "list_reverseiterator"}
}

// sorted sorts a list by key; the sort is stable.
func sorted(s *state, list []Value, key func(Value) Value, reverse bool) []Value {
	type row struct{ key, value Value }
	rows := make([]row, len(list))
	for i, v := range list {
		rows[i] = row{key(v), v}
	}
	sort.SliceStable(rows, func(i, j int) bool {
		s.charge(1)
		if reverse {
			return less(s, rows[j].key, rows[i].key)
		}
		return less(s, rows[i].key, rows[j].key)
	})
	out := make([]Value, len(rows))
	for i, r := range rows {
		out[i] = r.value
	}
	return out
}

func sortFilter(s *state, a args) Value {
	p := a.bind("sort", "value", "reverse=false", "case_sensitive=false", "attribute=")
	fold, get := folded(s, p[2]), attrGetter(s, p[3], nil)
	key := func(v Value) Value { return fold(get(v)) }
	if text, ok := p[3].(Str); ok && strings.Contains(text.s, ",") {
		var parts []func(Value) Value
		for part := range strings.SplitSeq(text.s, ",") {
			parts = append(parts, attrGetter(s, Text(part), nil))
		}
		key = func(v Value) Value {
			out := newTuple()
			for _, get := range parts {
				out.items = append(out.items, fold(get(v)))
			}
			return out
		}
	}
	return &List{items: sorted(s, items(s, p[0]), key, truth(p[1]))}
}

func dictsortFilter(s *state, a args) Value {
	p := a.bind("dictsort", "value", "case_sensitive=false", "by=key", "reverse=false")
	d, ok := p[0].(*Dict)
	if !ok {
		fail("TypeError: dictsort: expected a mapping, not %s", typeName(p[0]))
	}
	at := 0
	switch by, _ := p[2].(Str); by.s {
	case "key":
	case "value":
		at = 1
	default:
		fail(`You can only sort by either "key" or "value"`)
	}
	fold := folded(s, p[1])
	key := func(v Value) Value { return fold(v.(*List).items[at]) }
	return &List{items: sorted(s, (&view{d, "items"}).items(), key, truth(p[3]))}
}

func uniqueFilter(s *state, a args) Value {
	p := a.bind("unique", "value", "case_sensitive=false", "attribute=")
	get, fold := attrGetter(s, p[2], nil), folded(s, p[1])
	seen := map[any]bool{}
	out := []Value{}
	for _, v := range items(s, p[0]) {
		key := fold(get(v))
		k, ok := hash(s, key)
		if !ok {
			fail("TypeError: unhashable type: '%s'", typeName(key))
		}
		if !seen[k] {
			seen[k] = true
			out = append(out, v)
		}
	}
	return &generator{items: out, name: "generator"}
}

// extremeFilter returns min (sign -1) or max (sign 1).
func extremeFilter(name string, sign int) filterFunc {
	return func(s *state, a args) Value {
		p := a.bind(name, "value", "case_sensitive=false", "attribute=")
		get, fold := attrGetter(s, p[2], nil), folded(s, p[1])
		list := items(s, p[0])
		if len(list) == 0 {
			return &undefined{message: "No aggregated item, sequence was empty."}
		}
		best, key := list[0], fold(get(list[0]))
		for _, v := range list[1:] {
			if k := fold(get(v)); order(s, "<", k, key) == sign {
				best, key = v, k
			}
		}
		return best
	}
}

func sumFilter(s *state, a args) Value {
	p := a.bind("sum", "iterable", "attribute=", "start=0")
	get := attrGetter(s, p[1], nil)
	total := p[2]
	var own *List // total, after the first addition of lists
	for _, v := range items(s, p[0]) {
		if _, isText := total.(Str); isText {
			fail("TypeError: sum() can't sum strings [use ''.join(seq) instead]")
		}
		term := get(v)
		if list, ok := term.(*List); ok && own != nil && list.tuple == own.tuple { // appends to a list of its own, instead of copying it each time
			s.charge(1 + len(list.items))
			s.checkLen(len(own.items) + len(list.items))
			own.items = append(own.items, list.items...)
			continue
		}
		total = binary(s, "+", total, term)
		own, _ = total.(*List)
	}
	return total
}

func batchFilter(s *state, a args) Value {
	p := a.bind("batch", "value", "linecount", "fill_with=")
	size := toInt(p[1])
	var out []Value
	row := &List{}
	for _, v := range items(s, p[0]) {
		if int64(len(row.items)) == size {
			out = append(out, row)
			row = &List{}
		}
		row.items = append(row.items, v)
	}
	if len(row.items) > 0 {
		if missing := size - int64(len(row.items)); p[2] != nil && missing > 0 {
			row = add(s, row, multiply(s, NewList(p[2]), missing)).(*List)
		}
		out = append(out, row)
	}
	return &generator{items: out, name: "generator"}
}

func sliceFilter(s *state, a args) Value {
	p := a.bind("slice", "value", "slices", "fill_with=")
	list, n := items(s, p[0]), toInt(p[1])
	if n <= 0 {
		fail("ZeroDivisionError: integer division or modulo by zero")
	}
	s.checkLen(int(min(n, 1<<40)))
	s.charge(int(n))
	size, more := int64(len(list))/n, int64(len(list))%n
	var out []Value
	offset := int64(0)
	for i := range n {
		start := offset + i*size
		if i < more {
			offset++
		}
		row := NewList(append([]Value{}, list[start:offset+(i+1)*size]...)...)
		if p[2] != nil && i >= more {
			row.items = append(row.items, p[2])
		}
		out = append(out, row)
	}
	return &generator{items: out, name: "generator"}
}

func groupbyFilter(s *state, a args) Value {
	p := a.bind("groupby", "value", "attribute", "default=", "case_sensitive=false")
	get, fold := attrGetter(s, p[1], p[2]), folded(s, p[3])
	key := func(v Value) Value { return fold(get(v)) }
	out := []Value{}
	var group *List
	var last Value
	for _, v := range sorted(s, items(s, p[0]), key, false) {
		k := key(v)
		if group == nil || !equal(s, k, last) {
			group, last = &List{}, k
			out = append(out, &List{items: []Value{get(v), group}, tuple: true, group: true})
		}
		group.items = append(group.items, v)
	}
	return &List{items: out}
}

// itemsOrNone is like items, but any false value has no items.
func itemsOrNone(s *state, v Value) []Value {
	if !truth(v) {
		return nil
	}
	return items(s, v)
}

// mapFilter reads an attribute of every item, or applies a filter to it.
func mapFilter(s *state, a args) Value {
	list := a.pos[0]
	rest := args{pos: a.pos[1:], names: a.names, named: a.named}
	var f func(Value) Value
	if len(rest.pos) == 0 && len(rest.names) > 0 {
		p := rest.bind("map", "attribute", "default=")
		f = attrGetter(s, p[0], p[1])
	} else {
		if len(rest.pos) == 0 {
			fail("map requires a filter argument")
		}
		name := needStr("map", rest.pos[0]).s
		rest.pos = rest.pos[1:]
		f = func(v Value) Value { return filter(s, name, v, rest) }
	}
	out := []Value{}
	for _, v := range itemsOrNone(s, list) {
		s.charge(1)
		out = append(out, f(v))
	}
	return &generator{items: out, name: "generator"}
}

// selectFilter returns select, reject, selectattr or rejectattr.
func selectFilter(name string, keep, byAttr bool) filterFunc {
	return func(s *state, a args) Value {
		list := a.pos[0]
		rest := args{pos: a.pos[1:], names: a.names, named: a.named}
		get := func(v Value) Value { return v }
		if byAttr {
			if len(rest.pos) == 0 {
				fail("Missing parameter for attribute name")
			}
			get = attrGetter(s, rest.pos[0], nil)
			rest.pos = rest.pos[1:]
		}
		holds := test
		if len(rest.pos) > 0 {
			name := needStr(name, rest.pos[0]).s
			rest.pos = rest.pos[1:]
			holds = func(v Value) bool { return runTest(s, name, v, rest) }
		}
		out := []Value{}
		for _, v := range itemsOrNone(s, list) {
			s.charge(1)
			if holds(get(v)) == keep {
				out = append(out, v)
			}
		}
		return &generator{items: out, name: "generator"}
	}
}
