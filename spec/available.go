package spec

// available returns an error for the first module value of the model spec that
// cannot be lowered. Resolve calls it before it reads any tensor header.
func (s *Spec) available() error {
	if s.Network.TransformQK {
		return errAt(s.Pos("network_structure.transform_qk"), "network_structure.transform_qk: true is not available; want false, or a graph block that writes what it does")
	}
	return nil
}
