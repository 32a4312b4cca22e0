//go:build unix

package engine_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A speculator decodes one query greedily with random drafts, some of which are
// correct.
type speculator struct {
	id     engine.ID
	prompt []int32
	want   []int32 // result of plain decoding
	got    []int32
	draft  speculate.Tree
}

// randomTree returns a draft of up to n nodes; right is the probability that a node
// continues the expected text.
func randomTree(r *rand.Rand, next []int32, n int, right float64) (t speculate.Tree) {
	on := []bool{} // the node continues the expected text
	linear := r.IntN(3) == 0
	for i := range n {
		p := r.IntN(i+1) - 1
		if linear || r.IntN(2) == 0 {
			p = i - 1
		}
		token := 8 + r.Int32N(50)
		depth := int32(0)
		if p >= 0 {
			depth = t.Depths()[p]
		}
		if int(depth) < len(next) && (p < 0 || on[p]) && r.Float64() < right {
			token = next[depth]
		}
		if t.Child(p, token) >= 0 {
			break
		}
		on = append(on, (p < 0 || on[p]) && int(depth) < len(next) && token == next[depth])
		t.Tokens, t.Parent = append(t.Tokens, token), append(t.Parent, int32(p))
	}
	return t
}

// take verifies a result's draft and proposes the next one.
func (s *speculator) take(t *testing.T, r *rand.Rand, e *engine.Engine, res engine.Result, draft int) (done bool) {
	t.Helper()
	tree := s.draft.Cut(res.Drafted)
	var token int32
	for n := range res.Drafted {
		if hidden := res.Node(1, n); int32(hidden[0]) != tree.Tokens[n] {
			t.Errorf("node %d: the row of another token", n)
		}
	}
	path, err := res.Walk(nil, func(node int, _ int32, _ []decode.TokenProb) (int32, bool, error) {
		token = argmax(res.Node(0, node))
		s.got = append(s.got, token)
		return token, len(s.got) < len(s.want), nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if len(s.got) == len(s.want) {
		e.Remove(s.id)
		return true
	}
	if r.IntN(4) > 0 || len(path) > 0 {
		if err := e.Accept(s.id, path); err != nil {
			t.Fatal(err)
		}
	}
	if err := e.Commit(s.id, token); errors.Is(err, engine.ErrFull) {
		s.want = s.want[:len(s.got)]
		e.Remove(s.id)
		return true
	} else if err != nil {
		t.Fatal(err)
	}
	s.draft = randomTree(r, s.want[len(s.got):], r.IntN(draft+1), 0.8)
	if err := e.Propose(s.id, s.draft); err != nil {
		t.Fatal(err)
	}
	return false
}

// TestDrafts decodes many queries concurrently with drafts, few pages, small steps and
// prefix caching. Each result must equal that of the query alone.
func TestDrafts(t *testing.T) {
	t.Parallel()
	m := fake(t)
	for i, opt := range []engine.Options{
		{MaxSeqs: 1, Draft: 12},
		{MaxSeqs: 6, Draft: 5, MaxTokens: 40},
		{MaxSeqs: 6, Draft: 100, MaxTokens: 300, Prefix: true},
		{MaxSeqs: 8, Draft: 9, Pages: 7, Prefix: true},
		{MaxSeqs: 8, Draft: 9, MaxTokens: 9, MaxOutRows: 12, Pages: 9, Context: 220},
	} {
		r := rand.New(rand.NewPCG(uint64(i), 8))
		e := open(t, m, opt)
		opt = e.Options()
		shared := prompt(r, 130)
		var live []*speculator
		for added := 0; added < 40 || len(live) > 0; {
			for added < 40 && len(live) < opt.MaxSeqs && r.IntN(3) > 0 {
				p := slices.Concat(shared[:r.IntN(2)*r.IntN(len(shared))], prompt(r, 1+r.IntN(80)))
				s := &speculator{prompt: p, want: devicetest.Greedy(p, 1+r.IntN(min(120, 220-len(p)+1)), salt)}
				var err error
				if s.id, err = e.AddQuery(engine.Query{Tokens: p}); err != nil {
					t.Fatal(err)
				}
				live = append(live, s)
				added++
			}
			results, err := e.Infer(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			for _, res := range results {
				at := slices.IndexFunc(live, func(s *speculator) bool { return s.id == res.ID })
				if !res.Ready {
					continue
				}
				if s := live[at]; s.take(t, r, e, res, opt.Draft) {
					if !slices.Equal(s.got, s.want) {
						t.Fatalf("options %d: a prompt of %d tokens gave %v, expected %v", i, len(s.prompt), s.got, s.want)
					}
					live = slices.Delete(live, at, at+1)
				}
			}
		}
		stats := e.Stats()
		if stats.Used != 0 || stats.Accepted == 0 || stats.Accepted >= stats.Drafted {
			t.Errorf("options %d: %+v", i, stats)
		}
		t.Logf("options %d: %d steps, %d tokens, %d drafted, %d accepted, %d preempted", i, stats.Steps, stats.Tokens, stats.Drafted, stats.Accepted, stats.Preempted)
	}
}
