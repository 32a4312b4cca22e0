//go:build unix

package engine_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
)

// onPipeline runs the fake model's steps on a pipeline.
func onPipeline(t testing.TB, m engine.Model, depth int, stage func(int, *device.Step) error) (engine.Model, *devicetest.Pipeline) {
	t.Helper()
	p := devicetest.OnPipeline(t, m.Device, depth, stage)
	m.Device = p
	return m, p
}

// A burst adds and removes queries at random.
type burst struct {
	r        *rand.Rand
	e        *engine.Engine
	shared   []int32 // source of prompt prefixes
	live     map[engine.ID]*request
	ids      []engine.ID
	finished int

	adapter *engine.Adapter // of some of the next queries; may be nil
	loads   int             // of adapters
}

// A request is a query of a burst.
type request struct {
	prompt, got []int32
	n           int
	load        int // its adapter is the load-th that was loaded; 0: it has none
}

// come adds a random number of queries, until one is refused.
func (c *burst) come(t *testing.T) {
	for c.r.IntN(3) > 0 {
		q := &request{prompt: append(slices.Clone(c.shared[:c.r.IntN(80)]), prompt(c.r, 1+c.r.IntN(90))...), n: 1 + c.r.IntN(30)}
		query := engine.Query{Tokens: q.prompt}
		if c.adapter != nil && c.r.IntN(3) > 0 {
			query.Adapter, q.load = c.adapter, c.loads
		}
		id, err := c.e.AddQuery(query)
		if errors.Is(err, engine.ErrBusy) {
			return
		}
		if err != nil {
			t.Fatal(err)
		}
		c.live[id] = q
		c.ids = append(c.ids, id)
	}
}

// step checks the results of one step.
func (c *burst) step(t *testing.T) {
	results, err := c.e.Infer(t.Context())
	if err != nil || len(results) == 0 && len(c.live) > 0 {
		t.Fatalf("%d results, %v", len(results), err)
	}
	for _, res := range results {
		q := c.live[res.ID]
		if q == nil {
			t.Fatal("a result for a query that is gone")
		}
		if !res.Ready {
			continue
		}
		q.got = append(q.got, argmax(res.Row(0, 0)))
		if want := devicetest.GreedyWith(q.load, q.prompt, len(q.got), salt); !slices.Equal(q.got, want) {
			t.Fatalf("tokens %v, expected %v", q.got, want)
		}
		if len(q.got) == q.n {
			c.leave(res.ID)
			c.finished++
		} else if err := c.e.Commit(res.ID, q.got[len(q.got)-1]); err != nil {
			t.Fatal(err)
		}
	}
}

func (c *burst) leave(id engine.ID) {
	c.e.Remove(id)
	delete(c.live, id)
}

// TestPipelineArrivals checks the engine's contract on a pipeline: with random
// arrivals, cancellations and few pages, every query gets the result that it gets
// alone.
func TestPipelineArrivals(t *testing.T) {
	t.Parallel()
	whole := fake(t)
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 79))
		m, p := onPipeline(t, whole, 1+r.IntN(4), nil)
		opt := engine.Options{MaxTokens: 8 + r.IntN(40), MaxSeqs: 8, MaxOutRows: 8 + r.IntN(4), Pages: 4 + r.IntN(15), Context: 256, Prefix: r.IntN(2) == 0}
		t.Logf("seed %d: %d stages, %+v", seed, p.Depth, opt)
		c := &burst{r: r, e: open(t, m, opt), shared: prompt(r, 80), live: map[engine.ID]*request{}}
		for c.finished < 25 {
			c.come(t)
			c.step(t)
			if len(c.ids) == 0 || r.IntN(4) > 0 {
				continue
			}
			if id := c.ids[r.IntN(len(c.ids))]; c.live[id] != nil { // cancel a query, perhaps one in a step in flight
				c.leave(id)
			}
		}
		for id := range c.live {
			c.leave(id)
		}
		c.step(t)
		if s := c.e.Stats(); s.Used != 0 || s.Stages != p.Depth || p.Most() > p.Depth {
			t.Errorf("%d pages in use after the end, %d stages of %d, %d steps at once", s.Used, s.Stages, p.Depth, p.Most())
		}
	}
}

