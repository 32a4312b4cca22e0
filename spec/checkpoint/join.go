package checkpoint

import "fmt"

// Join adds the tensors of one more file to the set, of whatever format, each
// as prefix and its name: Medusa heads beside their model.
func (s *Set) Join(path, prefix string) error {
	other, err := Open(path)
	if err != nil {
		return err
	}
	s.maps = append(s.maps, other.maps...)
	s.paths = append(s.paths, other.paths...)
	s.notes = append(s.notes, other.notes...)
	for _, e := range other.entries {
		e.Name = prefix + e.Name
		if i, dup := s.index[e.Name]; dup {
			return fmt.Errorf("%s: tensor %q is in %s too", path, e.Name, s.entries[i].File)
		}
		s.index[e.Name] = len(s.entries)
		s.entries = append(s.entries, e)
	}
	s.sort()
	return nil
}
