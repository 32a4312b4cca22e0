//go:build unix && !linux

package device

// ForgetStart hands back what Go's heap has free.
func ForgetStart() { rest() }
