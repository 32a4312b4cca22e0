//go:build unix && !linux

package cpu

// A Startup is empty on this system.
type Startup struct{}

// AtStartup returns an empty Startup.
func AtStartup() Startup { return Startup{} }

// Release returns free memory of Go's heap to the system.
func (Startup) Release() { collect() }
