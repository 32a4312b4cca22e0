package device_test

import (
	"os"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device"
)

// TestForgetStartLoading has one thread load libraries while another forgets:
// what a loader has written to a library must stay.
func TestForgetStartLoading(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(devicetest.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	stop := make(chan struct{})
	var forgetting sync.WaitGroup
	for range 4 {
		forgetting.Go(func() {
			for {
				select {
				case <-stop:
					return
				default:
					device.ForgetStart()
				}
			}
		})
	}
	for range 60 {
		lib, err := device.Open("test", string(data))
		if err != nil {
			t.Error(err)
			break
		}
		closes, err := lib.Symbol("ifl_close")
		if err != nil {
			t.Error(err)
			break
		}
		purego.SyscallN(closes, 0) // calls free, at an address that the loader has written
	}
	close(stop)
	forgetting.Wait()
}
