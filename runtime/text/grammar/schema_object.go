package grammar

import "slices"

// An objectShape is a set of objects.
type objectShape struct {
	fields   []*fields
	required []string
	keys     []*expr  // of all names
	lo, hi   int      // number of members; hi < 0: no limit
	members  []member // of each, one member at least
	path     string
}

// fields are the schemas of members by their names: properties, patternProperties and
// additionalProperties of one schema.
type fields struct {
	names    []string
	named    map[string]*expr
	patterns []patternFields
	extra    *expr // of names that are not in names and match no pattern
	open     bool  // a keyword says which other names there may be; only for arguments
	path     string
}

// patternFields are the schema of the members whose names are in a node.
type patternFields member

// A member is a name and its value.
type member struct{ name, value *expr }

// objectLeaf returns the leaf of a schema's keywords for objects.
func (w *schemaWriter) objectLeaf(o *object, path string) *expr {
	if !o.has(objectWords...) {
		return w.exprs.any
	}
	s := &objectShape{path: path, lo: w.count(o, "minProperties", path), hi: w.count(o, "maxProperties", path), required: w.names(o.values["required"], path+"/required")}
	if f := w.fieldsOf(o, path); len(f.names) > 0 || len(f.patterns) > 0 || f.extra != w.exprs.any || f.open {
		s.fields = []*fields{f}
	}
	if v, ok := o.get("propertyNames"); ok {
		s.keys = []*expr{w.node(v, path+"/propertyNames")}
	}
	set := restricted(kindObject, &shape{object: s})
	if s.hi >= 0 && s.hi < max(s.lo, len(s.required)) {
		set[kindObject] = nil
	}
	return w.leaf(set, path)
}

func (w *schemaWriter) fieldsOf(o *object, path string) *fields {
	f := &fields{named: map[string]*expr{}, extra: w.exprs.any, path: path}
	props := schemas(o, "properties")
	for _, name := range props.keys {
		f.names = append(f.names, name)
		f.named[name] = w.node(props.values[name], path+"/properties/"+name)
	}
	patterns := schemas(o, "patternProperties")
	for _, text := range patterns.keys {
		at := path + "/patternProperties/" + text
		f.patterns = append(f.patterns, patternFields{w.namesLike(text, at), w.node(patterns.values[text], at)})
	}
	if v, ok := o.get("additionalProperties"); ok {
		f.extra = w.node(v, path+"/additionalProperties")
		f.open = w.closing && f.extra != w.exprs.none
	}
	return f
}

// opened reports whether the arguments of a call may have other names than the declared
// ones: a keyword allows them, or the object would need them. Other schemas describe all
// arguments, although they allow more.
func (o *objectShape) opened(declared int) bool {
	return o.lo > declared || len(o.members) > 0 || slices.ContainsFunc(o.fields, func(f *fields) bool { return f.open })
}

// namesLike returns the node of the names that match a pattern.
func (w *schemaWriter) namesLike(text, path string) *expr {
	n := w.namePatterns[text]
	if n == nil {
		t := w.patternTest(text, path)
		n = w.leaf(restricted(kindString, &shape{texts: []textTest{t}}), path)
		w.namePatterns[text] = n
	}
	return n
}

// schemas returns the value of a keyword whose values are by name.
func schemas(o *object, word string) *object {
	if v, ok := o.get(word); ok {
		return v.(*object)
	}
	return newObject()
}

// names returns the strings of a list, each once.
func (w *schemaWriter) names(v any, path string) []string {
	list, _ := v.([]any)
	if !w.spend(len(list)/2, path) {
		return nil
	}
	var names []string
	seen := map[string]bool{}
	for _, v := range list {
		name := v.(string)
		if !seen[name] {
			names = append(names, name)
		}
		seen[name] = true
	}
	return names
}

