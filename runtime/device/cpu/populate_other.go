//go:build unix && !linux

package cpu

// populate does nothing: these systems have no call that keeps what is there.
func populate([]byte) {}

// background does nothing: these systems do not weigh threads by niceness.
func background() {}
