//go:build unix

package app

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
)

type benchCmd struct {
	engineFlags `embed:""`
	Prompt      int   `default:"512" placeholder:"512" help:"Tokens of each prompt; 0 leaves the test out."`
	Gen         int   `default:"128" placeholder:"128" help:"Tokens to generate in each sequence; 0 leaves the test out."`
	Batch       []int `default:"1,4,16" placeholder:"1,4,16" help:"Sequences at once."`
	Reps        int   `default:"5" placeholder:"5" help:"Repetitions of each test, after one that does not count."`
	JSON        bool  `name:"json" help:"Print one JSON document."`
}

// benchRow is one row of the verb's JSON array. A share is null where this
// build cannot measure its limit.
type benchRow struct {
	Test      string   `json:"test"`
	Batch     int      `json:"batch"`
	TokS      spread   `json:"tok_s"`
	GBS       float64  `json:"gb_s"` // weights and state read, at the median
	Bandwidth *float64 `json:"share_of_bandwidth"`
	Peak      *float64 `json:"share_of_peak"`
	Limits    limits   `json:"limits"`
	Threads   int      `json:"threads"`
	ISA       string   `json:"isa"`
}

type spread struct {
	Min    float64 `json:"min"`
	Median float64 `json:"median"`
	Max    float64 `json:"max"`
}

