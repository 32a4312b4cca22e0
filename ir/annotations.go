package ir

import "slices"

// Get returns the annotation of the given name, or nil.
func (ns Annotations) Get(name string) *Annotation {
	for i := range ns {
		if ns[i].Name == name {
			return &ns[i]
		}
	}
	return nil
}

// Set adds an annotation or replaces the one of the same name.
func (ns *Annotations) Set(n Annotation) {
	if old := ns.Get(n.Name); old != nil {
		*old = n
		return
	}
	*ns = append(*ns, n)
}

// Delete removes the annotation of the given name, if there is one.
func (ns *Annotations) Delete(name string) {
	*ns = slices.DeleteFunc(*ns, func(n Annotation) bool { return n.Name == name })
}

// Words returns an annotation of unconditional words: Words("slot", "2") is !slot(2).
func Words(name string, words ...string) Annotation {
	n := Annotation{Name: name}
	for _, w := range words {
		n.Args = append(n.Args, AnnotationArg{Val: w})
	}
	return n
}

// Word returns the annotation's value for a count, which is a number of rows or a
// layer, depending on the annotation's bounds. It is the word of the last case with
// a bound ≤ count, or "".
func (n *Annotation) Word(count int) string {
	val := ""
	for _, a := range n.Args {
		if a.Of == "" || count >= a.From {
			val = a.Val
		}
	}
	return val
}

// DropAnnotations removes all annotations of the module.
func DropAnnotations(m *Module) {
	for _, g := range m.Graphs {
		for o := range g.All() {
			o.Annotations = nil
		}
	}
}
