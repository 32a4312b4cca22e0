package grammar

import (
	"net/url"
	"slices"
	"strconv"
	"strings"
)

// reference writes a $ref, once as a rule; schemas may be recursive.
func (w *schemaWriter) reference(o *object, ref any, path string) part {
	rest := o.clone(append([]string{"$ref"}, annotations...)...)
	target, name := w.lookup(ref, path)
	if w.err != nil {
		return w.b.nothing()
	}
	if len(rest.keys) > 0 {
		return w.value(w.merge(target, rest, path), path)
	}
	if slices.Contains(w.chain, name) {
		return w.fail(path+"/$ref", "%.80q refers to itself without a property or an item in between, so no value can be validated against it", "#"+name)
	}
	r, known := w.refs[w.mode.named(name)]
	if !known {
		r = w.b.rule("$ref " + name)
		w.refs[w.mode.named(name)] = r
		w.chain = append(w.chain, name)
		w.b.define(r, w.value(target, name))
		w.chain = w.chain[:len(w.chain)-1]
	}
	return w.b.call(r)
}

// child writes a nested value, in which references may recur.
func (w *schemaWriter) child(schema any, path string) part {
	return w.in(w.mode.inner(), schema, path)
}

// lookup resolves a $ref in the same document.
func (w *schemaWriter) lookup(ref any, path string) (target any, name string) {
	text, ok := ref.(string)
	if !ok || !strings.HasPrefix(text, "#") {
		w.fail(path+"/$ref", "%.80s is not supported; use a reference within the schema (#/…)", writeJSON(ref))
		return nil, ""
	}
	name = strings.TrimPrefix(text, "#")
	if !w.spend(len(name)/16, path) {
		return nil, ""
	}
	at := w.root
	if plain, err := url.PathUnescape(name); err == nil {
		name = plain
	}
	for _, step := range strings.Split(name, "/")[1:] {
		step = strings.NewReplacer("~1", "/", "~0", "~").Replace(step)
		found := false
		switch v := at.(type) {
		case *object:
			at, found = v.get(step)
		case []any:
			if i, err := strconv.Atoi(step); err == nil && i >= 0 && i < len(v) {
				at, found = v[i], true
			}
		}
		if !found {
			w.fail(path+"/$ref", "%.80q does not exist in the schema", text)
			return nil, ""
		}
	}
	if name != "" && !strings.HasPrefix(name, "/") {
		w.fail(path+"/$ref", "%.80q: anchors are not supported; write #/…", text)
	}
	return at, name
}

// size returns the number of keys and properties of a schema.
func (o *object) size() int {
	n := 1 + len(o.keys)
	if p, ok := o.values["properties"].(*object); ok {
		n += len(p.keys)
	}
	return n
}

// mergeAll merges a schema with those in its allOf.
func (w *schemaWriter) mergeAll(o *object, path string) any {
	list, ok := o.values["allOf"].([]any)
	if !ok {
		w.fail(path+"/allOf", "expected a list of schemas")
		return false
	}
	var all any = o.clone("allOf")
	for i, sub := range list {
		all = w.merge(all, sub, path+"/allOf/"+strconv.Itoa(i))
	}
	return all
}

// merge returns a schema that is valid where both are valid.
func (w *schemaWriter) merge(a, b any, path string) any {
	if w.depth++; w.depth > maxDepth {
		w.fail(path, "schemas are nested deeper than %d", maxDepth)
	}
	defer func() { w.depth-- }()
	a, b = w.resolved(a, path), w.resolved(b, path)
	switch {
	case w.err != nil || w.b.err != nil || a == false || b == false:
		return false
	case a == true:
		return b
	case b == true:
		return a
	}
	x, xok := a.(*object)
	y, yok := b.(*object)
	if !xok || !yok {
		w.fail(path, "expected schemas to merge")
		return false
	}
	if !w.spend(8*(x.size()+y.size()), path) || !w.checkWords(x, path) || !w.checkWords(y, path) {
		return false
	}
	x, y = w.normal(x, path), w.normal(y, path)
	out := x.clone()
	y = y.clone()
	closeOver(out, y)
	for _, k := range y.keys {
		old, both := out.get(k)
		switch {
		case !both:
			out.set(k, y.values[k])
		case slices.Contains(annotations, k) || slices.Contains([]string{"prefixItems", "items", "additionalItems"}, k):
		default:
			out.set(k, w.mergeWord(k, old, y.values[k], path))
		}
	}
	out = w.mergeItems(out, x, y, path)
	if list, ok := out.values["enum"].([]any); ok && len(list) == 0 {
		return false
	}
	return out
}

// resolved resolves a schema that is a reference.
func (w *schemaWriter) resolved(s any, path string) any {
	o, ok := s.(*object)
	if !ok {
		return s
	}
	if ref, ok := o.get("$ref"); ok {
		target, _ := w.lookup(ref, path)
		if rest := o.clone(append([]string{"$ref"}, annotations...)...); len(rest.keys) > 0 {
			return w.merge(target, rest, path)
		}
		return w.resolvedOnce(target, path)
	}
	if o.has("allOf") {
		return w.mergeAll(o, path)
	}
	return s
}

// resolvedOnce resolves a chain of references, which may be cyclic.
func (w *schemaWriter) resolvedOnce(s any, path string) any {
	if w.depth++; w.depth > maxDepth {
		w.fail(path, "references are cyclic")
		return false
	}
	defer func() { w.depth-- }()
	return w.resolved(s, path)
}

// closeOver applies each schema's additionalProperties to the properties that only the
// other one names. It modifies both objects.
func closeOver(a, b *object) {
	pa, _ := a.values["properties"].(*object)
	pb, _ := b.values["properties"].(*object)
	closeOne(a, pa, pb, b)
	closeOne(b, pb, pa, a)
}

// closeOne applies other's additionalProperties to o's properties that other does not
// name.
func closeOne(o, own, named, other *object) {
	extra, closed := other.get("additionalProperties")
	if !closed || own == nil {
		return
	}
	limited := own.clone()
	for _, k := range own.keys {
		if named == nil || !named.has(k) {
			limited.set(k, both(own.values[k], extra))
		}
	}
	o.set("properties", limited)
}

// both returns a schema that is valid where a and b are valid.
func both(a, b any) any {
	if a == false || b == false {
		return false
	}
	if a == true {
		return b
	}
	if b == true {
		return a
	}
	o := newObject()
	o.set("allOf", []any{a, b})
	return o
}
