//go:build unix

package scheduler_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// onStages is start with the fake model on a pipeline.
func onStages(t *testing.T, stages int, eo engine.Options) (*scheduler.Scheduler, *engine.Engine, *devicetest.Pipeline) {
	t.Helper()
	m := devicetest.Manifest()
	lib, weights, table := devicetest.Open(t, m, salt)
	p := devicetest.OnPipeline(t, lib, stages, nil)
	eo.Threads = 1
	eng, err := engine.Open(engine.Model{Manifest: m, Device: p, Weights: weights, Dispatch: table}, eo)
	if err != nil {
		t.Fatal(err)
	}
	s := scheduler.New(eng, scheduler.Options{Queue: 1000, Vocab: devicetest.Vocab, Metrics: scheduler.NewMetrics(&metrics.Registry{})})
	t.Cleanup(func() {
		s.Close()
		if st := eng.Stats(); st.Used != 0 || eng.Len() != 0 {
			t.Errorf("left in the engine: %d sequences, %d pages", eng.Len(), st.Used)
		}
		eng.Close()
	})
	return s, eng, p
}

// TestCompanyOnStages is TestCompany on a pipeline: several kinds of continuations,
// with and without drafts, some of them cancelled in any state.
func TestCompanyOnStages(t *testing.T) {
	t.Parallel()
	for stages := 2; stages <= 4; stages++ {
		r := rand.New(rand.NewPCG(uint64(stages), 11))
		s, _, p := onStages(t, stages, engine.Options{MaxTokens: 20 + r.IntN(40), MaxSeqs: 6, Pages: 14, Context: 300, Prefix: stages > 2, Draft: 6})
		stem := prompt(r, 130)
		var wg sync.WaitGroup
		const clients = 40
		holdUp(t, s, &wg, clients) // so that there are enough requests for all stages at once
		for i := range clients {
			q := append(slices.Clone(stem[:r.IntN(len(stem))]), prompt(r, 1+r.IntN(60))...)
			n, limit, leaves := 1+r.IntN(2), 1+r.IntN(40), r.IntN(5) == 0
			set := decode.Settings{Options: decode.Options{Temperature: float64(r.IntN(2)), Seed: uint64(stages*1000 + i*10)}}
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				stream, err := s.Generate(ctx, scheduler.Generation{Prompt: q, Samplers: samplers(t, n, set, len(q)), Max: limit, EOS: []int32{devicetest.EOS}, Logprobs: -1, Drafter: drafters(i)})
				if err != nil {
					t.Error(err)
					return
				}
				if leaves {
					stream.Next(ctx) // it started or ended
					cancel()
				}
				got, err := collect(ctx, stream, n)
				if leaves && (err == nil || errors.Is(err, context.Canceled)) {
					return
				}
				want := sampled(t, q, n, limit, set)
				for k := range want {
					if err != nil || !slices.Equal(got[k], want[k]) {
						t.Errorf("%d stages, query %d choice %d: %v (%v), alone %v", stages, i, k, got[k], err, want[k])
					}
				}
			})
		}
		wg.Wait()
		if p.Most() != stages {
			t.Errorf("%d steps at once on %d stages", p.Most(), stages)
		}
	}
}

// holdUp blocks the scheduler until the given number of jobs wait.
func holdUp(t *testing.T, s *scheduler.Scheduler, wg *sync.WaitGroup, jobs int) {
	t.Helper()
	begun := make(chan struct{})
	wg.Go(func() {
		err := s.Rows(t.Context(), scheduler.Job{}, engine.Query{Tokens: []int32{9}}, func(engine.Result) error {
			close(begun)
			for waiting := 0; waiting < jobs; waiting, _ = s.Load() {
				time.Sleep(100 * time.Microsecond)
			}
			return nil
		})
		if err != nil {
			t.Error(err)
		}
	})
	<-begun
}
