//go:build unix

package ranks_test

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
	"github.com/iflowc/iflowc/runtime/device/ranks"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// query is the input and the result of one sequence.
type query struct {
	prompt, got []int32
	n           int
	set         decode.Settings
	reads       bool    // the device is not told how tokens are chosen
	guess       []int32 // drafted in trees, unless nil; see tree

	pick *decode.Sampler
	rows int // output rows of its results
}

func queries(seed uint64, n int) (list []*query) {
	r := rand.New(rand.NewPCG(seed, 7))
	for range n {
		q := &query{n: 1 + r.IntN(20)}
		for range 1 + r.IntN(150) {
			q.prompt = append(q.prompt, r.Int32N(57))
		}
		list = append(list, q)
	}
	return list
}

// tree returns a draft of a token that is wrong, and of the next tokens of the guess, some of
// which may be.
func (q *query) tree() (t speculate.Tree) {
	rest := q.guess[min(len(q.got), len(q.guess)):]
	if len(rest) == 0 {
		return t
	}
	t = speculate.Tree{Tokens: []int32{(rest[0] + 1) % vocab}, Parent: []int32{-1}}
	for i, token := range rest[:min(5, len(rest))] {
		t.Tokens, t.Parent = append(t.Tokens, token), append(t.Parent, int32(i))
	}
	t.Parent[1] = -1
	return t
}

// take adds the tokens of a result and continues the query or ends it.
func (q *query) take(eng *engine.Engine, r engine.Result) (ended bool, err error) {
	q.rows += r.Rows + r.Drafted
	path, err := r.Walk(nil, func(node int, _ int32, _ []decode.TokenProb) (int32, bool, error) {
		token, err := q.pick.JudgeRow(r.RowOf(0, node, vocab, nil), nil, -1, nil)
		q.got = append(q.got, token)
		return token, len(q.got) < q.n, err
	})
	if err != nil {
		return true, err
	}
	if len(q.got) == q.n {
		eng.Remove(r.ID)
		return true, nil
	}
	if err := eng.Advance(r.ID, path, q.got[len(q.got)-1]); err != nil || q.guess == nil {
		return false, err
	}
	return false, eng.Propose(r.ID, q.tree())
}

// generate continues all queries through the engine.
func generate(eng *engine.Engine, list []*query) error {
	of := map[engine.ID]*query{}
	for _, q := range list {
		var err error
		if q.pick, err = decode.NewSampler(q.set, 0); err != nil {
			return err
		}
		ask := engine.Query{Tokens: q.prompt}
		if !q.reads {
			ask.Choice = q.pick.Choice
		}
		id, err := eng.AddQuery(ask)
		if err != nil {
			return err
		}
		of[id] = q
	}
	for len(of) > 0 {
		results, err := eng.Infer(context.Background())
		if err != nil {
			return err
		}
		for _, r := range results {
			if !r.Ready {
				continue
			}
			ended, err := of[r.ID].take(eng, r)
			if err != nil {
				return err
			}
			if ended {
				delete(of, r.ID)
			}
		}
	}
	return nil
}

// open starts an engine on a group.
func open(p *program, d device.Device, opt engine.Options) (*engine.Engine, error) {
	return engine.Open(engine.Model{Manifest: p.manifest, Device: d}, opt)
}

