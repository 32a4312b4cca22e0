//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

type benchCmd struct {
	engineFlags         `embed:""`
	Prompt              int      `default:"512" placeholder:"512" help:"Tokens of each prompt; 0 skips the prefill test."`
	Gen                 int      `default:"128" placeholder:"128" help:"Tokens to generate per sequence; 0 skips the decode test."`
	Depth               int      `default:"0" placeholder:"0" help:"Tokens in the KV cache before decoding starts."`
	Lengths             []int    `placeholder:"16,24,32" help:"Encoders: tokens of each sentence (default: 64 sentences of 16 to 48)."`
	Batch               []int    `default:"1,4,16" placeholder:"1,4,16" help:"Batch sizes to measure."`
	PerOp               bool     `help:"Measure the time of each op of a step instead of tok/s."`
	Ablate              bool     `help:"Measure the gain of each choice instead: kernels by row count, threads, huge pages."`
	Against             []string `placeholder:"BIN" help:"Compare with other binaries in interleaved runs."`
	benchSpeculateFlags `embed:""`
	Reps                int    `default:"5" placeholder:"5" help:"Repetitions of each test, after one warm-up run."`
	Plot                string `placeholder:"FILE.svg|.png" type:"path" help:"Also plot tok/s and utilization over the batch size."`
	JSON                bool   `name:"json" help:"Print one JSON document."`
}

// benchRow is one row of the subcommand's JSON array. The fractions of bandwidth
// and roofline are medians over the repetitions, relative to the machine's bandwidth before
// and after each, or to the GPU's bandwidth; null if the limit is unknown. The roofline
// is the sum over the regions of the larger of two times: reading weights and KV cache,
// and multiplying at the peak of the region's kernel. The fraction of the peak is the time of
// all multiply-adds at the CPU's peak.
type benchRow struct {
	Test      string   `json:"test"`
	Batch     int      `json:"batch"`
	TokS      spread   `json:"tok_s"`
	SentS     *spread  `json:"sentences_s,omitempty"` // encoders only
	GBS       float64  `json:"gb_s"`                  // weights and KV cache read, at the median
	Bandwidth *float64 `json:"share_of_bandwidth"`
	Peak      *float64 `json:"share_of_peak"`
	Roofline  *float64 `json:"share_of_roofline"`
	Stages    *stages  `json:"stages,omitempty"` // pipelines only
	Limits    limits   `json:"limits"`
	Threads   int      `json:"threads"`
	ISA       string   `json:"isa"`
}

type spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Run measures prefill and decode at each batch size, or an encoder's sentences
// per second.
func (c *benchCmd) Run(ctx context.Context, m *model) error {
	if err := checkPlot(c.Plot); err != nil {
		return err
	}
	if c.Speculate {
		return c.speculate(ctx, m)
	}
	if len(c.LoRA) > 0 && (c.Ablate || len(c.Against) > 0) {
		return wrong(errors.New("--lora: --ablate and --against measure without adapters; leave it out"))
	}
	if len(c.Against) > 0 {
		return c.against(ctx, m)
	}
	shares, err := m.bin.Shares()
	if err != nil {
		return err
	}
	b := &bench{m: m, depth: c.Depth}
	tests, opt, err := c.plan(m, b)
	if err != nil {
		return err
	}
	b.cost = costOf(opt.Graph, shares)
	if b.eng, err = m.engine(ctx, &c.engineFlags, opt); err != nil {
		return err
	}
	b.cost.adapterBytes = float64(m.adapterBytes())
	if c.Ablate && c.PerOp {
		return wrong(errors.New("--ablate and --per-op: one at a time"))
	}
	if c.Ablate {
		return c.ablate(ctx, m, b, tests, opt)
	}
	if b.meter, err = m.newMeter(b.eng.Options().Threads); err != nil {
		return err
	}
	defer b.meter.close()
	if err := b.meter.peaks(ctx, m, c.ISA); err != nil {
		return err
	}
	if c.PerOp {
		return c.perOp(ctx, m, b, tests)
	}
	if b.cost.weightBytes < smallWeights && !b.eng.Device().Info().OwnMemory {
		fmt.Fprintf(m.Stderr, "note: weights of %.1f MB stay in the CPU's caches, so bandwidth utilization says little\n", b.cost.weightBytes/1e6)
	}
	return c.table(ctx, b, tests)
}

