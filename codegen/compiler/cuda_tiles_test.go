package compiler

import (
	"math"
	"math/rand/v2"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen"
	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
	"github.com/iflowc/iflowc/templates"
)

// tiledModels have each something that attention knows: grouped heads and a
// window, a softcap, ALiBi, sinks, one KV head, heads of 16, several pages and
// whole blocks of bytes.
var tiledModels = []struct{ spec, kv string }{
	{"../../spec/testdata/families/qwen2", "f16"}, {"../../spec/testdata/families/gemma2", "bf16"}, {"../../spec/testdata/families/bloom", "f16"},
	{"../../spec/testdata/families/gpt_oss", "f16"}, {"../../spec/testdata/families/gpt_bigcode", "bf16"},
	{"../../spec/testdata/families/llama_yarn", "f16"}, {"../../models/demo.yaml", "f16"}, {"../../models/demo.yaml", "q8_b32t2"},
	{"../../models/demo.yaml", "q4"},
}

// TestEmulatedTiles: attention on tensor cores gives under emulation what the
// interpreter gives over the same rounded keys and values: for a few
// tokens at a time and for a tile and more of them.
func TestEmulatedTiles(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, c := range irtest.Sample(t, 1, tiledModels) {
		t.Run(filepath.Base(c.spec)+"-"+c.kv, func(t *testing.T) {
			t.Parallel()
			likeModule(t, c.spec, Options{Quant: "f32", KV: c.kv})
		})
	}
}

