//go:build unix

package draft_test

import (
	"math/rand/v2"
	"slices"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/draft"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

const salt = 9

// model returns a draft model that runs the fake model.
func model(t *testing.T, seqs int) (*draft.Model, *engine.Engine) {
	t.Helper()
	m := devicetest.Manifest()
	lib, weights, table := devicetest.Open(t, m, salt)
	eng, err := engine.Open(engine.Model{Manifest: m, Device: lib, Weights: weights, Dispatch: table}, draft.Options(engine.Options{Threads: 1, MaxSeqs: seqs}))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(eng.Close)
	d, err := draft.New(eng, devicetest.Vocab)
	if err != nil {
		t.Fatal(err)
	}
	return d, eng
}

// TestDrafts drafts for texts that follow the model or not. Every draft must be the
// model's greedy continuation, with several goroutines and more texts than the model
// has sequences.
func TestDrafts(t *testing.T) {
	t.Parallel()
	m, eng := model(t, 3)
	var wg sync.WaitGroup
	for i := range 5 {
		wg.Go(func() {
			r := rand.New(rand.NewPCG(uint64(i), 1))
			d := m.Drafter()
			history := make([]int32, 1+r.IntN(100)+300*(i%2))
			for j := range history {
				history[j] = 8 + r.Int32N(50)
			}
			drafted := 0
			for range 40 {
				got := d.Propose(history, speculate.Room{Nodes: 1 + r.IntN(6)})
				drafted += got.Len()
				if !got.Linear() || !slices.Equal(got.Tokens, devicetest.Greedy(history, got.Len(), salt)) {
					t.Errorf("after %d tokens: %v, expected %v", len(history), got.Tokens, devicetest.Greedy(history, got.Len(), salt))
				}
				keep := got.Tokens[:r.IntN(got.Len()+1)]
				more := slices.Concat(keep, []int32{8 + r.Int32N(50)})
				history = append(history, more...)
				d.Observe(more)
				if r.IntN(10) == 0 { // start another text
					history = slices.Clone(history[:1+r.IntN(len(history))])
				}
			}
			if drafted == 0 {
				t.Error("nothing was drafted")
			}
		})
	}
	wg.Wait()
	if eng.Len() > 3 {
		t.Errorf("%d sequences", eng.Len())
	}
}

// TestDeclines checks that a draft model as slow as its target is rarely used.
func TestDeclines(t *testing.T) {
	t.Parallel()
	m, _ := model(t, 1)
	d := m.Drafter()
	history := []int32{9}
	room := speculate.Room{Nodes: 8, Time: func(n int) float64 { return 1e-9 * (1 + float64(n)/10) }}
	asked := 0
	for range 300 {
		if d.Propose(history, room).Len() > 0 {
			asked++
		}
		history = append(history, 8+int32(len(history)%50))
		d.Observe(history[len(history)-1:])
	}
	if asked < 1 || asked > 12 {
		t.Errorf("%d of 300 times", asked)
	}
}
