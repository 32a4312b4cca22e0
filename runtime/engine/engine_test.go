//go:build unix

package engine_test

import (
	"context"
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
)

const salt = 3

// fake loads the fake model.
func fake(t testing.TB) engine.Model {
	t.Helper()
	m := devicetest.Manifest()
	lib, weights, table := devicetest.Open(t, m, salt)
	return engine.Model{Manifest: m, Device: lib, Weights: weights, Dispatch: table}
}

func open(t testing.TB, m engine.Model, opt engine.Options) *engine.Engine {
	t.Helper()
	opt.Threads = 1
	e, err := engine.Open(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(e.Close)
	return e
}

// prompt returns n random ids that the fake model treats as ordinary tokens.
func prompt(r *rand.Rand, n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = 8 + r.Int32N(50)
	}
	return ids
}

func argmax(row []float32) int32 {
	best := 0
	for i := range row {
		if row[i] > row[best] {
			best = i
		}
	}
	return int32(best)
}

func TestGreedyAlone(t *testing.T) {
	t.Parallel()
	m := fake(t)
	for _, opt := range []engine.Options{{}, {MaxTokens: 1}, {MaxTokens: 7}, {MaxTokens: 64, MaxOutRows: 1}} {
		e := open(t, m, opt)
		p := prompt(rand.New(rand.NewPCG(1, 2)), 150)
		id, err := e.AddQuery(engine.Query{Tokens: p})
		if err != nil {
			t.Fatal(err)
		}
		var got []int32
		for len(got) < 40 {
			results, err := e.Infer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			if len(results) != 1 {
				t.Fatalf("%d results", len(results))
			}
			if !results[0].Ready {
				if results[0].Rows != 0 {
					t.Fatal("a row before the prompt's end")
				}
				continue
			}
			tok := argmax(results[0].Row(0, 0))
			got = append(got, tok)
			if err := e.Commit(id, tok); err != nil {
				t.Fatal(err)
			}
		}
		if want := devicetest.Greedy(p, 40, salt); !slices.Equal(got, want) {
			t.Errorf("%+v: tokens %v, expected %v", opt, got, want)
		}
	}
}

// TestOutputRows requests all rows of a prompt that is prefilled in chunks.
func TestOutputRows(t *testing.T) {
	t.Parallel()
	m := fake(t)
	p := prompt(rand.New(rand.NewPCG(5, 6)), 100)
	for _, c := range []struct{ last, first, tokens, outRows int }{{-1, 0, 16, 8}, {200, 0, 512, 64}, {3, 97, 512, 64}, {1, 99, 13, 1}, {0, 99, 99, 2}} {
		e := open(t, m, engine.Options{MaxTokens: c.tokens, MaxOutRows: c.outRows})
		if _, err := e.AddQuery(engine.Query{Tokens: p, Last: c.last}); err != nil {
			t.Fatal(err)
		}
		next := c.first
		for next < len(p) {
			results, err := e.Infer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			r := results[0]
			if r.Rows > 0 && r.First != next {
				t.Fatalf("last %d: rows start at %d, expected %d", c.last, r.First, next)
			}
			for i := range r.Rows {
				if want := devicetest.Logits(p[:next+1], salt); !slices.Equal(r.Row(0, i), want) {
					t.Fatalf("last %d: row %d differs", c.last, next)
				}
				next++
			}
		}
		if results, err := e.Infer(t.Context()); err != nil || len(results) != 0 {
			t.Errorf("nothing to do: %d results, %v", len(results), err)
		}
	}
}

