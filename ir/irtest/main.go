package irtest

import (
	"flag"
	"runtime"
	"strconv"
	"testing"
)

// Run runs the tests of a package whose tests mostly wait, for processes and for timeouts: twice
// as many at once as there are cores, unless -parallel says otherwise. It returns the exit status.
// With two cores, the tests of cmd/iflowc take 32 s instead of 41 s, those of
// runtime/device/ranks 8 s instead of 14 s.
func Run(m *testing.M) int {
	flag.Parse()
	asked := false
	flag.Visit(func(f *flag.Flag) { asked = asked || f.Name == "test.parallel" })
	if !asked {
		if err := flag.Set("test.parallel", strconv.Itoa(2*runtime.GOMAXPROCS(0))); err != nil {
			panic(err)
		}
	}
	return m.Run()
}
