package checkpoint

import "fmt"

// Join adds the tensors of another file, such as a checkpoint of Medusa heads, to
// the set. Each name is prepended with prefix. The file may be of any format.
func (s *Set) Join(path, prefix string) error {
	other, err := Open(path)
	if err != nil {
		return err
	}
	return s.JoinSet(other, prefix)
}

// JoinSet adds the tensors of another set, which must not be used afterwards. Each name
// is prepended with prefix.
func (s *Set) JoinSet(other *Set, prefix string) error {
	s.maps = append(s.maps, other.maps...)
	s.paths = append(s.paths, other.paths...)
	s.notes = append(s.notes, other.notes...)
	for _, e := range other.entries {
		e.Name = prefix + e.Name
		if i, dup := s.index[e.Name]; dup {
			return fmt.Errorf("%s: tensor %q is in %s too", e.File, e.Name, s.entries[i].File)
		}
		s.index[e.Name] = len(s.entries)
		s.entries = append(s.entries, e)
	}
	s.sort()
	return nil
}
