package grammar

import "slices"

// Limits of absorbed: the length of a list, and the number of conditions of one shape.
// Longer ones are kept as they are.
const (
	maxAbsorbed = 512
	maxListed   = 64
)

// absorbed removes the shapes whose conditions include all conditions of another, so
// their values are among those of the other one. Products of alternatives have many.
func (w *schemaWriter) absorbed(list []*shape, path string) []*shape {
	if len(list) < 2 || len(list) > maxAbsorbed {
		return list
	}
	total := 0
	for _, s := range list {
		total += len(w.listed(s))
	}
	if !w.spend(total/2+len(list)*(len(list)+total/16)/4, path) {
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

// contains reports whether the conditions of s are among those of other, once they are
// listed.
func (s *shape) contains(other *shape) bool {
	a, b := s.conditions, other.conditions
	if a == nil || b == nil || s.typed && !other.typed || len(a) > len(b) {
		return false
	}
	for _, condition := range a {
		for len(b) > 0 && b[0] < condition {
			b = b[1:]
		}
		if len(b) == 0 || b[0] != condition {
			return false
		}
	}
	return true
}

// Conditions that have no identity of their own.
type (
	requiredName string
	memberCount  struct{ lo, hi int }
)

// listed returns the numbers of the conditions of a shape of strings or objects in order,
// or nil.
func (w *schemaWriter) listed(s *shape) []int32 {
	if s.conditions != nil || s.texts == nil && s.object == nil {
		return s.conditions
	}
	add := func(condition any) {
		n, known := w.conditions[condition]
		if !known {
			n = int32(len(w.conditions))
			w.conditions[condition] = n
		}
		s.conditions = append(s.conditions, n)
	}
	o := s.object
	if o != nil && o.size() > maxListed {
		return nil
	}
	for _, t := range s.texts {
		add(t.testID)
	}
	if o != nil {
		for _, f := range o.fields {
			add(f)
		}
		for _, name := range o.required {
			add(requiredName(name))
		}
		for _, k := range o.keys {
			add(k)
		}
		for _, m := range o.members {
			add(m)
		}
		if o.lo > 0 || o.hi >= 0 {
			add(memberCount{o.lo, o.hi})
		}
	}
	slices.Sort(s.conditions)
	return s.conditions
}