// Run measures prompt processing and generation at each batch size.
func (c *benchCmd) Run(ctx context.Context, m *model) error {
	rows := max(c.Prompt, c.Gen+1)
	if err := c.validate(m, rows); err != nil {
		return err
	}
	if err := m.mustBe(decoderOnly, "bench", "there is no benchmark of encoders"); err != nil {
		return err
	}
	graph, err := m.graphWith("bench", "logits")
	if err != nil {
		return err
	}
	eng, err := m.engine(ctx, &c.engineFlags, engine.Options{Graph: graph, Context: rows, MaxSeqs: slices.Max(c.Batch)})
	if err != nil {
		return err
	}
	b := &bench{m: m, eng: eng, cost: costOf(m.manifest)}
	if b.limits, err = m.measureLimits(ctx, eng.Options().Threads); err != nil {
		return err
	}
	if b.cost.weightBytes < smallWeights {
		fmt.Fprintf(m.Stderr, "note: weights of %.1f MB stay in the processor's caches; their share of memory bandwidth says little\n", b.cost.weightBytes/1e6)
	}
	var out []benchRow
	for _, batch := range c.Batch {
		for _, t := range []benchTest{{"pp", c.Prompt, (*bench).prompt}, {"tg", c.Gen, (*bench).generate}} {
			if t.n == 0 {
				continue
			}
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
	if c.JSON {
		return writeJSON(m.Stdout, out)
	}
	return nil
}

func (c *benchCmd) validate(m *model, rows int) error {
	switch {
	case c.Prompt < 0 || c.Gen < 0 || c.Prompt+c.Gen == 0:
		return wrong(fmt.Errorf("--prompt %d --gen %d: expected positive numbers", c.Prompt, c.Gen))
	case rows > m.manifest.Context:
		return wrong(fmt.Errorf("--prompt %d --gen %d: the model's context holds %d", c.Prompt, c.Gen, m.manifest.Context))
	case c.Reps < 1 || c.Reps > 1000:
		return wrong(fmt.Errorf("--reps %d: expected a number between 1 and 1000", c.Reps))
	case len(c.Batch) == 0 || slices.Min(c.Batch) < 1 || slices.Max(c.Batch) > 4096:
		return wrong(fmt.Errorf("--batch %v: expected numbers between 1 and 4096", c.Batch))
	}
	return nil
}

// smallWeights is a size that large caches hold.
const smallWeights = 64e6

// A benchTest is a kind of work: its name, its length, and how to do it once.
type benchTest struct {
	name string
	n    int
	once func(b *bench, ctx context.Context, n, batch int) (time.Duration, error)
}

// A bench is the verb's state.
type bench struct {
	m      *model
	eng    *engine.Engine
	cost   cost
	limits limits
}

// measure repeats a test and sums it up.
func (b *bench) measure(ctx context.Context, t benchTest, batch, reps int) (benchRow, error) {
	var speeds []float64
	for i := range reps + 1 {
		d, err := t.once(b, ctx, t.n, batch)
		if err != nil {
			return benchRow{}, err
		}
		if i > 0 {
			speeds = append(speeds, float64(t.n*batch)/d.Seconds())
		}
	}
	slices.Sort(speeds)
	row := benchRow{
		Test: fmt.Sprint(t.name, t.n), Batch: batch,
		TokS:   spread{speeds[0], median(speeds), speeds[len(speeds)-1]},
		Limits: b.limits, Threads: b.eng.Options().Threads, ISA: b.eng.Library().ISA,
	}
	seconds := float64(t.n*batch) / row.TokS.Median
	bytes, ops := b.cost.prompt(t.n, batch, b.eng.Options().MaxTokens)
	if t.name == "tg" {
		bytes, ops = b.cost.generate(t.n, batch)
	}
	row.GBS = bytes / seconds / 1e9
	row.Bandwidth = share(row.GBS, b.limits.ReadGBS)
	row.Peak = share(ops/seconds/1e9, b.limits.peak(b.cost.int8))
	return row, nil
}

// share is part/limit, nil when the limit is not known.
func share(part, limit float64) *float64 {
	if limit <= 0 {
		return nil
	}
	s := part / limit
	return &s
}

// median of sorted values.
func median(v []float64) float64 {
	n := len(v)
	return (v[(n-1)/2] + v[n/2]) / 2
}

// prompt processes batch prompts of n tokens.
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

// generate runs n steps of batch sequences, each from one token.
func (b *bench) generate(ctx context.Context, n, batch int) (time.Duration, error) {
	ids := b.add(batch, 1)
	defer b.removeAll(ids)
	start := time.Now()
	for i := range n {
		if _, err := b.eng.Infer(ctx); err != nil {
			return 0, err
		}
		for q, id := range ids {
			if err := b.eng.Commit(id, b.token(q, i+1)); err != nil {
				return 0, err
			}
		}
	}
	return time.Since(start), nil
}

// token is the pseudo-random token at a place of a sequence: speed does not
// depend on which, but equal tokens would be kind to the caches.
func (b *bench) token(seq, at int) int32 {
	return int32(uint64(seq*7919+at+1) * 0x9e3779b97f4a7c15 >> 33 % uint64(b.m.manifest.Vocab))
}

// add puts sequences into the engine; the context was checked before.
func (b *bench) add(batch, n int) []engine.ID {
	ids := make([]engine.ID, batch)
	for q := range ids {
		tokens := make([]int32, n)
		for i := range tokens {
			tokens[i] = b.token(q, i)
		}
		id, err := b.eng.AddQuery(engine.Query{Tokens: tokens})
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

// print writes one row of the table.
func (b *bench) print(r benchRow, head bool) {
	w := b.m.Stdout
	if head {
		fmt.Fprintf(w, "%s, %s, %d threads; this machine reads %.1f GB/s", b.m.manifest.Name, r.ISA, r.Threads, r.Limits.ReadGBS)
		if r.Limits.I8GOPS > 0 {
			fmt.Fprintf(w, ", computes %.0f GOP/s in int8, %.0f in f32", r.Limits.I8GOPS, r.Limits.F32GOPS)
		}
		fmt.Fprintf(w, "\n%-8s %6s %10s %10s %10s %8s %10s %8s\n", "test", "batch", "tok/s min", "median", "max", "GB/s", "bandwidth", "peak")
	}
	percent := func(p *float64) string {
		if p == nil {
			return "-"
		}
		return fmt.Sprintf("%.1f %%", *p*100)
	}
	fmt.Fprintf(w, "%-8s %6d %10.1f %10.1f %10.1f %8.2f %10s %8s\n", r.Test, r.Batch, r.TokS.Min, r.TokS.Median, r.TokS.Max, r.GBS, percent(r.Bandwidth), percent(r.Peak))
}
