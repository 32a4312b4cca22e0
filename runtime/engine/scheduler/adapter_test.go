//go:build unix

package scheduler_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// startAdapters runs a scheduler with the fake model on a device with adapters.
func startAdapters(t *testing.T, eo engine.Options, opt scheduler.Options) (*scheduler.Scheduler, *engine.Engine, *devicetest.Adapters) {
	t.Helper()
	m := devicetest.Manifest()
	lib, weights, table := devicetest.Open(t, m, salt)
	dev := &devicetest.Adapters{Device: lib}
	eo.Threads, opt.Vocab = 1, devicetest.Vocab
	eng, err := engine.Open(engine.Model{Manifest: m, Device: dev, Weights: weights, Dispatch: table}, eo)
	if err != nil {
		t.Fatal(err)
	}
	return scheduler.New(eng, opt), eng, dev
}

// A loading is the adapter that new requests use.
type loading struct {
	mu      sync.Mutex
	adapter *scheduler.Adapter
	n       int // it is the n-th that was loaded
}

// hold holds the adapter.
func (l *loading) hold() (*scheduler.Adapter, int) {
	l.mu.Lock()
	defer l.mu.Unlock()
	l.adapter.Hold()
	return l.adapter, l.n
}

// next loads an adapter in place of the last one.
func (l *loading) next(ctx context.Context, s *scheduler.Scheduler) error {
	x, err := s.LoadAdapter(ctx, &lora.Packed{}, 1000)
	if err != nil {
		return err
	}
	l.mu.Lock()
	defer l.mu.Unlock()
	if l.adapter != nil {
		l.adapter.Unload()
	}
	l.adapter, l.n = x, l.n+1
	return nil
}

// TestLoadsUnderLoad replaces an adapter a hundred times while requests with and without
// one run: every request gets what it gets alone with the adapter that it began with, and
// no number and no memory is lost.
func TestLoadsUnderLoad(t *testing.T) {
	t.Parallel()
	s, eng, dev := startAdapters(t, engine.Options{MaxSeqs: 6, MaxTokens: 40, Pages: 30, Context: 256, Draft: 6, Prefix: true, AdapterBytes: 100_000}, scheduler.Options{Queue: 100, MinRun: time.Millisecond})
	l := &loading{}
	if err := l.next(t.Context(), s); err != nil {
		t.Fatal(err)
	}
	var stop atomic.Bool
	var requests atomic.Int64
	var wg sync.WaitGroup
	shared := prompt(rand.New(rand.NewPCG(8, 8)), 70)
	for worker := range 8 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(worker), 5))
			for !stop.Load() {
				requests.Add(1)
				q := append(slices.Clone(shared), prompt(r, 1+r.IntN(20))...)
				j := scheduler.Job{Client: string(rune('a' + worker%3))}
				load := 0
				if worker%2 == 0 {
					j.Adapter, load = l.hold()
				}
				g := scheduler.Generation{Job: j, Prompt: q, Samplers: samplers(t, 1+r.IntN(2), decode.Settings{}, len(q)), Max: 1 + r.IntN(20), EOS: []int32{devicetest.EOS}, Logprobs: -1, Drafter: drafters(worker)}
				err := generates(t.Context(), s, g, load)
				if j.Adapter != nil {
					j.Adapter.Release()
				}
				if err != nil {
					t.Error(err)
					return
				}
			}
		})
	}
	for range 100 {
		if err := l.next(t.Context(), s); err != nil {
			t.Fatal(err)
		}
		time.Sleep(time.Millisecond)
	}
	stop.Store(true)
	wg.Wait()
	l.adapter.Unload()
	for end := time.Now().Add(10 * time.Second); ; time.Sleep(time.Millisecond) { // until the last was freed: a job may release it after its last event
		_, err := s.LoadAdapter(t.Context(), &lora.Packed{}, 100_000)
		if err == nil {
			break
		}
		if !errors.Is(err, engine.ErrAdapterMemory) || time.Now().After(end) {
			t.Fatal(err)
		}
	}
	s.Close()
	if st := eng.Stats(); st.Adapters != 1 || dev.Loaded() != 1 || st.Used != 0 || eng.Len() != 0 {
		t.Errorf("%+v, %d adapters of the device", st, dev.Loaded())
	}
	t.Logf("%d requests, %d loads", requests.Load(), l.n)
	eng.Close()
}