// likeModule compares what the emulation gives for the last token with the
// interpreter, in steps of several sizes.
func likeModule(t *testing.T, spec string, opt Options) {
	t.Helper()
	opt.Target = "cuda-emu"
	p, err := generate(spec, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	tiles := 0
	for _, u := range p.whole.CUDA.Units {
		tiles += strings.Count(u.Source, "ifl_tile<")
	}
	if tiles == 0 {
		t.Fatal("no attention on tensor cores")
	}
	ids := prompt(min(p.Context, 64+9), 7) // a tile and some rows of another
	for _, l := range p.whole.CUDA.Plan.Lookups {
		for i := range ids {
			if l.Input == "id" {
				ids[i] %= int32(l.Below)
			}
		}
	}
	want := lastLogits(t, p, ids)
	m := emulatedModel(t, p)
	for _, budget := range []int{7, len(ids)} {
		got := lastRow(t, m, ids, engine.Options{MaxTokens: budget, Context: len(ids), Threads: 1})
		worst, largest := 0.0, 0.0
		for i, w := range want {
			worst, largest = math.Max(worst, math.Abs(float64(got[i])-w)), math.Max(largest, math.Abs(w))
		}
		t.Logf("%d tokens a step: %.2e of %.2e", budget, worst, largest)
		limit := 1e-3 * largest
		switch opt.KV { // numbers that round the other way to eight bits, or to four
		case "q8_b32t2":
			limit *= 20
		case "q4":
			limit *= 40
		}
		if !(worst <= limit) {
			t.Errorf("%d tokens a step: logits differ by %.2e from the interpreter, want at most %.2e", budget, worst, limit)
		}
	}
}

// TestUnifiedSoftmax: weights relative to a constant give what weights relative
// to the largest score give, whatever the scores: far above the constant, far
// below, and on all sides of what its numbers hold.
func TestUnifiedSoftmax(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	for _, kv := range irtest.Sample(t, 1, []string{"f16", "bf16"}) {
		t.Run(kv, func(t *testing.T) {
			t.Parallel()
			p, err := generate("../../spec/testdata/families/qwen2", Options{Quant: "f32", KV: kv, Target: "cuda-emu"})
			if err != nil {
				t.Fatal(err)
			}
			defer p.Close()
			for op := range p.Module.Graphs[0].All() {
				if op.Def.Name == "attention" {
					op.SetAttr("scale", 30.0) // scores in the hundreds
				}
			}
			ids := prompt(40, 9)
			for i := range ids {
				ids[i] %= 32
			}
			safe := attended(t, p, nil, ids)
			largest := 0.0
			for _, x := range safe {
				largest = math.Max(largest, math.Abs(float64(x)))
			}
			for _, middle := range irtest.Sample(t, 1, []float64{-300, 0, 300}) {
				for i, x := range attended(t, p, &codegen.ScoreRange{Lo: middle, Hi: middle, Always: true}, ids) {
					if d := math.Abs(float64(x - safe[i])); !(d <= 1e-4*largest) {
						t.Fatalf("scores around %v: logit %d is %v, expected %v", middle, i, x, safe[i])
					}
				}
			}
		})
	}
}

// attended are the logits of every token, read five at a time.
func attended(t *testing.T, p *Program, scores *codegen.ScoreRange, ids []int32) []float32 {
	t.Helper()
	cat, err := templates.LoadCUDA()
	if err != nil {
		t.Fatal(err)
	}
	if p.whole.CUDA, err = codegen.CUDA(p.Module, cat, p.Context, scores); err != nil {
		t.Fatal(err)
	}
	return allRows(t, emulatedModel(t, p), ids, engine.Options{MaxTokens: 5, MaxOutRows: 5, Context: 64, Threads: 1})
}

// TestEmulatedTrees: the nodes of trees, of two sequences in a step beside a
// third without, get the logits that their paths get token by token.
func TestEmulatedTrees(t *testing.T) {
	t.Parallel()
	devicetest.NeedEmulation(t)
	p, err := generate("../../spec/testdata/families/qwen2", Options{Quant: "f32", KV: "f16", Target: "cuda-emu"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := emulatedModel(t, p)
	opt := engine.Options{MaxTokens: 128, MaxOutRows: 128, MaxSeqs: 3, Context: 64, Threads: 1, Draft: 24}
	e, err := engine.Open(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	read, trees := drafting(t, e)
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != len(read) {
		t.Fatal(len(results), err)
	}
	for _, res := range results {
		tree := trees[res.ID]
		if res.Drafted != tree.Len() {
			t.Fatalf("%d nodes computed, expected %d", res.Drafted, tree.Len())
		}
		for _, n := range irtest.Sample(t, 3, nodesOf(tree)) {
			path := read[res.ID]
			got := res.Row(0, 0)
			if n >= 0 {
				got = res.Node(0, n)
				path = append(path[:len(path):len(path)], pathTo(tree, n)...)
			}
			want := lastRow(t, m, path, engine.Options{MaxTokens: 64, Context: 64, Threads: 1})
			for i, w := range want {
				if d := math.Abs(float64(got[i] - w)); !(d <= 2e-3) {
					t.Fatalf("node %d of a tree of %d: logit %d is %v, expected %v", n, tree.Len(), i, got[i], w)
				}
			}
		}
	}
}

// nodesOf are the numbers of a tree's nodes, with -1 for the token that it hangs on.
func nodesOf(tree speculate.Tree) []int {
	nodes := []int{-1}
	for n := range tree.Len() {
		nodes = append(nodes, n)
	}
	return nodes
}

// drafting lets three sequences read their prompts and proposes trees to two of
// them; it gives the sequences' tokens.
func drafting(t *testing.T, e *engine.Engine) (read map[engine.ID][]int32, trees map[engine.ID]speculate.Tree) {
	t.Helper()
	r := rand.New(rand.NewPCG(11, 12))
	read, trees = map[engine.ID][]int32{}, map[engine.ID]speculate.Tree{}
	for i := range 3 {
		ids := make([]int32, 20+3*i)
		for j := range ids {
			ids[j] = r.Int32N(32)
		}
		id, err := e.AddQuery(engine.Query{Tokens: ids})
		if err != nil {
			t.Fatal(err)
		}
		read[id] = ids
	}
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != len(read) {
		t.Fatal(len(results), err)
	}
	for i, res := range results {
		if err := e.Commit(res.ID, 5); err != nil {
			t.Fatal(err)
		}
		read[res.ID] = append(read[res.ID], 5)
		if i == 2 {
			continue
		}
		trees[res.ID] = bushy(r, 24)
		if err := e.Propose(res.ID, trees[res.ID]); err != nil {
			t.Fatal(err)
		}
	}
	return read, trees
}

// bushy is a tree of n nodes with parents at random.
func bushy(r *rand.Rand, n int) (t speculate.Tree) {
	for len(t.Tokens) < n {
		parent, token := r.IntN(len(t.Tokens)+1)-1, r.Int32N(32)
		if t.Child(parent, token) < 0 {
			t.Tokens, t.Parent = append(t.Tokens, token), append(t.Parent, int32(parent))
		}
	}
	return t
}

// pathTo are the tokens of a node's ancestors and its own.
func pathTo(t speculate.Tree, n int) (path []int32) {
	for ; n >= 0; n = int(t.Parent[n]) {
		path = slices.Insert(path, 0, t.Tokens[n])
	}
	return path
}
