//go:build !linux

package packed

// adviseHuge does nothing: these systems choose page sizes themselves.
func adviseHuge([]byte) error { return nil }