var errDiffers = errors.New("the tokens differ from those of the request alone")

// generates runs a generation and compares its tokens.
func generates(ctx context.Context, s *scheduler.Scheduler, g scheduler.Generation, load int) error {
	stream, err := s.Generate(ctx, g)
	if err != nil {
		return err
	}
	got, err := collect(ctx, stream, len(g.Samplers))
	if err != nil {
		return err
	}
	want := devicetest.GreedyWith(load, g.Prompt, g.Max, salt)
	for i, id := range want {
		if id == devicetest.EOS {
			want = want[:i+1]
			break
		}
	}
	for _, tokens := range got {
		if !slices.Equal(tokens, want) {
			return errDiffers
		}
	}
	return nil
}

// TestUnloadWaits checks that queued jobs keep their adapter, also ones that are refused
// or canceled, and that an adapter is freed while nothing runs.
func TestUnloadWaits(t *testing.T) {
	t.Parallel()
	s, eng, dev := startAdapters(t, engine.Options{MaxSeqs: 1, AdapterBytes: 1000}, scheduler.Options{Queue: 1})
	defer eng.Close()
	defer s.Close()
	x, err := s.LoadAdapter(t.Context(), &lora.Packed{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	open, begun := make(chan struct{}), make(chan struct{})
	first := scheduler.Generation{Prompt: []int32{9}, Samplers: samplers(t, 1, decode.Settings{Mask: gate{open, sync.OnceFunc(func() { close(begun) })}}, 1), Max: 3, Logprobs: -1}
	stream, err := s.Generate(t.Context(), first)
	if err != nil {
		t.Fatal(err)
	}
	<-begun
	queued := scheduler.Generation{Job: scheduler.Job{Adapter: x}, Prompt: []int32{9, 10}, Samplers: samplers(t, 1, decode.Settings{}, 2), Max: 3, Logprobs: -1}
	done := make(chan error, 1)
	go func() { done <- generates(t.Context(), s, queued, 1) }()
	for waiting := 0; waiting == 0; waiting, _ = s.Load() {
		time.Sleep(time.Millisecond)
	}
	if err := generates(t.Context(), s, queued, 1); !errors.Is(err, scheduler.ErrFull) {
		t.Errorf("beyond the queue: %v", err)
	}
	x.Unload()
	close(open)
	if _, err := collect(t.Context(), stream, 1); err != nil {
		t.Error(err)
	}
	if err := <-done; err != nil {
		t.Error(err)
	}
	again, err := s.LoadAdapter(t.Context(), &lora.Packed{}, 1000) // needs the memory of the first
	if err != nil || dev.Loaded() != 1 {
		t.Fatal(err, dev.Loaded())
	}
	if _, err := s.LoadAdapter(t.Context(), &lora.Packed{}, 1); !errors.Is(err, engine.ErrAdapterMemory) {
		t.Errorf("beyond the memory: %v", err)
	}
	again.Unload()
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := s.LoadAdapter(ctx, &lora.Packed{}, 1000); !errors.Is(err, context.Canceled) || dev.Loaded() != 0 {
		t.Errorf("canceled: %v, %d loaded", err, dev.Loaded())
	}
	s.Close()
	if _, err := s.LoadAdapter(t.Context(), &lora.Packed{}, 1000); !errors.Is(err, scheduler.ErrClosed) {
		t.Errorf("after the end: %v", err)
	}
}
