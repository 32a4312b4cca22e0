package compiler

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
)

// hybrids are families with other states than one KV cache, each of other ops.
var hybrids = []string{"qwen3_5", "bamba", "mamba", "lfm2", "recurrent_gemma", "kimi_linear", "minimax", "rwkv7", "falcon_h1", "jamba", "sparse_shared", "deepseek_v4", "gemma3n", "gemma4", "llama4", "longcat_flash", "diffllama"}

// TestHybridRows: a row of logits has the same bits as that of its tokens alone,
// whatever the batch, the chunks of prompts, forks, shared prefixes, drafts and
// preemption.
func TestHybridRows(t *testing.T) {
	t.Parallel()
	devicetest.NeedCompiler(t)
	models := familyModels(t)
	for _, name := range irtest.Sample(t, 1, hybrids) {
		path, ok := models[name]
		if !ok {
			t.Errorf("no tiny model %s", name)
			continue
		}
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			for i, opt := range []engine.Options{
				{MaxSeqs: 4, MaxTokens: 50, Prefix: true},
				{MaxSeqs: 6, Draft: 20, MaxTokens: 100, Prefix: true, Threads: 2},
				{MaxSeqs: 8, Draft: 12, Pages: 9, Cells: 6, Threads: 3},
			} {
				p, err := generate(path, Options{Quant: []string{"f32", "q8_b32t2", "q4_b64"}[i]})
				if err != nil {
					t.Fatal(err)
				}
				defer p.Close()
				opt.MaxOutRows = 300
				hybridRows(t, loaded(t, p), opt, irtest.Seed(t)+uint64(i))
			}
		})
	}
}

func hybridRows(t *testing.T, m engine.Model, opt engine.Options, seed uint64) {
	t.Helper()
	if opt.Context = m.Manifest.Context; opt.Pages > 0 { // the longest prompt that the pages hold
		opt.Context = min(opt.Context, opt.Pages*device.PageRows)
	}
	e, err := engine.Open(m, opt)
	if err != nil {
		t.Fatal(err)
	}
	defer e.Close()
	rows := map[string][]float32{} // by tokens
	c := &devicetest.Crowd{T: t, Engine: e, Vocab: int32(min(m.Manifest.Vocab, 40))}
	var texts [][]int32
	c.Check = func(tokens []int32, row []float32) bool {
		key := fmt.Sprint(tokens)
		if old := rows[key]; old != nil {
			return slices.EqualFunc(old, row, func(a, b float32) bool { return math.Float32bits(a) == math.Float32bits(b) })
		}
		rows[key], texts = slices.Clone(row), append(texts, slices.Clone(tokens))
		return true
	}
	c.Start(rand.New(rand.NewPCG(seed, 0x68)), e.Options().Context*4/5)
	for range 120 {
		c.Round()
	}
	c.End()
	compared := map[string]bool{}
	slices.SortFunc(texts, func(a, b []int32) int { return len(b) - len(a) })
	for _, tokens := range texts {
		if compared[fmt.Sprint(tokens)] {
			continue
		}
		alone := logitsOf(t, m, engine.Options{Threads: 1}, [][]int32{tokens})[0]
		width := len(alone) / len(tokens)
		for n := range tokens {
			key := fmt.Sprint(tokens[:n+1])
			if row := rows[key]; row != nil && !compared[key] {
				compared[key] = true
				sameBits(t, fmt.Sprintf("seed %d, %+v: token %d of %d", seed, opt, n, len(tokens)), row, alone[n*width:][:width])
			}
		}
	}
	s := e.Stats()
	t.Logf("%d rows compared; %d steps, %d drafted, %d accepted, %d preempted, %d of %d prompt tokens reused", len(compared), s.Steps, s.Drafted, s.Accepted, s.Preempted, s.PromptsReused, s.Prompts)
}