// table measures each test at each batch size and prints the results.
func (c *benchCmd) table(ctx context.Context, b *bench, tests []benchTest) error {
	var out []benchRow
	for _, batch := range c.Batch {
		for _, t := range tests {
			row, err := b.measure(ctx, t, batch, c.Reps)
			if err != nil {
				return err
			}
			out = append(out, row)
			if !c.JSON {
				b.print(row, len(out) == 1)
			}
		}
	}
	if c.Plot != "" {
		if err := benchFigure(b.m.manifest.Name, out).Write(c.Plot); err != nil {
			return err
		}
	}
	if c.JSON {
		return writeJSON(b.m.Stdout, out)
	}
	return nil
}

// plan returns the tests for this kind of model and the options of their engine.
func (c *benchCmd) plan(m *model, b *bench) ([]benchTest, engine.Options, error) {
	if m.manifest.Network == encoderOnly {
		return c.planEncoder(m, b)
	}
	rows := max(c.Prompt, c.Depth+c.Gen+2)
	opt := engine.Options{Context: rows}
	if err := c.validate(m, rows); err != nil {
		return nil, opt, err
	}
	var err error
	opt.Graph, err = m.graphWith("bench", "logits")
	opt.MaxSeqs = slices.Max(c.Batch)
	var tests []benchTest
	for _, t := range []benchTest{{"pp", c.Prompt, (*bench).prompt}, {"tg", c.Gen, (*bench).generate}} {
		if t.n > 0 {
			tests = append(tests, t)
		}
	}
	return tests, opt, err
}

func (c *benchCmd) validate(m *model, rows int) error {
	switch {
	case c.Prompt < 0 || c.Gen < 0 || c.Depth < 0 || c.Prompt+c.Gen == 0:
		return wrong(fmt.Errorf("--prompt %d --gen %d --depth %d: expected positive numbers", c.Prompt, c.Gen, c.Depth))
	case rows > m.manifest.Context:
		return wrong(fmt.Errorf("--prompt %d --gen %d --depth %d: the model's context holds %d", c.Prompt, c.Gen, c.Depth, m.manifest.Context))
	}
	return c.validateRuns()
}

// validateRuns checks the flags that all kinds of models share.
func (c *benchCmd) validateRuns() error {
	switch {
	case c.Reps < 1 || c.Reps > 1000:
		return wrong(fmt.Errorf("--reps %d: expected a number between 1 and 1000", c.Reps))
	case len(c.Batch) == 0 || slices.Min(c.Batch) < 1 || slices.Max(c.Batch) > 4096:
		return wrong(fmt.Errorf("--batch %v: expected numbers between 1 and 4096", c.Batch))
	}
	return nil
}

// smallWeights is a size of weights that fits into large caches, in bytes.
const smallWeights = 64e6

// A benchTest is a kind of work: its name, its length, and a function that does
// it once.
type benchTest struct {
	name string
	n    int
	once func(b *bench, ctx context.Context, n, batch int) (time.Duration, error)
}

// A bench is the subcommand's state.
type bench struct {
	m         *model
	eng       *engine.Engine
	cost      cost
	meter     *meter
	depth     int       // tokens in the KV cache before decoding
	sentences [][]int32 // for encoders
}

// measure repeats a test and returns its row.
func (b *bench) measure(ctx context.Context, t benchTest, batch, reps int) (benchRow, error) {
	var speeds, reads, bandwidth, roofline []float64
	var begun engine.Stats
	row := benchRow{Test: fmt.Sprint(t.name, t.n), Batch: batch, Threads: b.eng.Options().Threads, ISA: b.eng.Device().Info().Name}
	limits := b.meter.peak
	for i := range reps + 1 {
		if i == 1 {
			begun = b.eng.Stats()
		}
		before := b.meter.read()
		d, err := t.once(b, ctx, t.n, batch)
		if err != nil {
			return benchRow{}, err
		}
		if i == 0 {
			continue
		}
		limits.ReadGBS = (before + b.meter.read()) / 2
		w := b.least(t, batch, &limits)
		speeds = append(speeds, float64(b.tokens(t, batch))/d.Seconds())
		reads = append(reads, limits.ReadGBS)
		bandwidth = append(bandwidth, w.bytes/d.Seconds()/1e9/limits.ReadGBS)
		roofline = append(roofline, w.seconds/d.Seconds())
	}
	slices.Sort(speeds)
	slices.Sort(bandwidth)
	slices.Sort(roofline)
	row.TokS, row.Limits = spreadOf(speeds), b.meter.limits()
	if t.name == "enc" {
		s := row.TokS.times(float64(len(b.sentences)) / float64(b.tokens(t, batch)))
		row.SentS = &s
	}
	w := b.least(t, batch, &row.Limits)
	seconds := float64(b.tokens(t, batch)) / row.TokS.Median
	row.GBS = w.bytes / seconds / 1e9
	row.Peak = shareOf(row.Limits.arithmetic(w), seconds)
	if slices.Min(reads) > 0 {
		row.Bandwidth = new(median(bandwidth))
		if len(row.Limits.Kernels) > 0 {
			row.Roofline = new(median(roofline))
		}
	}
	row.Stages = stagesSince(begun, b.eng.Stats())
	return row, nil
}

