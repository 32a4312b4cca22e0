package grammar

import (
	"fmt"
	"slices"
)

// Limits of absorbed: the length of a list, and the number of conditions and words of one
// shape. Longer ones are kept as they are.
const (
	maxAbsorbed = 512
	maxListed   = 64
)

// absorbed removes the shapes whose conditions include all conditions of another, so
// their values are among those of the other one. Products of alternatives have many.
func (w *schemaWriter) absorbed(list []*shape, path string) []*shape {
	if len(list) < 2 || len(list) > maxAbsorbed || !w.spend(len(list)*len(list)/4, path) {
		return list
	}
	var out []*shape
	for i, s := range list {
		if !slices.ContainsFunc(list[:i], func(other *shape) bool { return other.contains(s) }) &&
			!slices.ContainsFunc(list[i+1:], func(other *shape) bool { return other.contains(s) && !s.contains(other) }) {
			out = append(out, s)
		}
	}
	return out
}

// contains reports whether the conditions of s are among those of other.
func (s *shape) contains(other *shape) bool {
	a, b := s.listed(), other.listed()
	if a == nil || b == nil || s.typed && !other.typed || len(a) > len(b) {
		return false
	}
	for _, condition := range a {
		if _, found := slices.BinarySearch(b, condition); !found {
			return false
		}
	}
	return true
}

// listed returns the conditions of a shape of strings or objects in order, or nil.
func (s *shape) listed() []string {
	if s.conditions != nil || s.texts == nil && s.object == nil {
		return s.conditions
	}
	var list []string
	if o := s.object; o != nil && len(o.fields)+len(o.required)+len(o.keys)+len(o.members) > maxListed {
		return nil
	}
	for _, t := range s.texts {
		if len(t.words) > maxListed {
			return nil
		}
		list = append(list, t.key())
	}
	if o := s.object; o != nil {
		for _, f := range o.fields {
			list = append(list, fmt.Sprintf("fields %p", f))
		}
		for _, name := range o.required {
			list = append(list, "required "+name)
		}
		for _, k := range o.keys {
			list = append(list, fmt.Sprintf("names %d", k.id))
		}
		for _, m := range o.members {
			list = append(list, fmt.Sprintf("member %d %d", m.name.id, m.value.id))
		}
		if o.lo > 0 || o.hi >= 0 {
			list = append(list, fmt.Sprintf("number %d %d", o.lo, o.hi))
		}
	}
	slices.Sort(list)
	s.conditions = list
	return list
}
