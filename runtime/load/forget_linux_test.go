package load_test

import (
	"os"
	"sync"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/runtime/load"
	"github.com/iflowc/iflowc/runtime/load/loadtest"
)

// TestForgetStartLoading has one thread load libraries while another forgets:
// what a loader has written to a library must stay.
func TestForgetStartLoading(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile(loadtest.Build(t))
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
					load.ForgetStart()
				}
			}
		})
	}
	for range 60 {
		lib, err := load.Open("test", string(data))
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
