package grammar

import (
	"net/url"
	"strconv"
	"strings"
)

// documents are the schemas of one document that have identifiers.
type documents struct {
	bases   map[*object]string            // of each object, the identifier of the schema around it
	schemas map[string]any                // by absolute identifier
	anchors map[string]*object            // by absolute identifier and anchor
	dynamic map[string]map[string]*object // by absolute identifier, schemas by $dynamicAnchor
	scopes  map[string]*scope             // by what they bind
	entered map[entry]*scope
}

func newDocuments(root any) *documents {
	return &documents{bases: map[*object]string{}, schemas: map[string]any{"": root}, anchors: map[string]*object{}, dynamic: map[string]map[string]*object{}, scopes: map[string]*scope{}, entered: map[entry]*scope{}}
}

// reference returns the node that a $ref or $dynamicRef names.
func (w *schemaWriter) reference(o *object, word, path string) *expr {
	target, name := w.lookup(o, word, path)
	if w.err != nil {
		return w.exprs.none
	}
	return w.node(target, name)
}

// lookup resolves a reference in the document.
func (w *schemaWriter) lookup(o *object, word, path string) (target any, name string) {
	text := o.values[word].(string)
	if !w.spend(len(text)/16, path) {
		return nil, ""
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
		if !known {
			w.fail(path+"/$ref", "%.80q does not exist in the schema", text)
		}
		if word == "$dynamicRef" && d.dynamic[address][fragment] == at && w.scope != nil && w.scope.bound[fragment] != nil {
			at = w.scope.bound[fragment]
		}
		return at, "#" + fragment
	}
	return w.follow(root, fragment, text, path)
}

var unescapeStep = strings.NewReplacer("~1", "/", "~0", "~")

// follow resolves a JSON pointer.
func (w *schemaWriter) follow(at any, pointer, text, path string) (target any, name string) {
	for _, step := range strings.Split(pointer, "/")[1:] {
		step = unescapeStep.Replace(step)
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

// maxID limits the bytes of an identifier. Each schema and anchor below it keeps it.
const maxID = 2048

// scan records the identifiers, the anchors and the unusual names in a value. It skips
// constants, which are no schemas.
func (w *schemaWriter) scan(v any, base string, depth int) {
	if depth > maxDepth || !w.spend(2+len(base)/8, "") {
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
		case len(id) > maxID:
			w.fail("$id", "expected at most %d bytes", maxID)
			return
		case id != "":
			base, _, _ = strings.Cut(resolve(base, id), "#")
			if _, known := d.schemas[base]; known && v != w.root {
				w.fail(id, "two schemas have this $id; give them different ones")
			}
			d.schemas[base] = v
		}
		d.bases[v] = base
		w.scanNames(v)
		for _, word := range []string{"$anchor", "$dynamicAnchor"} {
			if name, ok := v.values[word].(string); ok {
				d.anchors[base+"#"+name] = v
				if word == "$dynamicAnchor" {
					if d.dynamic[base] == nil {
						d.dynamic[base] = map[string]*object{}
					}
					d.dynamic[base][name] = v
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

// scanNames records the names of a schema that patterns of different dialects may read
// differently: those with characters other than the printable ones of ASCII.
func (w *schemaWriter) scanNames(o *object) {
	add := func(name string) {
		if strings.ContainsFunc(name, func(c rune) bool { return c < ' ' || c > '~' }) {
			w.unusual = append(w.unusual, name)
		}
	}
	if properties, ok := o.values["properties"].(*object); ok {
		for _, name := range properties.keys {
			add(name)
		}
	}
	required, _ := o.values["required"].([]any)
	for _, v := range required {
		if name, ok := v.(string); ok {
			add(name)
		}
	}
}
