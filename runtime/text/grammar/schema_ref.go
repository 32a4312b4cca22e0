package grammar

import (
	"net/url"
	"strconv"
	"strings"
)

// documents are the schemas of one document that have identifiers.
type documents struct {
	bases   map[*object]string // of each object, the identifier of the schema around it
	schemas map[string]any     // by absolute identifier
	anchors map[string]*object // by absolute identifier and anchor
	dynamic map[string]int     // number of schemas with each $dynamicAnchor
}

// reference returns the node that a $ref or $dynamicRef names.
func (w *schemaWriter) reference(o *object, ref any, path string) *expr {
	target, name := w.lookup(o, ref, path)
	if w.err != nil {
		return w.exprs.none
	}
	return w.node(target, name)
}

// lookup resolves a reference in the document.
func (w *schemaWriter) lookup(o *object, ref any, path string) (target any, name string) {
	text, ok := ref.(string)
	if !ok {
		w.fail(path+"/$ref", "expected a string, found %.40s", writeJSON(ref))
		return nil, ""
	}
	if !w.spend(len(text)/16, path) {
		return nil, ""
	}
	if w.documents == nil {
		w.documents = &documents{bases: map[*object]string{}, schemas: map[string]any{"": w.root}, anchors: map[string]*object{}, dynamic: map[string]int{}}
		w.scan(w.root, "", 0)
	}
	d := w.documents
	address, fragment, _ := strings.Cut(resolve(d.bases[o], text), "#")
	root, known := d.schemas[address]
	if !known {
		w.fail(path+"/$ref", "%.80q is not in the schema; use a reference within the schema (#/…)", text)
		return nil, ""
	}
	if plain, err := url.PathUnescape(fragment); err == nil {
		fragment = plain
	}
	if fragment != "" && !strings.HasPrefix(fragment, "/") {
		at, known := d.anchors[address+"#"+fragment]
		switch {
		case !known:
			w.fail(path+"/$ref", "%.80q does not exist in the schema", text)
		case o.values["$dynamicRef"] == ref && d.dynamic[fragment] > 1:
			w.fail(path+"/$dynamicRef", "%.80q: a $dynamicAnchor that several schemas define is not supported; give them different names", text)
		}
		return at, "#" + fragment
	}
	return w.follow(root, fragment, text, path)
}

// follow resolves a JSON pointer.
func (w *schemaWriter) follow(at any, pointer, text, path string) (target any, name string) {
	for _, step := range strings.Split(pointer, "/")[1:] {
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
	return at, pointer
}

// resolve returns the absolute identifier of a reference.
func resolve(base, ref string) string {
	if base == "" || strings.HasPrefix(ref, "#") {
		return base + ref
	}
	b, err := url.Parse(base)
	if err != nil {
		return ref
	}
	r, err := url.Parse(ref)
	if err != nil {
		return ref
	}
	return b.ResolveReference(r).String()
}

// scan records the identifiers and the anchors in a value. It skips constants, which are
// no schemas.
func (w *schemaWriter) scan(v any, base string, depth int) {
	if depth > maxDepth || !w.spend(2, "") {
		return
	}
	d := w.documents
	switch v := v.(type) {
	case []any:
		for _, x := range v {
			w.scan(x, base, depth+1)
		}
	case *object:
		id, _ := v.values["$id"].(string)
		switch {
		case strings.HasPrefix(id, "#") && len(id) > 1: // an anchor in drafts 6 and 7
			d.anchors[base+id] = v
		case id != "":
			base, _, _ = strings.Cut(resolve(base, id), "#")
			if _, known := d.schemas[base]; known && v != w.root {
				w.fail(id, "two schemas have this $id; give them different ones")
			}
			d.schemas[base] = v
		}
		d.bases[v] = base
		for _, word := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v.values[word].(string); ok {
				d.anchors[base+"#"+name] = v
				if word == "$dynamicAnchor" {
					d.dynamic[name]++
				}
			}
		}
		for _, k := range v.keys {
			if k != "const" && k != "enum" && k != "default" && k != "examples" {
				w.scan(v.values[k], base, depth+1)
			}
		}
	}
}
