package grammar

import (
	"fmt"
	"maps"
	"slices"
	"strings"
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

// An entry is a step from a scope into a document.
type entry struct {
	from *scope
	base string
}

// enter returns the scope inside of a schema.
func (w *schemaWriter) enter(o *object) *scope {
	d := w.documents
	at := entry{w.scope, d.bases[o]}
	anchors := d.dynamic[at.base]
	if len(anchors) == 0 {
		return w.scope
	}
	s := d.entered[at]
	if s == nil {
		bound := maps.Clone(anchors)
		if w.scope != nil {
			maps.Copy(bound, w.scope.bound)
		}
		if !w.spend(16*len(bound), "") {
			return w.scope
		}
		var key strings.Builder
		for _, name := range slices.Sorted(maps.Keys(bound)) {
			fmt.Fprintf(&key, "%q %p ", name, bound[name])
		}
		if s = d.scopes[key.String()]; s == nil {
			s = &scope{bound}
			d.scopes[key.String()] = s
		}
		d.entered[at] = s
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