// TestHiddenRows checks an output with one row per token.
func TestHiddenRows(t *testing.T) {
	t.Parallel()
	e := open(t, fake(t), engine.Options{MaxTokens: 16, MaxSeqs: 2})
	a, b := prompt(rand.New(rand.NewPCG(1, 1)), 5), prompt(rand.New(rand.NewPCG(2, 2)), 6)
	for _, p := range [][]int32{a, b} {
		if _, err := e.AddQuery(engine.Query{Tokens: p}); err != nil {
			t.Fatal(err)
		}
	}
	results, err := e.Infer(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	h := e.Output("hidden")
	for q, p := range [][]int32{a, b} {
		if results[q].Tokens() != len(p) {
			t.Fatalf("%d tokens", results[q].Tokens())
		}
		for i, id := range p {
			if row := results[q].Row(h, i); row[0] != float32(id) || row[1] != float32(i) || len(row) != 4 {
				t.Errorf("sequence %d row %d: %v", q, i, row)
			}
		}
	}
}

// TestRandomArrivals checks the engine's contract: with random arrivals and few pages,
// every query gets the result that it gets alone.
func TestRandomArrivals(t *testing.T) {
	t.Parallel()
	m := fake(t)
	for seed := range uint64(12) {
		r := rand.New(rand.NewPCG(seed, 77))
		opt := engine.Options{MaxTokens: 1 + r.IntN(40), MaxSeqs: 1 + r.IntN(5), MaxOutRows: 1 + r.IntN(4), Pages: 4 + r.IntN(5), Context: 256}
		e := open(t, m, opt)
		type query struct {
			prompt, got []int32
			n           int
		}
		live, finished := map[engine.ID]*query{}, 0
		for finished < 15 {
			for r.IntN(3) > 0 {
				q := &query{prompt: prompt(r, 1+r.IntN(150)), n: 1 + r.IntN(60)}
				id, err := e.AddQuery(engine.Query{Tokens: q.prompt})
				if errors.Is(err, engine.ErrBusy) {
					break
				}
				if err != nil {
					t.Fatal(err)
				}
				live[id] = q
			}
			results, err := e.Infer(t.Context())
			if err != nil {
				t.Fatalf("seed %d: %v", seed, err)
			}
			for _, res := range results {
				q := live[res.ID]
				if !res.Ready {
					continue
				}
				if res.Rows != 1 {
					t.Fatalf("seed %d: ready with %d rows", seed, res.Rows)
				}
				tok := argmax(res.Row(0, 0))
				q.got = append(q.got, tok)
				if len(q.got) == q.n {
					if want := devicetest.Greedy(q.prompt, q.n, salt); !slices.Equal(q.got, want) {
						t.Fatalf("seed %d, %+v: tokens %v, expected %v", seed, opt, q.got, want)
					}
					e.Remove(res.ID)
					delete(live, res.ID)
					finished++
				} else if err := e.Commit(res.ID, tok); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

func TestErrors(t *testing.T) {
	t.Parallel()
	m := fake(t)
	e := open(t, m, engine.Options{Context: 100})
	if _, err := e.AddQuery(engine.Query{}); err == nil {
		t.Error("an empty prompt was taken")
	}
	_, err := e.AddQuery(engine.Query{Tokens: make([]int32, 101)})
	if err == nil || !strings.Contains(err.Error(), "101") || !strings.Contains(err.Error(), "100") {
		t.Errorf("a long prompt: error %v, expected both numbers", err)
	}
	id, err := e.AddQuery(engine.Query{Tokens: prompt(rand.New(rand.NewPCG(1, 2)), 100)})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.AddQuery(engine.Query{Tokens: []int32{1}}); !errors.Is(err, engine.ErrBusy) {
		t.Errorf("a second query: %v", err)
	}
	if _, err := e.Infer(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := e.Commit(id, 8); !errors.Is(err, engine.ErrFull) {
		t.Errorf("commit to a full context: %v", err)
	}
	e.Remove(id)
	if e.Len() != 0 {
		t.Error("the query is still alive")
	}
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if _, err := e.Infer(ctx); !errors.Is(err, context.Canceled) {
		t.Errorf("a canceled step: %v", err)
	}
	for _, opt := range []engine.Options{{Graph: "other"}, {Context: 1000}, {Threads: -1}} {
		if _, err := engine.Open(m, opt); err == nil {
			t.Errorf("%+v was taken", opt)
		}
	}
}

// TestNoAllocation checks that a decode step allocates nothing.
func TestNoAllocation(t *testing.T) {
	e := open(t, fake(t), engine.Options{})
	id, err := e.AddQuery(engine.Query{Tokens: []int32{9}})
	if err != nil {
		t.Fatal(err)
	}
	step := func() {
		r, err := e.Infer(context.Background())
		if err != nil || len(r) != 1 {
			t.Fatal(r, err)
		}
		if err := e.Commit(id, 9); err != nil {
			t.Fatal(err)
		}
	}
	step()
	if n := testing.AllocsPerRun(50, step); n > 3 {
		t.Errorf("%v allocations a step", n)
	}
}

// BenchmarkStep measures the engine's overhead of a decode step: the fake model does
// next to nothing for short sequences.
func BenchmarkStep(b *testing.B) {
	e := open(b, fake(b), engine.Options{})
	for b.Loop() {
		id, err := e.AddQuery(engine.Query{Tokens: []int32{9}})
		if err != nil {
			b.Fatal(err)
		}
		for range 10 {
			if _, err := e.Infer(context.Background()); err != nil {
				b.Fatal(err)
			}
			if err := e.Commit(id, 9); err != nil {
				b.Fatal(err)
			}
		}
		e.Remove(id)
	}
}