// of returns the node of the value of a name. Where only some validators find that the
// name matches a pattern, the value must be valid in both cases, or in the loose reading
// in one of them.
func (f *fields) of(w *schemaWriter, name string) *expr {
	list, undecided := []*expr{}, []*expr{}
	named := f.named[name]
	extra := named == nil
	if named != nil {
		list = append(list, named)
	}
	for _, p := range f.patterns {
		if !w.reading(true, func() bool { return w.holds(name, p.name) }) {
			continue
		}
		certain := w.reading(false, func() bool { return w.holds(name, p.name) })
		if extra = extra && !certain; w.loose && !certain {
			undecided = append(undecided, p.value)
		} else {
			list = append(list, p.value)
		}
	}
	rest := w.exprs.any
	if extra {
		rest = f.extra
	}
	if len(undecided) > 0 {
		rest = w.some(append(undecided, rest)...)
	}
	return w.all(append(list, rest)...)
}

// property returns the node of the value of a name.
func (w *schemaWriter) property(o *objectShape, name string) *expr {
	list := make([]*expr, len(o.fields))
	for i, f := range o.fields {
		list[i] = f.of(w, name)
	}
	return w.all(list...)
}

// size returns the number of conditions.
func (o *objectShape) size() int {
	return len(o.fields) + len(o.required) + len(o.keys) + len(o.members)
}

// joinObjects returns the objects in two shapes; possible is false if there are
// certainly none.
func (w *schemaWriter) joinObjects(a, b *objectShape, path string) (out *objectShape, possible bool) {
	if !w.spend((a.size()+b.size())/32+a.size()*b.size()/64, path) {
		return nil, false
	}
	out = &objectShape{lo: max(a.lo, b.lo), hi: fewer(a.hi, b.hi), path: a.path}
	out.fields, out.required = slices.Clone(a.fields), slices.Clone(a.required)
	out.keys, out.members = slices.Clone(a.keys), slices.Clone(a.members)
	for _, f := range b.fields {
		if !slices.Contains(out.fields, f) {
			out.fields = append(out.fields, f)
		}
	}
	seen := make(map[string]bool, len(a.required))
	for _, name := range a.required {
		seen[name] = true
	}
	for _, name := range b.required {
		if !seen[name] {
			out.required = append(out.required, name)
		}
	}
	for _, k := range b.keys {
		if !slices.Contains(out.keys, k) {
			out.keys = append(out.keys, k)
		}
	}
	for _, m := range b.members {
		if !slices.Contains(out.members, m) {
			out.members = append(out.members, m)
		}
	}
	if !w.spend(len(out.required)*(1+len(out.fields)), path) || out.hi >= 0 && out.hi < max(out.lo, len(out.required)) {
		return nil, false
	}
	for _, name := range out.required {
		if w.empty(w.property(out, name), path, maxProof) {
			return nil, false
		}
	}
	return out, true
}

// exceptObjects returns the objects that are not in a shape.
func (w *schemaWriter) exceptObjects(o *objectShape) []*objectShape {
	var out []*objectShape
	add := func() *objectShape {
		x := &objectShape{hi: -1, path: o.path}
		out = append(out, x)
		return x
	}
	with := func(name string, value *expr) { // a member with a value
		x := add()
		x.required = []string{name}
		x.fields = []*fields{{names: []string{name}, named: map[string]*expr{name: value}, extra: w.exprs.any, path: o.path}}
	}
	if o.lo > 0 {
		add().hi = o.lo - 1
	}
	if o.hi >= 0 {
		add().lo = o.hi + 1
	}
	for _, name := range o.required {
		add().fields = []*fields{w.absent(name, o.path)}
	}
	for _, k := range o.keys {
		add().members = []member{{w.not(k), w.exprs.any}}
	}
	for _, m := range o.members { // each such name has another value
		f := &fields{named: map[string]*expr{}, extra: w.exprs.any, patterns: []patternFields{{m.name, w.not(m.value)}}, path: o.path}
		add().fields = []*fields{f}
	}
	for _, f := range o.fields {
		others := []*expr{w.not(w.wordsNode(f.names, o.path))}
		for _, name := range f.names {
			if f.named[name] != w.exprs.any {
				with(name, w.not(f.named[name]))
			}
		}
		for _, p := range f.patterns {
			others = append(others, w.not(p.name))
			if p.value != w.exprs.any {
				add().members = []member{{p.name, w.not(p.value)}}
			}
		}
		if f.extra != w.exprs.any {
			add().members = []member{{w.all(others...), w.not(f.extra)}}
		}
		for _, m := range w.undecided(f) {
			add().members = []member{m}
		}
	}
	return out
}

