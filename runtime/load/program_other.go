//go:build unix && !linux

package load

// ForgetStart hands back what Go's heap has free.
func ForgetStart() { rest() }
