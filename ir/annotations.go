package ir

import "slices"

// Get finds an annotation by name, or gives nil.
func (ns Annotations) Get(name string) *Annotation {
	for i := range ns {
		if ns[i].Name == name {
			return &ns[i]
		}
	}
	return nil
}

// Set puts an annotation, replacing an earlier one of the same name.
func (ns *Annotations) Set(n Annotation) {
	if old := ns.Get(n.Name); old != nil {
		*old = n
		return
	}
	*ns = append(*ns, n)
}

// Delete removes the annotation of the given name if it is there.
func (ns *Annotations) Delete(name string) {
	*ns = slices.DeleteFunc(*ns, func(n Annotation) bool { return n.Name == name })
}

// Words makes an annotation of unconditional words: Words("slot", "2") is !slot(2).
func Words(name string, words ...string) Annotation {
	n := Annotation{Name: name}
	for _, w := range words {
		n.Args = append(n.Args, AnnotationArg{Val: w})
	}
	return n
}

// Word returns the annotation's value for the given count of rows (or layer, by what the
// annotation's bounds are on): the last case whose bound is not above n, or "".
func (n *Annotation) Word(count int) string {
	val := ""
	for _, a := range n.Args {
		if a.Of == "" || count >= a.From {
			val = a.Val
		}
	}
	return val
}

// DropAnnotations removes every annotation of the module.
func DropAnnotations(m *Module) {
	for _, g := range m.Graphs {
		for o := range g.All() {
			o.Annotations = nil
		}
	}
}
