package cpu

import (
	"os"
	"runtime/debug"
)

// collect frees the garbage of startup and lowers GOGC, unless the user set it: most of
// the heap is the model's long-lived tables, and a step allocates only a few kilobytes.
func collect() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
	debug.FreeOSMemory()
}
