package grammar

import (
	"slices"
	"strings"
)

// any writes any JSON value.
func (w *schemaWriter) any() part {
	name := w.mode.named("any")
	r, ok := w.named[name]
	if !ok {
		r = w.b.rule("any JSON value")
		w.named[name] = r
		w.b.define(r, w.typed(newObject(), ""))
	}
	return w.b.call(r)
}

// freeObject writes any JSON object.
func (w *schemaWriter) freeObject() part { return w.properties(newObject(), "") }

func (w *schemaWriter) enclosed(open, shut string, inside part) part {
	return w.b.seq(w.b.literal(open), inside, w.b.literal(shut))
}

func (w *schemaWriter) comma() part { return w.b.seq(w.b.literal(","), w.space()) }

// itemsOf returns the schemas of an array's first items and of the items after them.
func (w *schemaWriter) itemsOf(o *object, path string) (prefix []any, rest any) {
	rest, hasRest := o.get("items")
	list, older := rest.([]any)
	switch given, has := o.get("prefixItems"); {
	case older && has, older && !w.drafts("draft-0", "2019-09"):
		w.fail(path+"/items", "a list of schemas is prefixItems in draft 2020-12; write prefixItems")
	case older: // prefixItems before draft 2020-12
		prefix = list
		rest, hasRest = o.get("additionalItems")
	case has && !w.drafts("2020-12"):
		w.fail(path+"/prefixItems", "the draft in $schema does not support prefixItems; write items with a list of schemas")
	case has:
		var isList bool
		if prefix, isList = given.([]any); !isList {
			w.fail(path+"/prefixItems", "expected a list of schemas")
		}
	}
	if !hasRest {
		rest = true
	}
	return prefix, rest
}

// drafts reports whether the schema may belong to one of these drafts: it names one of
// them, or none.
func (w *schemaWriter) drafts(names ...string) bool {
	root, _ := w.root.(*object)
	if root == nil || !root.has("$schema") {
		return true
	}
	uri, _ := root.values["$schema"].(string)
	return slices.ContainsFunc(names, func(name string) bool { return strings.Contains(uri, name) })
}

// array writes the arrays of a schema: prefixItems by index, then items.
func (w *schemaWriter) array(o *object, path string) part {
	b := w.b
	prefix, rest := w.itemsOf(o, path)
	lo, hi := w.count(o, "minItems", path), w.count(o, "maxItems", path)
	if hi >= 0 && hi < lo {
		return w.fail(path, "minItems %d is more than maxItems %d", lo, hi)
	}
	at, end := b.empty(), b.state()
	start := at.in
	for i, item := range prefix {
		if hi >= 0 && i >= hi {
			break
		}
		if i >= lo {
			b.eps(at.out, end)
		}
		if i > 0 {
			at = b.seq(at, w.comma())
		}
		at = b.seq(at, w.child(item, path+"/prefixItems"))
	}
	k := len(prefix)
	more := func(n int) int { return max(n-k, 0) }
	if hi < 0 || hi > k {
		most := -1
		if hi >= 0 {
			most = more(hi)
		}
		at = b.seq(at, w.items(rest, more(lo), most, k == 0, path+"/items"))
	}
	b.eps(at.out, end)
	return w.enclosed("[", "]", part{start, end})
}

// items writes lo to hi values of one schema; with first, no comma precedes the first
// of them.
func (w *schemaWriter) items(schema any, lo, hi int, first bool, path string) part {
	b := w.b
	if hi == 0 {
		return b.empty()
	}
	rule := b.rule("item of " + path)
	b.define(rule, w.child(schema, path))
	item := func() part { return b.call(rule) }
	next := func() part { return b.seq(w.comma(), item()) }
	if !first {
		return b.repeat(lo, hi, next)
	}
	tail := hi
	if tail > 0 {
		tail--
	}
	list := b.seq(item(), b.repeat(max(lo-1, 0), tail, next))
	if lo == 0 {
		return b.optional(list)
	}
	return list
}

// properties writes the objects of a schema: its properties in order, then required
// names without a schema, then other members.
func (w *schemaWriter) properties(o *object, path string) part {
	b := w.b
	props, extra := w.propertiesOf(o, path)
	required := w.required(o, path)
	if w.err != nil {
		return b.nothing()
	}
	shell := func(p part) part { return w.enclosed("{", "}", p) }
	if w.mode == asArguments {
		extra, shell = w.noOthers(o, path), func(p part) part { return p }
	}
	names := slices.Clone(props.keys)
	for _, name := range required {
		if !props.has(name) {
			names = append(names, name)
		}
	}
	lo, hi := w.count(o, "minProperties", path), w.count(o, "maxProperties", path)
	most := len(names) // that are certainly distinct; another name may occur twice
	if extra != false {
		most++
	}
	switch {
	case hi >= 0 && hi < max(lo, len(required)):
		return w.fail(path, "minProperties or required needs more properties than maxProperties %d", hi)
	case lo > most && extra != false:
		return w.fail(path, "minProperties %d: at most %d is supported here, because names not listed in properties may occur twice; list more properties", lo, most)
	case len(names) == 0:
		return shell(w.free(extra, nil, lo, hi, path))
	}
	if extra == false && hi >= len(names) {
		hi = -1
	}
	m := &members{w: w, o: o, extra: extra, names: names, lo: lo, hi: hi, path: path}
	return shell(m.write(required))
}