// TestThreads checks for every partition that ranks in threads compute the expected
// tokens, and that the steps of a pipeline overlap.
func TestThreads(t *testing.T) {
	t.Parallel()
	lib := library(t)
	for i, groups := range [][]int{{1, 1}, {2}, {2, 2}, {3}, {1, 1, 1, 1}, {4, 4}} {
		p := newProgram(t, lib, groups...)
		e, err := ranks.Threads(p, ranks.Settings{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		eng, err := open(p, e, engine.Options{Threads: 2, MaxSeqs: 5, MaxTokens: 64})
		if err != nil {
			t.Fatal(err)
		}
		list := queries(uint64(i), 5)
		if err := generate(eng, list); err != nil {
			t.Fatal(err)
		}
		check(t, p, list)
		tokens := int64(0)
		for _, q := range list {
			tokens += int64(len(q.prompt) + q.n - 1)
		}
		for r, c := range e.Counts() {
			sent := 4 * tokens
			if p.manifest.Partition.Ranks[r].Stage == len(groups)-1 {
				sent = 0
			}
			if c.Exchanged != 4*tokens || c.Sent != sent {
				t.Errorf("%v rank %d: exchanged %d bytes, sent %d; expected %d, %d", groups, r, c.Exchanged, c.Sent, 4*tokens, sent)
			}
		}
		eng.Close()
	}
}

// TestThreadsCells checks that cells, copies of cells and moves in cells reach all ranks:
// these compare the states in cells with those that they compute from the pages.
func TestThreadsCells(t *testing.T) {
	t.Parallel()
	lib := library(t)
	for i, groups := range [][]int{{1, 1}, {2}, {2, 2}} {
		p := newProgram(t, lib, groups...).withCells()
		e, err := ranks.Threads(p, ranks.Settings{Timeout: time.Minute})
		if err != nil {
			t.Fatal(err)
		}
		eng, err := open(p, e, engine.Options{Threads: 2, MaxSeqs: 5, MaxTokens: 64, Draft: 9})
		if err != nil {
			t.Fatal(err)
		}
		list := queries(uint64(i), 4)
		if err := generate(eng, list); err != nil {
			t.Fatal(err)
		}
		check(t, p, list)
		branch(t, p, eng)
		eng.Close()
	}
}

// branch accepts a path of a draft tree that is not a prefix of its rows, and forks the
// sequence then.
func branch(t *testing.T, p *program, eng *engine.Engine) {
	t.Helper()
	prompt := queries(9, 1)[0].prompt
	must := func(err error) {
		if t.Helper(); err != nil {
			t.Fatal(err)
		}
	}
	id, err := eng.AddQuery(engine.Query{Tokens: prompt})
	must(err)
	row := func() (r engine.Result) {
		for !r.Ready {
			results, err := eng.Infer(t.Context())
			must(err)
			r = results[len(results)-1]
		}
		return r
	}
	row()
	must(eng.Commit(id, 3))
	must(eng.Propose(id, speculate.Tree{Tokens: []int32{4, 5, 6, 7}, Parent: []int32{-1, -1, 1, 2}}))
	if r := row(); r.Drafted != 4 {
		t.Fatalf("%d nodes", r.Drafted)
	}
	must(eng.Accept(id, []int{1, 2, 3}))
	fork, err := eng.Fork(id)
	must(err)
	eng.Remove(id)
	must(eng.Commit(fork, 8))
	want := p.logits(append(slices.Clone(prompt), 3, 5, 6, 7, 8))
	if r := row(); !slices.Equal(r.Row(0, 0), want) {
		t.Errorf("%s: other logits after a draft and a fork", p.manifest.Partition.Devices)
	}
}

func check(t *testing.T, p *program, list []*query) {
	t.Helper()
	if err := compare(p, list); err != nil {
		t.Error(err)
	}
}

// compare checks the results of queries against the expected tokens.
func compare(p *program, list []*query) error {
	for _, q := range list {
		want, err := p.continuation(q)
		if err != nil {
			return err
		}
		if !slices.Equal(q.got, want) {
			return fmt.Errorf("%s: %v, expected %v", p.manifest.Partition.Devices, q.got, want)
		}
	}
	return nil
}

// TestSilentThread checks that a hanging rank is identified and that the others end.
func TestSilentThread(t *testing.T) {
	t.Parallel()
	for _, groups := range [][]int{{2}, {1, 1, 1}} {
		p := newProgram(t, library(t), groups...)
		p.fault, p.how = 1, 2
		e, err := ranks.Threads(p, ranks.Settings{Timeout: 200 * time.Millisecond})
		if err != nil {
			t.Fatal(err)
		}
		eng, err := open(p, e, engine.Options{Threads: 1})
		if err != nil {
			t.Fatal(err)
		}
		failed := make(chan error, 1)
		go func() { failed <- generate(eng, []*query{{prompt: []int32{57}, n: 1}}) }()
		t.Cleanup(func() { _ = eng }) // keeps the engine alive: the hanging rank sleeps until the process ends
		select {
		case <-e.Broken():
		case <-time.After(30 * time.Second):
			t.Fatal("the hanging rank was not detected")
		}
		var lost *comm.RankError
		if !errors.As(e.Why(), &lost) || lost.Rank != 1 {
			t.Errorf("%v: %v, expected an error about rank 1", groups, e.Why())
		}
	}
}

// TestOtherWeights checks that weights made from different files are refused.
func TestOtherWeights(t *testing.T) {
	t.Parallel()
	p := newProgram(t, library(t), 2)
	p.source[1] = "others"
	e, err := ranks.Threads(p, ranks.Settings{})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := open(p, e, engine.Options{Threads: 1}); err == nil || !strings.Contains(err.Error(), "rank 1: its weights") {
		t.Errorf("%v", err)
	}
}
