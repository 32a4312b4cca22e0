//go:build unix

package scheduler_test

import (
	"context"
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"sync"
	"testing"
	"time"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

const salt = 3

// start runs a scheduler with the fake model.
func start(t testing.TB, m *manifest.Manifest, eo engine.Options, opt scheduler.Options) (*scheduler.Scheduler, *engine.Engine) {
	t.Helper()
	lib, weights, table := devicetest.Open(t, m, salt)
	eo.Threads, opt.Vocab = 1, devicetest.Vocab
	eng, err := engine.Open(engine.Model{Manifest: m, Device: lib, Weights: weights, Dispatch: table}, eo)
	if err != nil {
		t.Fatal(err)
	}
	s := scheduler.New(eng, opt)
	t.Cleanup(func() {
		s.Close()
		if st := eng.Stats(); st.Used != 0 || eng.Len() != 0 {
			t.Errorf("left in the engine: %d sequences, %d pages", eng.Len(), st.Used)
		}
		eng.Close()
	})
	return s, eng
}

func prompt(r *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = 8 + r.Int32N(50)
	}
	return ids
}

func samplers(t testing.TB, n int, set decode.Settings, prompt int) []*decode.Sampler {
	t.Helper()
	list := make([]*decode.Sampler, n)
	for i := range list {
		set.Seed++
		var err error
		if list[i], err = decode.NewSampler(set, prompt); err != nil {
			t.Fatal(err)
		}
	}
	return list
}

// collect gathers the tokens of each continuation.
func collect(ctx context.Context, s *scheduler.Stream, n int) ([][]int32, error) {
	out := make([][]int32, n)
	for {
		events, err := s.Next(ctx)
		if err != nil || len(events) == 0 {
			return out, err
		}
		for _, e := range events {
			if e.Index >= 0 && e.Token >= 0 {
				out[e.Index] = append(out[e.Index], e.Token)
			}
		}
	}
}

// sampled returns the tokens of a query that runs alone, from the fake model's rows and
// its own samplers.
func sampled(t testing.TB, prompt []int32, n, max int, set decode.Settings) [][]int32 {
	t.Helper()
	out := make([][]int32, n)
	for i, c := range samplers(t, n, set, len(prompt)) {
		history := slices.Clone(prompt)
		for range max {
			token, err := c.Next(devicetest.Logits(history, salt), history)
			if err != nil {
				t.Fatal(err)
			}
			history = append(history, token)
			if token == devicetest.EOS {
				break
			}
		}
		out[i] = history[len(prompt):]
	}
	return out
}

