package grammar

import (
	"fmt"
	"maps"
	"slices"
)

// A scope gives each $dynamicAnchor the schema that a $dynamicRef to it means: that of
// the outermost schema with an $id from which the current one was reached. Equal scopes
// are the same pointer.
type scope struct {
	bound map[string]*object
}

// A schemaKey identifies a schema in a scope.
type schemaKey struct {
	schema *object
	scope  *scope
}

// enter returns the scope inside of a schema.
func (w *schemaWriter) enter(o *object) *scope {
	anchors := w.documents.dynamic[w.documents.bases[o]]
	if len(anchors) == 0 {
		return w.scope
	}
	bound := maps.Clone(anchors)
	if w.scope != nil {
		maps.Copy(bound, w.scope.bound)
	}
	key := ""
	for _, name := range slices.Sorted(maps.Keys(bound)) {
		key += fmt.Sprintf("%q %p ", name, bound[name])
	}
	if !w.spend(len(key)/8, "") {
		return w.scope
	}
	s := w.documents.scopes[key]
	if s == nil {
		s = &scope{bound}
		w.documents.scopes[key] = s
	}
	return s
}

// within calls read in the scope of a schema.
func (w *schemaWriter) within(n *expr, read func()) {
	before := w.scope
	w.scope = n.scope
	read()
	w.scope = before
}
