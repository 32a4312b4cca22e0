package expand

import "slices"

// A scope holds what names are bound to in an instance. There are few, so that a list is
// faster than a map, and it is used again for another instance.
type scope struct {
	names  []string
	values []any
}

// scope returns an empty one.
func (x *Expander) scope() *scope {
	n := len(x.free)
	if n == 0 {
		return &scope{}
	}
	s := x.free[n-1]
	x.free = x.free[:n-1]
	clear(s.values)
	s.names, s.values = s.names[:0], s.values[:0]
	return s
}

func (s *scope) get(name string) (any, bool) {
	if i := slices.Index(s.names, name); i >= 0 {
		return s.values[i], true
	}
	return nil, false
}

func (s *scope) set(name string, v any) {
	if i := slices.Index(s.names, name); i >= 0 {
		s.values[i] = v
		return
	}
	s.names, s.values = append(s.names, name), append(s.values, v)
}

func (s *scope) delete(name string) {
	if i := slices.Index(s.names, name); i >= 0 {
		s.names, s.values = slices.Delete(s.names, i, i+1), slices.Delete(s.values, i, i+1)
	}
}
