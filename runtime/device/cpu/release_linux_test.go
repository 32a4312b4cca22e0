package cpu_test

import (
	"os"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// TestReleaseLoading loads libraries on one thread while others call Release. The
// relocations that the loader writes must not be discarded.
func TestReleaseLoading(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(devicetest.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	start := cpu.AtStartup()
	stop := make(chan struct{})
	var releasing sync.WaitGroup
	for range 4 {
		releasing.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					start.Release()
				}
			}
		})
	}
	for range 60 {
		lib, err := cpu.Open("test", string(data))
		if err != nil {
			t.Error(err)
			break
		}
		closes, err := lib.Symbol("ifl_close")
		if err != nil {
			t.Error(err)
			break
		}
		purego.SyscallN(closes, 0) // calls free through an address that the loader has written
	}
	close(stop)
	releasing.Wait()
}
