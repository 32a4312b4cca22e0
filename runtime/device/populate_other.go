//go:build unix && !linux

package device

// populate does nothing: these systems have no call that keeps what is there.
func populate([]byte) {}

// Background does nothing: these systems do not weigh threads by niceness.
func Background() {}
