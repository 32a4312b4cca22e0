//go:build unix && !linux

package cpu

// A Startup knows nothing on this system.
type Startup struct{}

// AtStartup does nothing.
func AtStartup() Startup { return Startup{} }

// Release hands back what Go's heap has free.
func (Startup) Release() { collect() }
