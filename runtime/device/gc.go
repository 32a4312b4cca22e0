package device

import (
	"os"
	"runtime/debug"
)

// rest collects what starting left on Go's heap, and lets less garbage gather
// from now on: a model's tables are most of the heap, and a step makes a few
// kilobytes. GOGC, where set, is obeyed.
func rest() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
	debug.FreeOSMemory()
}
