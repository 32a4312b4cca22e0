//go:build unix

package scheduler_test

import (
	"errors"
	"math"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// slow allows every token, after a delay.
type slow struct{}

func (slow) Mask() ([]uint64, error) {
	time.Sleep(100 * time.Microsecond)
	return slices.Repeat([]uint64{math.MaxUint64}, 64), nil
}

func (slow) Accept(int32) error { return nil }

func (slow) Done() bool { return false }

func (slow) Ready(func()) bool { return true }

// TestMakeWay checks that a client's job is admitted while another client's jobs use
// every sequence, and that the queue, which they fill, accepts it.
func TestMakeWay(t *testing.T) {
	t.Parallel()
	s, _ := start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 2}, scheduler.Options{MinRun: 1, Queue: 3})
	long := func(client string, n, limit int) (*scheduler.Stream, error) {
		return s.Generate(t.Context(), scheduler.Generation{
			Job: scheduler.Job{Client: client}, Prompt: []int32{9, 10}, Samplers: samplers(t, n, decode.Settings{Bias: map[int32]float32{devicetest.EOS: -1e9}, Mask: slow{}}, 2), Max: limit, Logprobs: -1,
		})
	}
	for _, n := range []int{1, 2} { // sequences of a job
		var busy []*scheduler.Stream
		for range 8 {
			stream, err := long("busy", n, 100)
			if err == nil {
				busy = append(busy, stream)
			} else if !errors.Is(err, scheduler.ErrFull) {
				t.Fatal(err)
			}
		}
		stream, err := long("other", 1, 5)
		if err != nil {
			t.Fatal(err)
		}
		if got, err := collect(t.Context(), stream, 1); err != nil || len(got[0]) != 5 {
			t.Errorf("jobs of %d sequences: the other client got %v (%v)", n, got, err)
		}
		if waiting, running := s.Load(); waiting+running < 2 {
			t.Errorf("jobs of %d sequences: the other client waited for the busy one", n)
		}
		for _, b := range busy {
			got, err := collect(t.Context(), b, n)
			if errors.Is(err, scheduler.ErrFull) { // its place in the queue was given to another client
				continue
			}
			for _, ids := range got {
				if err != nil || len(ids) != 100 {
					t.Errorf("jobs of %d sequences: the busy client got %d tokens (%v)", n, len(ids), err)
				}
			}
		}
	}
}

// TestShortJobs checks that jobs too short to be suspended alternate with those of
// another client that arrived later.
func TestShortJobs(t *testing.T) {
	t.Parallel()
	s, _ := start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 1}, scheduler.Options{})
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	asked := make(chan struct{})
	for i, client := range []string{"busy", "busy", "busy", "busy", "busy", "busy", "busy", "busy", "other"} {
		set := decode.Settings{Mask: gate{asked, sync.OnceFunc(func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, client)
		})}}
		stream, err := s.Generate(t.Context(), scheduler.Generation{Job: scheduler.Job{Client: client}, Prompt: []int32{9, int32(10 + i)}, Samplers: samplers(t, 1, set, 2), Max: 2, Logprobs: -1})
		if err != nil {
			t.Fatal(err)
		}
		wg.Go(func() {
			if _, err := collect(t.Context(), stream, 1); err != nil {
				t.Error(err)
			}
		})
	}
	close(asked)
	wg.Wait()
	if at := slices.Index(order, "other"); at > 1 {
		t.Errorf("the other client came as number %d: %v", at, order)
	}
}