// TestPipelineFair checks that eight sequences are divided evenly among the steps in
// flight, also after some are removed.
func TestPipelineFair(t *testing.T) {
	t.Parallel()
	m, p := onPipeline(t, fake(t), 4, nil)
	e := open(t, m, engine.Options{MaxSeqs: 8})
	for i := range int32(8) {
		if _, err := e.AddQuery(engine.Query{Tokens: []int32{8 + i}}); err != nil {
			t.Fatal(err)
		}
	}
	for step := range 40 {
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		if len(results) > 2 || step < 16 && len(results) != 2 || step > 24 && len(results) != 1 {
			t.Fatalf("step %d has %d sequences", step, len(results))
		}
		for _, r := range results {
			if step >= 16 && e.Len() > 4 {
				e.Remove(r.ID)
			} else if err := e.Commit(r.ID, 9); err != nil {
				t.Fatal(err)
			}
		}
	}
	if p.Most() != 4 {
		t.Errorf("%d steps at once on four stages", p.Most())
	}
}

// TestPipelineFails checks that Infer returns the error of a stage that fails once, and
// that steps in flight are computed again.
func TestPipelineFails(t *testing.T) {
	t.Parallel()
	var steps atomic.Int64
	m, _ := onPipeline(t, fake(t), 3, func(stage int, _ *device.Step) error {
		if stage == 1 && steps.Add(1) == 7 {
			return errors.New("rank 1: no answer")
		}
		return nil
	})
	e := open(t, m, engine.Options{MaxSeqs: 5})
	r := rand.New(rand.NewPCG(3, 3))
	prompts, got := map[engine.ID][]int32{}, map[engine.ID][]int32{}
	for range 5 {
		q := prompt(r, 70)
		id, err := e.AddQuery(engine.Query{Tokens: q})
		if err != nil {
			t.Fatal(err)
		}
		prompts[id] = q
	}
	failed := 0
	for range 60 {
		results, err := e.Infer(t.Context())
		if err != nil {
			if failed++; !strings.Contains(err.Error(), "rank 1") {
				t.Fatal(err)
			}
			continue
		}
		for _, res := range results {
			got[res.ID] = append(got[res.ID], argmax(res.Row(0, 0)))
			if err := e.Commit(res.ID, argmax(res.Row(0, 0))); err != nil {
				t.Fatal(err)
			}
		}
	}
	if failed != 1 {
		t.Errorf("%d steps failed, expected one", failed)
	}
	for id, q := range prompts {
		if len(got[id]) < 10 || !slices.Equal(got[id], devicetest.Greedy(q, len(got[id]), salt)) {
			t.Errorf("query %d: %d tokens, which are not those that it gets alone", id, len(got[id]))
		}
	}
}

// TestPipelineBusyQuery checks that changes of a query in a step in flight are refused.
func TestPipelineBusyQuery(t *testing.T) {
	t.Parallel()
	m, _ := onPipeline(t, fake(t), 2, nil)
	e := open(t, m, engine.Options{MaxSeqs: 3})
	var ids []engine.ID
	for i := range int32(2) {
		id, err := e.AddQuery(engine.Query{Tokens: []int32{8 + i}})
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, id)
	}
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != 1 || results[0].ID != ids[0] {
		t.Fatalf("%d results, %v", len(results), err)
	}
	if err := e.Commit(ids[1], 9); err == nil {
		t.Error("a token was committed to a query that is being computed")
	}
	if _, err := e.Fork(ids[1]); err == nil {
		t.Error("a query that is being computed was forked")
	}
}
