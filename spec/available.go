package spec

// available names the first module value of the specification that cannot be
// lowered; Resolve asks before it looks at tensors.
func (s *Spec) available() error {
	n := &s.Network
	no := func(key, value string) error {
		return errAt(s.Pos("network_structure."+key), "network_structure.%s: %s is not available", key, value)
	}
	switch {
	case n.NormalizationFunction == "linear":
		return no("normalization_function", "linear")
	case n.TransformQK:
		return no("transform_qk", "true")
	}
	return nil
}