// propertiesOf returns the properties and the schema of other names.
func (w *schemaWriter) propertiesOf(o *object, path string) (props *object, extra any) {
	props, isObject := o.values["properties"].(*object)
	if !isObject {
		if o.has("properties") {
			w.fail(path+"/properties", "expected an object of schemas")
		}
		props = newObject()
	}
	extra, ok := o.get("additionalProperties")
	if !ok {
		extra = true
	}
	return props, extra
}

// required returns the required names, each once.
func (w *schemaWriter) required(o *object, path string) []string {
	v, ok := o.get("required")
	if !ok {
		return nil
	}
	list, isList := v.([]any)
	if !isList {
		w.fail(path+"/required", "expected a list of names")
	}
	if !w.spend(len(list)/2, path) {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for _, v := range list {
		name, isText := v.(string)
		if !isText {
			w.fail(path+"/required", "expected a list of names")
		}
		if !seen[name] {
			names = append(names, name)
		}
		seen[name] = true
	}
	return names
}

func (w *schemaWriter) member(key, value part) part {
	return w.b.seq(key, w.b.literal(":"), w.space(), value)
}

// outside returns anyRune without the ranges, which may overlap.
func outside(ranges []runeRange) []runeRange {
	slices.SortFunc(ranges, func(a, b runeRange) int { return int(a.lo - b.lo) })
	var out []runeRange
	from := rune(0)
	for _, r := range ranges {
		if r.lo > from {
			out = append(out, runeRange{from, r.lo - 1})
		}
		from = max(from, r.hi+1)
	}
	return append(out, runeRange{from, maxRune})
}

// free writes lo to hi members with names other than those in taken.
func (w *schemaWriter) free(schema any, taken []string, lo, hi int, path string) part {
	b := w.b
	if schema == false || hi == 0 {
		if lo > 0 {
			return b.nothing()
		}
		return b.empty()
	}
	rule := b.rule("member of " + path)
	b.define(rule, w.freeMember(schema, taken, path))
	tail := hi
	if tail > 0 {
		tail--
	}
	list := b.seq(b.call(rule), b.repeat(max(lo-1, 0), tail, func() part { return b.seq(w.comma(), b.call(rule)) }))
	if lo == 0 {
		return b.optional(list)
	}
	return list
}

func (w *schemaWriter) freeMember(schema any, taken []string, path string) part {
	return w.member(w.otherKey(taken), w.child(schema, path+"/additionalProperties"))
}

// otherKey writes the string of a key that is not in taken: a trie of these keys that
// is left where a character differs. Inside the trie it writes no escapes, which could
// spell a taken key differently.
func (w *schemaWriter) otherKey(taken []string) part {
	b := w.b
	bare := w.bareKeys()
	if len(taken) == 0 && !bare {
		return w.string(newObject(), "")
	}
	mark, spell, one := `"`, charset(jsonText), w.character
	if bare {
		mark, spell, one = "", (*builder).runes, func() part { return b.runes(identifierRunes) }
	}
	rest := b.star(one())
	quote := b.literal(mark)
	b.eps(rest.out, quote.in)
	node := func() map[rune]int32 { return map[rune]int32{} }
	open := b.literal(mark)
	next := map[int32]map[rune]int32{open.out: node()}
	order := []int32{open.out}
	taking := map[int32]bool{}
	for _, name := range taken {
		at := open.out
		for _, r := range name {
			to, ok := next[at][r]
			if !ok {
				p := spell(b, []runeRange{{r, r}})
				b.eps(at, p.in)
				to = p.out
				next[at][r], next[to] = to, node()
				order = append(order, to)
			}
			at = to
		}
		taking[at] = true
	}
	for _, at := range order {
		used := slices.Clone(escaped)
		for r := range next[at] {
			used = append(used, runeRange{r, r})
		}
		others := outside(used)
		if bare {
			others = intersect(others, identifierRunes)
		}
		leave := b.runes(others)
		b.eps(at, leave.in)
		b.eps(leave.out, rest.in)
		if !taking[at] && (at != open.out || !bare) {
			b.eps(at, quote.in)
		}
	}
	return part{open.in, quote.out}
}
