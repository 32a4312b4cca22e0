package grammar

import "slices"

// A trace is a way in which a value can be valid against a schema, with the members or
// items that the schema evaluates then.
type trace struct {
	when     *expr
	all      bool // every member or item is evaluated
	names    []string
	patterns []*expr
	prefix   int
	contains []*expr
}

func (t trace) none() bool {
	return !t.all && len(t.names) == 0 && len(t.patterns) == 0 && t.prefix == 0 && len(t.contains) == 0
}

// unevaluated returns the node of unevaluatedProperties or unevaluatedItems: for each
// way in which the schema's other keywords can be valid, the members or items that they
// do not evaluate are restricted.
func (w *schemaWriter) unevaluated(o *object, word, path string) *expr {
	rest := w.node(o.values[word], path+"/"+word)
	var list []*expr
	for _, t := range w.traces(o, word, path, true) {
		switch {
		case t.all || rest == w.exprs.any && !w.closing:
			list = append(list, t.when)
		case word == "unevaluatedItems":
			a := &arrayShape{rest: w.some(append(t.contains, rest)...), hi: -1, path: path}
			a.prefix = slices.Repeat([]*expr{w.exprs.any}, t.prefix)
			list = append(list, w.all(t.when, w.leaf(restricted(kindArray, &shape{array: a}), path)))
		default:
			f := &fields{named: map[string]*expr{}, extra: rest, open: w.closing && rest != w.exprs.none, path: path}
			for _, name := range t.names {
				if f.named[name] == nil {
					f.names, f.named[name] = append(f.names, name), w.exprs.any
				}
			}
			for _, p := range t.patterns {
				f.patterns = append(f.patterns, patternFields{p, w.exprs.any})
			}
			list = append(list, w.all(t.when, w.leaf(restricted(kindObject, &shape{object: &objectShape{fields: []*fields{f}, hi: -1, path: path}}), path)))
		}
	}
	return w.some(list...)
}

// traces returns the traces of a schema. With top, the keyword itself is left out.
func (w *schemaWriter) traces(o *object, word, path string, top bool) []trace {
	if w.depth++; w.depth > maxDepth {
		w.fail(path, "schemas are nested deeper than %d, or references are cyclic", maxDepth)
	}
	defer func() { w.depth-- }()
	if !w.checkWords(o, path) || !w.spend(32, path) {
		return nil
	}
	if !top && o.has(word) {
		return []trace{{when: w.node(o, path), all: true}}
	}
	own := w.ownTrace(o, word, path)
	if !top && !w.evaluates(o) {
		own.when = w.node(o, path)
		return []trace{own}
	}
	own.when = w.asserted(o, path)
	list := []trace{own}
	and := func(more []trace) { list = w.joinTraces(list, more, path) }
	for _, ref := range []string{"$ref", "$dynamicRef"} {
		if o.has(ref) {
			and(w.tracesOf(w.reference(o, ref, path), word))
		}
	}
	for _, sub := range w.each(o, "allOf", path) {
		and(w.tracesOf(sub, word))
	}
	if o.has("anyOf") {
		and(w.anyTraces(w.each(o, "anyOf", path), word, path))
	}
	if o.has("oneOf") {
		and(w.oneTraces(w.each(o, "oneOf", path), word, path))
	}
	if v, ok := o.get("not"); ok {
		and([]trace{{when: w.not(w.node(v, path+"/not"))}})
	}
	if v, ok := o.get("if"); ok {
		test := w.node(v, path+"/if")
		yes := w.joinTraces(w.tracesOf(test, word), w.tracesOf(w.branch(o, "then", path), word), path)
		no := w.joinTraces([]trace{{when: w.not(test)}}, w.tracesOf(w.branch(o, "else", path), word), path)
		and(append(yes, no...))
	}
	for _, d := range w.dependent(o, path) {
		with := []trace{{when: d.value}}
		if d.schema {
			with = w.tracesOf(d.value, word)
		}
		if o := w.with(d.name, path); len(with) > 0 {
			and(append(w.joinTraces([]trace{{when: o}}, with, path), trace{when: w.not(o)}))
		}
	}
	if !top && o.values["nullable"] == true {
		list = append(list, trace{when: w.null(path), all: true})
	}
	return list
}

// evaluates reports whether keywords of a schema apply others to the value itself.
func (w *schemaWriter) evaluates(o *object) bool {
	return o.has("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "if", "dependentSchemas", "dependencies")
}

// ownTrace returns what a schema evaluates by its own keywords.
func (w *schemaWriter) ownTrace(o *object, word, path string) trace {
	var t trace
	if word == "unevaluatedItems" {
		prefix, _ := itemsOf(o)
		_, older := o.values["items"].([]any)
		t.prefix = len(prefix)
		t.all = o.has("items") && !older || o.has("additionalItems") && older
		if v, ok := o.get("contains"); ok {
			t.contains = []*expr{w.node(v, path+"/contains")}
		}
		return t
	}
	f := w.fieldsOf(o, path)
	t.names, t.all = f.names, o.has("additionalProperties")
	for _, p := range f.patterns {
		t.patterns = append(t.patterns, p.name)
	}
	return t
}

func (w *schemaWriter) tracesOf(n *expr, word string) []trace {
	if n.op != exprSchema {
		return []trace{{when: n}}
	}
	var list []trace
	w.within(n, func() { list = w.traces(n.schema, word, n.path, false) })
	return list
}

// joinTraces returns the traces of values with a trace in each list.
func (w *schemaWriter) joinTraces(a, b []trace, path string) []trace {
	const most = 256
	if len(a)*len(b) > most {
		w.fail(path, "more than %d combinations of schemas decide which properties or items are evaluated; use fewer alternatives beside unevaluatedProperties and unevaluatedItems", most)
		return nil
	}
	var out []trace
	for _, x := range a {
		for _, y := range b {
			t := trace{when: w.all(x.when, y.when), all: x.all || y.all, prefix: max(x.prefix, y.prefix)}
			t.names, t.patterns = slices.Concat(x.names, y.names), slices.Concat(x.patterns, y.patterns)
			t.contains = slices.Concat(x.contains, y.contains)
			if t.when != w.exprs.none && w.spend(8+len(t.names), path) {
				out = append(out, t)
			}
		}
	}
	return out
}

// anyTraces returns the traces of anyOf. A schema that evaluates nothing need not be
// tried beside the others.
func (w *schemaWriter) anyTraces(kids []*expr, word, path string) []trace {
	all := []trace{{when: w.some(kids...)}}
	for _, k := range kids {
		list := w.tracesOf(k, word)
		if !slices.ContainsFunc(list, func(t trace) bool { return !t.none() }) {
			continue
		}
		all = w.joinTraces(all, append(list, trace{when: w.not(k)}), path)
	}
	return all
}

func (w *schemaWriter) oneTraces(kids []*expr, word, path string) []trace {
	var out []trace
	for i, k := range kids {
		others := []trace{{when: w.exprs.any}}
		for j, other := range kids {
			if j != i && w.spend(1, path) && !w.disjoint(k, other, path) {
				others[0].when = w.all(others[0].when, w.not(other))
			}
		}
		out = append(out, w.joinTraces(w.tracesOf(k, word), others, path)...)
	}
	return out
}
