//go:build unix

package engine_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/engine"
)

func fakeEncoder(t testing.TB) engine.Model {
	m := fake(t)
	m.Manifest = devicetest.Encoder()
	return m
}

func fakeTranslator(t testing.TB) engine.Model {
	m := fake(t)
	m.Manifest = devicetest.EncoderDecoder()
	return m
}

// TestEncoder runs several texts in one step and splits none.
func TestEncoder(t *testing.T) {
	t.Parallel()
	e := open(t, fakeEncoder(t), engine.Options{Context: 100, MaxSeqs: 3, MaxTokens: 100, MaxOutRows: 80})
	r := rand.New(rand.NewPCG(4, 4))
	texts := map[engine.ID][]int32{}
	types := make([]int32, 70)
	types[69] = 1
	var first engine.ID
	for i, q := range []engine.Query{{Tokens: prompt(r, 70), Last: -1, Types: types}, {Tokens: prompt(r, 40), Rows: []int{0}}, {Tokens: prompt(r, 30), Last: 2}} {
		id, err := e.AddQuery(q)
		if err != nil {
			t.Fatal(err)
		}
		if texts[id] = q.Tokens; i == 0 {
			first = id
		}
	}
	steps := 0
	for len(texts) > 0 {
		results, err := e.Infer(t.Context())
		if err != nil || len(results) == 0 {
			t.Fatal(results, err)
		}
		steps++
		for _, res := range results {
			text := texts[res.ID]
			var ty []int32
			at := []int{0}
			switch len(text) {
			case 70:
				ty, at = types, make([]int, 70)
				for i := range at {
					at[i] = i
				}
			case 30:
				at = []int{28, 29}
			}
			if !res.Ready || res.Tokens() != len(text) || res.Rows != len(at) {
				t.Fatalf("%d tokens of %d, %d rows of %d", res.Tokens(), len(text), res.Rows, len(at))
			}
			for i := range text {
				if h := res.Row(0, i); h[0] != float32(text[i]) || h[3] != devicetest.Encode(text, ty, salt) {
					t.Fatalf("hidden row %d: %v", i, h)
				}
			}
			for i, a := range at {
				if !slices.Equal(res.Row(1, i), devicetest.Masked(text, ty, a, salt)) {
					t.Errorf("logits of token %d differ", a)
				}
				if ty == nil && !slices.Equal(res.Row(2, i), devicetest.Classes(text, a, salt)) {
					t.Errorf("classes of token %d differ", a)
				}
			}
			e.Remove(res.ID)
			delete(texts, res.ID)
		}
	}
	if steps != 2 {
		t.Errorf("%d steps for 70 + 40 + 30 tokens with 100 a step, expected 2 (the first with %d)", steps, first)
	}
}

func TestEncoderErrors(t *testing.T) {
	t.Parallel()
	e := open(t, fakeEncoder(t), engine.Options{MaxTokens: 50, MaxOutRows: 10})
	for want, q := range map[string]engine.Query{
		"at most 50":         {Tokens: make([]int32, 51)},
		"at most 10":         {Tokens: make([]int32, 20), Last: 11},
		"bug: output row 20": {Tokens: make([]int32, 20), Rows: []int{20}},
		"token types":        {Tokens: make([]int32, 20), Types: make([]int32, 19)},
		"not an encoder-d":   {Tokens: make([]int32, 20), Source: make([]int32, 19)},
	} {
		if _, err := e.AddQuery(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
	e = open(t, fakeTranslator(t), engine.Options{MaxTokens: 50})
	for want, q := range map[string]engine.Query{
		"source has no tokens":      {Tokens: []int32{1}},
		"source has 51 tokens":      {Tokens: []int32{1}, Source: make([]int32, 51)},
		"3 token types for 1 token": {Tokens: []int32{1}, Source: make([]int32, 5), Types: make([]int32, 3)},
	} {
		if _, err := e.AddQuery(q); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q", err, want)
		}
	}
}

// TestTranslations is TestRandomArrivals with sources, forks and few pages. Each query
// continues greedily; a fork starts with a different token.
func TestTranslations(t *testing.T) {
	t.Parallel()
	m := fakeTranslator(t)
	for seed := range uint64(16) {
		r := rand.New(rand.NewPCG(seed, 78))
		opt := engine.Options{MaxTokens: 130 + r.IntN(100), MaxSeqs: 2 + r.IntN(5), MaxOutRows: 1 + r.IntN(4), Pages: 7 + r.IntN(8), Context: 200}
		e := open(t, m, opt)
		type query struct {
			source, tokens []int32
			n              int
		}
		live, finished := map[engine.ID]*query{}, 0
		for finished < 15 {
			for r.IntN(3) > 0 {
				q := &query{source: prompt(r, 1+r.IntN(120)), tokens: prompt(r, 1+r.IntN(100)), n: 1 + r.IntN(60)}
				id, err := e.AddQuery(engine.Query{Tokens: q.tokens, Source: q.source})
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
				if res.Rows != 1 || !slices.Equal(res.Row(0, 0), devicetest.Translated(q.source, q.tokens, salt)) {
					t.Fatalf("seed %d, %+v: the row after %d tokens differs", seed, opt, len(q.tokens))
				}
				if q.n--; q.n == 0 {
					e.Remove(res.ID)
					delete(live, res.ID)
					finished++
					continue
				}
				if r.IntN(8) == 0 {
					if id, err := e.Fork(res.ID); err == nil {
						token := 8 + r.Int32N(50)
						live[id] = &query{q.source, append(slices.Clone(q.tokens), token), q.n}
						if err := e.Commit(id, token); err != nil {
							t.Fatal(err)
						}
					} else if !errors.Is(err, engine.ErrBusy) {
						t.Fatal(err)
					}
				}
				token := argmax(res.Row(0, 0))
				q.tokens = append(slices.Clone(q.tokens), token)
				if err := e.Commit(res.ID, token); err != nil {
					t.Fatal(err)
				}
			}
		}
	}
}

// TestForkShares forks a sequence into all slots, with only enough pages for copies of
// the last page.
func TestForkShares(t *testing.T) {
	t.Parallel()
	e := open(t, fakeTranslator(t), engine.Options{MaxSeqs: 4, Context: 200, Pages: 1 + 3 + 3})
	r := rand.New(rand.NewPCG(9, 9))
	source, text := prompt(r, 20), prompt(r, 150)
	id, err := e.AddQuery(engine.Query{Tokens: text, Source: source})
	if err != nil {
		t.Fatal(err)
	}
	if _, err := e.Infer(t.Context()); err != nil {
		t.Fatal(err)
	}
	ids := []engine.ID{id}
	for range 3 {
		f, err := e.Fork(id)
		if err != nil {
			t.Fatal(err)
		}
		ids = append(ids, f)
	}
	for i, id := range ids {
		if err := e.Commit(id, int32(10+i)); err != nil {
			t.Fatal(err)
		}
	}
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != 4 {
		t.Fatalf("%d results, %v; expected all four in one step", len(results), err)
	}
	for i, res := range results {
		if !slices.Equal(res.Row(0, 0), devicetest.Translated(source, append(slices.Clone(text), int32(10+i)), salt)) {
			t.Errorf("fork %d differs", i)
		}
		e.Remove(res.ID)
	}
	if _, err := e.AddQuery(engine.Query{Tokens: prompt(r, 192), Source: prompt(r, 200)}); err != nil {
		t.Errorf("the pages did not come back: %v", err)
	}
	if _, err := e.Infer(t.Context()); err != nil {
		t.Error(err)
	}
}
