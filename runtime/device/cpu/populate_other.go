//go:build unix && !linux

package cpu

// populate does nothing: this system has no call that preserves the contents.
func populate([]byte) {}

// background does nothing: this system has no per-thread niceness.
func background() {}
