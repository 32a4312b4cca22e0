package grammar

import (
	"maps"
	"slices"
)

// valuesNode returns the node of a list of values.
func (w *schemaWriter) valuesNode(values []any, path string) *expr {
	var set shapeSet
	for _, v := range values {
		k := kindOf(v)
		if set[k] == nil {
			set[k] = []*shape{{typed: true}}
		}
		set[k][0].values = append(set[k][0].values, v)
	}
	return w.leaf(set, path)
}

// An exception collects the shapes of the arrays or objects that are not in a list. It
// divides them by their first item, or by one of their members, then by the next one, so
// no two shapes have a value in common.
type exception struct {
	w    *schemaWriter
	path string
	out  []*shape
}

// exceptConstants returns the arrays or objects that are none of the values.
func (w *schemaWriter) exceptConstants(k kind, values []any, path string) []*shape {
	e := &exception{w: w, path: path}
	if k == kindArray {
		e.arrays(values, nil)
	} else {
		e.objects(values, &fields{named: map[string]*expr{}, extra: w.exprs.any, path: path}, nil)
	}
	return w.checked(e.out, path)
}

// A branch is a list of values with the same part.
type branch struct {
	part   *expr
	values []any
}

// divide divides values by a part. It returns the node of all other parts, too.
func (e *exception) divide(values []any, part func(any) any) (list []branch, others *expr) {
	index := map[string]int{}
	var parts []any
	for _, v := range values {
		one := part(v)
		if !e.w.spend(8+weight(one)/4, e.path) {
			return nil, e.w.exprs.none
		}
		key := keyOf(one)
		at, ok := index[key]
		if !ok {
			at = len(list)
			index[key] = at
			parts = append(parts, one)
			list = append(list, branch{part: e.w.valuesNode([]any{one}, e.path)})
		}
		list[at].values = append(list[at].values, v)
	}
	return list, e.w.not(e.w.valuesNode(parts, e.path))
}

// arrays adds the arrays with the given first items that are none of the values, which
// begin with the same items.
func (e *exception) arrays(values []any, begin []*expr) {
	n := len(begin)
	if !e.w.spend(8+n+len(values)/4, e.path) || len(e.out) > maxShapes {
		return
	}
	add := func(lo, hi int, next ...*expr) {
		a := &arrayShape{prefix: slices.Concat(begin, next), rest: e.w.exprs.any, lo: lo, hi: hi, path: e.path}
		e.out = append(e.out, &shape{array: a})
	}
	longer := slices.DeleteFunc(slices.Clone(values), func(v any) bool { return len(v.([]any)) == n })
	if len(longer) == len(values) {
		add(n, n)
	}
	if len(longer) == 0 {
		add(n+1, -1)
		return
	}
	list, others := e.divide(longer, func(v any) any { return v.([]any)[n] })
	add(n+1, -1, others)
	for _, b := range list {
		e.arrays(b.values, slices.Concat(begin, []*expr{b.part}))
	}
}

// objects adds the objects with the given members that are none of the values, which have
// the same ones.
func (e *exception) objects(values []any, f *fields, required []string) {
	if !e.w.spend(8+2*len(f.names)+len(values)/4, e.path) || len(e.out) > maxShapes {
		return
	}
	o := &objectShape{fields: []*fields{f}, required: required, hi: -1, path: e.path}
	name, more := anotherName(values, f)
	if !more {
		if len(values) > 0 { // all of them are the object of these members
			o.lo = len(required) + 1
		}
		e.out = append(e.out, &shape{object: o})
		return
	}
	with := func(value *expr) *fields {
		named := maps.Clone(f.named)
		named[name] = value
		return &fields{names: append(slices.Clip(f.names), name), named: named, extra: f.extra, path: f.path}
	}
	has := func(v any) bool { return v.(*object).has(name) }
	e.objects(slices.DeleteFunc(slices.Clone(values), has), with(e.w.exprs.none), required)
	required = append(slices.Clip(required), name)
	list, others := e.divide(slices.DeleteFunc(slices.Clone(values), func(v any) bool { return !has(v) }), func(v any) any { return v.(*object).values[name] })
	e.objects(nil, with(others), required)
	for _, b := range list {
		e.objects(b.values, with(b.part), required)
	}
}

// anotherName returns a name of one of the objects that is not in f.
func anotherName(objects []any, f *fields) (name string, ok bool) {
	for _, v := range objects {
		for _, k := range v.(*object).keys {
			if f.named[k] == nil {
				return k, true
			}
		}
	}
	return "", false
}
