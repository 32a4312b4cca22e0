package cpu

import (
	"os"
	"runtime/debug"
)

// collect frees what starting left on Go's heap, and lets less garbage gather
// from now on: a model's tables are most of the heap, and a step makes a few
// kilobytes. GOGC, where set, is obeyed.
func collect() {
	if os.Getenv("GOGC") == "" {
		debug.SetGCPercent(25)
	}
	debug.FreeOSMemory()
}