// undecided returns members that are not valid, although only some validators find that
// their names match a pattern: their values are valid in neither case.
func (w *schemaWriter) undecided(f *fields) []member {
	if w.loose || len(f.patterns) == 0 {
		return nil // in the loose reading such names match and do not match
	}
	var values []*expr
	names := map[*expr][]string{}
	for _, name := range w.unusual {
		if f.named[name] != nil {
			continue
		}
		value := f.of(w, name)
		w.reading(true, func() bool {
			either := f.of(w, name)
			if either != value && names[either] == nil {
				values = append(values, either)
			}
			if either != value {
				names[either] = append(names[either], name)
			}
			return true
		})
	}
	var out []member
	for _, value := range values {
		out = append(out, member{w.wordsNode(names[value], f.path), w.not(value)})
	}
	return out
}

// absent are the fields of objects without a name.
func (w *schemaWriter) absent(name, path string) *fields {
	return &fields{names: []string{name}, named: map[string]*expr{name: w.exprs.none}, extra: w.exprs.any, path: path}
}

// wordsNode returns the node of a list of strings.
func (w *schemaWriter) wordsNode(words []string, path string) *expr {
	if len(words) == 0 {
		return w.exprs.none
	}
	var set shapeSet
	values := make([]any, len(words))
	for i, word := range words {
		values[i] = word
	}
	set[kindString] = []*shape{{values: values}}
	return w.leaf(set, path)
}

func (w *schemaWriter) objectFits(v *object, o *objectShape) bool {
	if len(v.keys) < o.lo || o.hi >= 0 && len(v.keys) > o.hi || !w.spend(len(o.required)+len(v.keys), o.path) {
		return false
	}
	if slices.ContainsFunc(o.required, func(name string) bool { return !v.has(name) }) {
		return false
	}
	for _, name := range v.keys {
		if !w.holds(v.values[name], w.property(o, name)) || !w.holds(name, w.all(o.keys...)) {
			return false
		}
	}
	for _, m := range o.members {
		if !slices.ContainsFunc(v.keys, func(name string) bool { return w.holds(name, m.name) && w.holds(v.values[name], m.value) }) {
			return false
		}
	}
	return w.err == nil
}

// finiteKeys returns the names that an object can have, if they are a list.
func (w *schemaWriter) finiteKeys(o *objectShape) ([]string, bool) {
	if len(o.keys) == 0 {
		return nil, false
	}
	var words []string
	for _, s := range w.shapes(w.all(o.keys...), false)[kindString] {
		if s.values == nil {
			return nil, false
		}
		for _, v := range s.values {
			if word := v.(string); !slices.Contains(words, word) && w.spend(1+len(words)/16, o.path) {
				words = append(words, word)
			}
		}
	}
	return words, true
}

// declared returns the names that are written in order: properties, then required
// names, then other names if they are a list. others reports whether further names may
// follow.
func (w *schemaWriter) declared(o *objectShape) (names []string, others bool) {
	seen := map[string]bool{}
	add := func(list []string) {
		for _, name := range list {
			if !seen[name] {
				seen[name] = true
				names = append(names, name)
			}
		}
	}
	for _, f := range o.fields {
		add(f.names)
	}
	add(o.required)
	words, finite := w.finiteKeys(o)
	add(words)
	if len(o.keys) > 0 {
		keys := w.all(o.keys...)
		names = slices.DeleteFunc(names, func(name string) bool { return !w.holds(name, keys) })
	}
	return names, !finite
}
