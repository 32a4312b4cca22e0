package spec

import ()

// StoresTransposed reports whether a stored matrix is inputs by outputs.
func (m *Model) StoresTransposed(std string) bool {
	return m.storesTransposed(std, m.tensors[std].Shape)
}

func (m *Model) storesTransposed(std string, shape []int) bool {
	return len(shape) == 2 && (m.Net.WeightLayout == "in_out" && transposes(std) || m.gateTransposed(std, shape))
}