// TestCompany runs many clients with requests of all kinds and few pages, and cancels
// some. Every other request must get, token by token, the result that it gets alone.
func TestCompany(t *testing.T) {
	t.Parallel()
	for seed := range uint64(6) {
		r := rand.New(rand.NewPCG(seed, 1))
		eo := engine.Options{MaxTokens: 3 + r.IntN(60), MaxSeqs: 4 + r.IntN(4), Pages: 9 + r.IntN(8), Context: 300, Prefix: seed%3 > 0, StepTime: []time.Duration{0, time.Microsecond, time.Hour}[seed/2]}
		if eo.Draft = 6 * int(seed%2); seed == 2 {
			eo.MaxTokens, eo.Draft = 200, 100
		}
		s, eng := start(t, devicetest.Manifest(), eo, scheduler.Options{
			Queue: 1000, Metrics: scheduler.NewMetrics(&metrics.Registry{}), MinRun: time.Duration(1 + seed/2*uint64(time.Millisecond)), // jobs are suspended all the time
		})
		stem := prompt(r, 130)
		var wg sync.WaitGroup
		for i := range 60 {
			q := append(slices.Clone(stem[:r.IntN(len(stem))]), prompt(r, 1+r.IntN(60))...)
			n, limit, leaves := 1+r.IntN(3), 1+r.IntN(50), r.IntN(5) == 0
			set := decode.Settings{Options: decode.Options{Temperature: float64(r.IntN(2)), Seed: seed*1000 + uint64(i)*10}}
			if r.IntN(3) == 0 {
				set.Frequency, set.Penalty = 0.5, 1.1
			}
			if i%4 == 1 {
				set.Mask = &tardy{rand.New(rand.NewPCG(seed, uint64(i)))}
			}
			client, user := string(rune('a'+i%3)), string(rune('a'+i%2))
			wg.Go(func() {
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				if leaves {
					time.AfterFunc(time.Duration(i%7)*time.Millisecond, cancel)
				}
				stream, err := s.Generate(ctx, scheduler.Generation{
					Job: scheduler.Job{Client: client, User: user, Priority: i % 4}, Prompt: q, Samplers: samplers(t, n, set, len(q)), Max: limit, EOS: []int32{devicetest.EOS}, Logprobs: -1,
					Drafter: drafters(i),
				})
				if err != nil {
					t.Error(err)
					return
				}
				got, err := collect(ctx, stream, n)
				if leaves && errors.Is(err, context.Canceled) {
					return
				}
				want := sampled(t, q, n, limit, set)
				for k := range want {
					if err != nil || !slices.Equal(got[k], want[k]) {
						t.Errorf("seed %d query %d choice %d: %v (%v), alone %v", seed, i, k, got[k], err, want[k])
					}
				}
			})
		}
		wg.Wait()
		if st := eng.Stats(); eo.StepTime == 0 && (st.Accepted > 0) != (eo.Draft > 0) { // otherwise it depends on timing
			t.Errorf("seed %d: %d of %d drafted tokens were accepted", seed, st.Accepted, st.Drafted)
		}
	}
}

// tardy allows every token, and its masks are often late.
type tardy struct{ rng *rand.Rand }

func (*tardy) Mask() ([]uint64, error) { return slices.Repeat([]uint64{math.MaxUint64}, 64), nil }

func (*tardy) Accept(int32) error { return nil }

func (*tardy) Done() bool { return false }

func (t *tardy) Ready(notify func()) bool {
	if t.rng.IntN(2) == 0 {
		return true
	}
	time.AfterFunc(time.Duration(t.rng.IntN(100))*time.Microsecond, notify)
	return false
}

// A gate allows every token once it is open, so no answer ends before. It signals the
// start of its answer.
type gate struct {
	open  <-chan struct{}
	begin func()
}

func (g gate) Mask() ([]uint64, error) {
	g.begin()
	<-g.open
	return slices.Repeat([]uint64{math.MaxUint64}, 64), nil
}

func (gate) Accept(int32) error { return nil }

func (gate) Done() bool { return false }

func (gate) Ready(func()) bool { return true }

// TestTurns checks that a client with many requests does not delay another client until
// all of its own are done.
func TestTurns(t *testing.T) {
	t.Parallel()
	s, _ := start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 2}, scheduler.Options{})
	r := rand.New(rand.NewPCG(2, 2))
	var mu sync.Mutex
	var order []string
	var wg sync.WaitGroup
	asked := make(chan struct{})
	ask := func(client string, priority int) {
		begin := sync.OnceFunc(func() {
			mu.Lock()
			defer mu.Unlock()
			order = append(order, client)
		})
		p := prompt(r, 100)
		set := decode.Settings{Mask: gate{asked, begin}}
		stream, err := s.Generate(t.Context(), scheduler.Generation{Job: scheduler.Job{Client: client, Priority: priority}, Prompt: p, Samplers: samplers(t, 1, set, 100), Max: 150, Logprobs: -1})
		if err != nil {
			t.Error(err)
			return
		}
		wg.Go(func() {
			if _, err := collect(t.Context(), stream, 1); err != nil {
				t.Error(err)
			}
		})
	}
	for range 20 {
		ask("busy", 0)
	}
	ask("other", 0)
	ask("urgent", -1)
	close(asked)
	wg.Wait()
	for _, c := range []string{"other", "urgent"} {
		if at := slices.Index(order, c); at > 8 {
			t.Errorf("%s came as number %d: %v", c, at, order)
		}
	}
}