// tokens returns the number of tokens that a test computes.
func (b *bench) tokens(t benchTest, batch int) int {
	if t.name != "enc" {
		return t.n * batch
	}
	total := 0
	for _, s := range b.sentences {
		total += len(s)
	}
	return total
}

// least returns the least work of a test.
func (b *bench) least(t benchTest, batch int, l *limits) work {
	switch t.name {
	case "tg":
		return b.cost.generate(t.n, batch, b.depth, l)
	case "enc":
		return b.cost.encode(b.sentences, batch, l)
	}
	return b.cost.prompt(t.n, batch, b.eng.Options().MaxTokens, l)
}

func spreadOf(sorted []float64) spread {
	return spread{sorted[0], median(sorted), sorted[len(sorted)-1]}
}

func (s spread) times(f float64) spread { return spread{s.Min * f, s.Median * f, s.Max * f} }

// shareOf returns least/took, or nil if the least time is unknown.
func shareOf(least, took float64) *float64 {
	if least <= 0 {
		return nil
	}
	return new(least / took)
}

// median returns the median of sorted values.
func median(v []float64) float64 {
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// prompt prefills batch prompts of n tokens.
func (b *bench) prompt(ctx context.Context, n, batch int) (time.Duration, error) {
	defer b.removeAll(b.add(batch, n))
	start := time.Now()
	for ready := 0; ready < batch; {
		results, err := b.eng.Infer(ctx)
		if err != nil {
			return 0, err
		}
		for _, r := range results {
			if r.Ready {
				ready++
			}
		}
	}
	return time.Since(start), nil
}

// generate runs n decode steps of batch sequences, each starting with one token
// or at the given depth.
func (b *bench) generate(ctx context.Context, n, batch int) (time.Duration, error) {
	ids := b.add(batch, b.depth+1)
	defer b.removeAll(ids)
	if err := b.fill(ctx, ids); err != nil {
		return 0, err
	}
	index, given := map[engine.ID]int{}, make([]int, batch)
	for q, id := range ids {
		index[id] = q
	}
	start := time.Now()
	for left := n * batch; left > 0; {
		results, err := b.eng.Infer(ctx) // of some sequences, on a pipeline
		if err != nil {
			return 0, err
		}
		for _, r := range results {
			q := index[r.ID]
			given[q]++
			left--
			if given[q] == n {
				continue
			}
			if err := b.eng.Commit(r.ID, b.token(q, b.depth+given[q])); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start), nil
}

// fill computes the tokens in each sequence's KV cache before decoding, except
// the last.
func (b *bench) fill(ctx context.Context, ids []engine.ID) error {
	if b.depth == 0 {
		return nil
	}
	for ready := 0; ready < len(ids); {
		results, err := b.eng.Infer(ctx)
		if err != nil {
			return err
		}
		for _, r := range results {
			if r.Ready {
				ready++
			}
		}
	}
	for q, id := range ids {
		if err := b.eng.Commit(id, b.token(q, b.depth)); err != nil {
			return err
		}
	}
	return nil
}

// token returns a pseudo-random token for a position of a sequence. Speed does
// not depend on the tokens, but equal ones would favor the caches.
func (b *bench) token(seq, at int) int32 {
	return int32(uint64(seq*7919+at+1) * 0x9e3779b97f4a7c15 >> 33 % uint64(b.m.manifest.Vocab))
}

// add adds sequences to the engine; the context was checked before.
func (b *bench) add(batch, n int) []engine.ID {
	ids := make([]engine.ID, batch)
	for q := range ids {
		tokens := make([]int32, n)
		for i := range tokens {
			tokens[i] = b.token(q, i)
		}
		id, err := b.eng.AddQuery(engine.Query{Tokens: tokens, TopK: 1, Choice: decode.Greedy})
		if err != nil {
			panic(fmt.Sprintf("bug: %v", err))
		}
		ids[q] = id
	}
	return ids
}

func (b *bench) removeAll(ids []engine.ID) {
	for _, id := range ids {
		b.eng.Remove(id)
	}
}
