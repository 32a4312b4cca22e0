package compiler

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// A watchedDevice counts the rows of outputs that steps copy to the host.
type watchedDevice struct {
	device.Device
	graphs []manifest.Graph
	copied map[string]int // by output
}

func (d *watchedDevice) Start(cfg *device.Config) (device.Context, error) {
	ctx, err := d.Device.Start(cfg)
	return &watchedContext{ctx, d}, err
}

type watchedContext struct {
	device.Context
	d *watchedDevice
}

// Submit fills the outputs, and the rows that the graph reads in the device's memory,
// with numbers that no step computes.
func (c *watchedContext) Submit(s *device.Step) func() error {
	const never = -1e30
	g := c.d.graphs[s.Graph]
	for i, out := range s.Out {
		if i >= g.At || s.InPlace {
			for j := range out {
				out[j] = never
			}
		}
	}
	wait := c.Context.Submit(s)
	return func() error {
		err := wait()
		for i, o := range g.Outputs {
			out := s.Out[g.At+i]
			for at := 0; at < len(out); at += o.Cols {
				if out[at] != never {
					c.d.copied[o.Name]++
				}
			}
		}
		return err
	}
}

// TestEmulatedBest: the GPU finds the argmax, or the largest, of logits that several
// blocks read, of equal ones the first, and of none beyond the vocabulary; they are
// unknown if a logit is not finite.
func TestEmulatedBest(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	const vocab, hidden = 20001, 16 // three blocks; the last panel is not full
	rng := rand.New(rand.NewPCG(1, 2))
	random := func(int, int) float32 { return float32(rng.NormFloat64()) }
	with := func(at int, x float64) func(int, int) float32 {
		return func(row, col int) float32 {
			if row == at && col == 0 {
				return float32(x)
			}
			return random(row, col)
		}
	}
	type weights struct {
		name   string
		weight func(row, col int) float32
		known  bool
	}
	for _, c := range irtest.SampleBy(t, 2, []weights{
		{"random", random, true},
		{"repeated", func(row, col int) float32 { return float32((row%7*31+col*17)%13) - 6 }, true},
		{"positive", func(int, int) float32 { return 1 }, true},
		{"negative", func(int, int) float32 { return -1 }, true},
		{"NaN", with(15000, math.NaN()), false},
		{"infinite", with(20000, math.Inf(1)), false},
	}, func(w weights) string { return w.name }) {
		t.Run(c.name, func(t *testing.T) {
			p, err := generate(oneLayer(t, hidden, vocab, c.weight), Options{Quant: "f32", Target: "cuda-emu"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			e, err := engine.Open(emulatedModel(t, p), engine.Options{MaxSeqs: 5, MaxOutRows: 10, Context: 64, MaxTokens: 15, Threads: 1})
			if err != nil {
				t.Fatal(err)
			}
			defer e.Close()
			topK := []int{1, 20, manifest.TopLogits, 0, manifest.TopLogits + 1} // the last two: whole rows
			for _, k := range topK {
				if _, err := e.AddQuery(engine.Query{Tokens: []int32{1, 5, 9}, Last: 2, TopK: k}); err != nil {
					t.Fatal(err)
				}
			}
			results, err := e.Infer(t.Context())
			if err != nil || len(results) != len(topK) {
				t.Fatal(results, err)
			}
			for i, r := range results {
				want := largestOf(r.Row(0, 1), topK[i]%(manifest.TopLogits+1))
				if !c.known {
					want = nil
				}
				if got := r.AppendTop(nil, -1, vocab); !slices.Equal(got, want) {
					t.Errorf("the %d largest: %v, want %v", topK[i], got, want)
				}
			}
		})
	}
}

// largestOf sorts the k largest of a row, or one.
func largestOf(row []float32, k int) (list []decode.TokenLogit) {
	for id, v := range row {
		list = append(list, decode.TokenLogit{ID: int32(id), Logit: v})
	}
	slices.SortStableFunc(list, func(a, b decode.TokenLogit) int { return cmp.Compare(b.Logit, a.Logit) })
	return list[:min(len(list), max(k, 1))]
}

// TestEmulatedRows: greedy and sampled sequences with trees of drafts, together in steps,
// continue as if all rows were copied; rows are copied only where the GPU does not find
// what they are sampled from. Forks continue their copied pages.
func TestEmulatedRows(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	p, err := generate("../../spec/testdata/families/qwen2", Options{Quant: "f32", KV: "f16", Target: "cuda-emu"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := emulatedModel(t, p)
	samplers := func() (list []*decode.Sampler) {
		for i := range 4 {
			set := decode.Settings{}
			switch i {
			case 1:
				set.Options = decode.Options{Temperature: 0.8, TopK: 20, Seed: 7}
			case 2:
				set.Options = decode.Options{Temperature: 0.8, TopP: 0.9, Seed: 8}
			}
			s, err := decode.NewSampler(set, -1)
			if err != nil {
				t.Fatal(err)
			}
			list = append(list, s)
		}
		return list
	}
	want, _ := treesOf(t, m, samplers(), nil)
	watch := &watchedDevice{Device: m.Device, graphs: m.Manifest.Graphs, copied: map[string]int{}}
	m.Device = watch
	got, sampled := treesOf(t, m, samplers(), want)
	for i := range got {
		if n := min(len(got[i]), len(want[i])); !slices.Equal(got[i][:n], want[i][:n]) {
			t.Errorf("%v, want %v", got[i], want[i])
		}
	}
	if watch.copied["logits"] != sampled {
		t.Errorf("%d rows of logits were copied; the sequence that needs them has %d", watch.copied["logits"], sampled)
	}
}

// treesOf continues a few sequences, the last one from a fork of the first. If follow is
// not nil, it drafts trees along these texts, and lets the engine leave rows of greedy
// sequences behind. sampled is the number of rows of the other sequences.
func treesOf(t *testing.T, m engine.Model, samplers []*decode.Sampler, follow [][]int32) (texts [][]int32, sampled int) {
	t.Helper()
	e, err := engine.Open(m, engine.Options{MaxSeqs: len(samplers), MaxOutRows: 64, MaxTokens: 64, Context: 64, Threads: 1, Draft: 10})
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	vocab, index, steps, accepted := m.Manifest.Vocab, map[engine.ID]int{}, 24, 0
	if follow != nil {
		steps = 6
	}
	for i, s := range samplers[:3] {
		texts = append(texts, prompt(5+i, i))
		for j := range texts[i] {
			texts[i][j] %= int32(vocab)
		}
		index[addSampled(t, e, texts[i], s, follow != nil)] = i
	}
	for range steps {
		results, err := e.Infer(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		for _, r := range slices.Clone(results) {
			i := index[r.ID]
			if samplers[i].TopK() == 0 {
				sampled += r.Rows + r.Drafted
			}
			if i == 0 && len(texts) == 3 {
				index[forkWith(t, e, r.ID, 17)] = 3
				texts = append(texts, append(slices.Clone(texts[0]), 17))
			}
			path, err := r.Walk(nil, func(node int, drafted int32, from []decode.TokenProb) (int32, bool, error) {
				token, err := samplers[i].JudgeRow(r.RowOf(0, node, vocab, nil), texts[i], drafted, from)
				texts[i] = append(texts[i], token)
				return token, true, err
			})
			if err != nil {
				t.Fatal(err)
			}
			accepted += len(path)
			if err := e.Advance(r.ID, path, texts[i][len(texts[i])-1]); err != nil {
				t.Fatal(err)
			}
			if follow == nil {
				continue
			}
			if err := e.Propose(r.ID, besideTexts(follow[i][min(len(texts[i]), len(follow[i])):])); err != nil {
				t.Fatal(err)
			}
		}
	}
	if follow != nil && accepted < 3*len(texts) {
		t.Errorf("%d drafted tokens were accepted", accepted)
	}
	return texts, sampled
}

// addSampled adds a query, which may leave rows behind if its sampler needs few logits.
func addSampled(t *testing.T, e *engine.Engine, tokens []int32, s *decode.Sampler, leave bool) engine.ID {
	t.Helper()
	q := engine.Query{Tokens: tokens}
	if leave {
		q.TopK = s.TopK()
	}
	id, err := e.AddQuery(q)
	if err != nil {
		t.Fatal(err)
	}
	return id
}

// forkWith forks a sequence and commits a token to the fork.
func forkWith(t *testing.T, e *engine.Engine, id engine.ID, token int32) engine.ID {
	t.Helper()
	fork, err := e.Fork(id)
	if err == nil {
		err = e.Commit(fork, token)
	}
	if err != nil {
		t.Fatal(err)
	}
	return fork
}

// besideTexts is a tree of a text's next tokens with a wrong token before each. The rows
// of accepted tokens move to places from which others move.
func besideTexts(next []int32) (tree speculate.Tree) {
	parent := int32(-1)
	for _, token := range next[:min(4, len(next))] {
		tree.Tokens, tree.Parent = append(tree.Tokens, token^1, token), append(tree.Parent, parent, parent)
		parent = int32(len(tree.Tokens) - 1)
	}
	return tree
}