// TestSearch compares beam search through the scheduler with a search over the fake
// model's rows.
func TestSearch(t *testing.T) {
	t.Parallel()
	s, _ := start(t, devicetest.EncoderDecoder(), engine.Options{Graph: "decode", MaxSeqs: 8, Context: 100, MaxTokens: 120}, scheduler.Options{MinRun: 1})
	r := rand.New(rand.NewPCG(4, 2))
	var wg sync.WaitGroup
	for i := range 10 {
		source := prompt(r, 1+r.IntN(80))
		opt := decode.BeamOptions{Beams: 1 + r.IntN(4), LengthPenalty: 1, MaxLength: 30, Rules: decode.Rules{EOS: []int32{devicetest.EOS}}}
		wg.Go(func() {
			got, err := s.Beams(t.Context(), scheduler.Search{Job: scheduler.Job{Client: string(rune('a' + i%4))}, Prompt: []int32{1}, Source: source, Options: opt, Best: opt.Beams})
			if err != nil {
				t.Error(err)
				return
			}
			search, err := decode.NewBeamSearch([]int32{1}, opt)
			if err != nil {
				t.Error(err)
				return
			}
			live := [][]int32{{1}}
			for live != nil {
				var rows [][]float32
				for _, l := range live {
					rows = append(rows, devicetest.Translated(source, l, salt))
				}
				branches, err := search.Step(rows)
				if err != nil {
					t.Error(err)
					return
				}
				var next [][]int32
				for _, b := range branches {
					next = append(next, append(slices.Clone(live[min(b.Parent, len(live)-1)]), b.Token))
				}
				live = next
			}
			want := search.Best(opt.Beams)
			if len(got) != len(want) {
				t.Errorf("%d hypotheses, expected %d", len(got), len(want))
				return
			}
			for i := range want {
				if !slices.Equal(got[i].Tokens, want[i].Tokens) || got[i].Score != want[i].Score {
					t.Errorf("hypothesis %d: %v, expected %v", i, got[i], want[i])
				}
			}
		})
	}
	wg.Wait()
}

// TestRefusals checks jobs that never fit, come after Close, or wait too long.
func TestRefusals(t *testing.T) {
	t.Parallel()
	s, _ := start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 2, Context: 100}, scheduler.Options{})
	g := scheduler.Generation{Prompt: []int32{9}, Max: 3, Logprobs: -1}
	g.Samplers = samplers(t, 3, decode.Settings{}, 1)
	if _, err := s.Generate(t.Context(), g); err == nil {
		t.Error("three sequences at once of at most two were taken")
	}
	g.Samplers = samplers(t, 1, decode.Settings{}, 1)
	g.Prompt = make([]int32, 101)
	stream, err := s.Generate(t.Context(), g)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Next(t.Context()); err == nil {
		t.Error("a prompt longer than the context was taken")
	}
	g.Prompt = []int32{devicetest.NaNID} // its row contains a NaN
	if stream, err = s.Generate(t.Context(), g); err != nil {
		t.Fatal(err)
	}
	if _, err := stream.Next(t.Context()); !errors.Is(err, decode.ErrNaN) {
		t.Errorf("NaN: %v", err)
	}
	if err := s.Drain(t.Context()); err != nil {
		t.Error(err)
	}
	if _, err := s.Generate(t.Context(), g); !errors.Is(err, scheduler.ErrClosed) {
		t.Errorf("after draining: %v", err)
	}
}

// TestPanic checks that a panic ends only its own job.
func TestPanic(t *testing.T) {
	t.Parallel()
	s, _ := start(t, devicetest.Manifest(), engine.Options{MaxSeqs: 2}, scheduler.Options{})
	err := s.Rows(t.Context(), scheduler.Job{}, engine.Query{Tokens: []int32{9}}, func(engine.Result) error { panic("oops") })
	if err == nil || err.Error() != "bug: oops" {
		t.Errorf("%v", err)
	}
	if err := s.Rows(t.Context(), scheduler.Job{}, engine.Query{Tokens: []int32{9}}, func(engine.Result) error { return nil }); err != nil {
		t.Error(err)
	}
}
