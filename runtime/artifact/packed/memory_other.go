//go:build !linux

package packed

// adviseHuge does nothing on other systems.
func adviseHuge([]byte) error { return nil }
