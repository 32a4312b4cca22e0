//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// benchSpeculateFlags are the flags of bench --speculate.
type benchSpeculateFlags struct {
	Speculate bool   `help:"Measure speculative decoding instead: step times by tokens, and each method on texts."`
	Draft     string `placeholder:"BIN" type:"path" help:"With --speculate: compiled draft model."`
	Tokens    int    `name:"draft-tokens" placeholder:"K" help:"With --speculate: maximum draft tokens (default: 15)."`
	Text      string `placeholder:"FILE" type:"path" help:"With --speculate: another prompt to measure, besides the two built-in ones."`
}

// A verifyTime is the time of a step that computes a sequence's last token and
// draft tokens.
type verifyTime struct {
	Tokens int     `json:"tokens"`
	MS     float64 `json:"ms"`
	Ratio  float64 `json:"ratio"`      // relative to a step of one token
	Tree   float64 `json:"ratio_tree"` // the same for a tree with branches
}

// A draftRow is the gain of a method on a text.
type draftRow struct {
	Text          string  `json:"text"`
	Method        string  `json:"method"`
	TokS          spread  `json:"tok_s"`
	Gain          spread  `json:"gain"` // over plain decoding, interleaved with it
	TokensPerStep float64 `json:"tokens_per_step"`
	Accepted      float64 `json:"accepted_share"` // of the drafted tokens
	Drafted       int64   `json:"drafted"`
}

// draftReport is the JSON document of bench --speculate.
type draftReport struct {
	Threads int          `json:"threads"`
	ISA     string       `json:"isa"`
	Depth   int          `json:"depth"`
	Steps   []verifyTime `json:"steps"`
	Texts   []draftRow   `json:"texts"`
}

// A draftBench is the state of bench --speculate.
type draftBench struct {
	c      *benchCmd
	m      *model
	eng    *engine.Engine
	drafts *drafting
	report draftReport
}

// verified are the step sizes that are timed.
var verified = []int{1, 2, 3, 4, 5, 6, 8, 12, 16, 24, 32, 48, 64}

// speculate measures the cost and the gain of drafts.
func (c *benchCmd) speculate(ctx context.Context, m *model) (err error) {
	if err := m.mustBe(decoderOnly, "bench --speculate", "an encoder-decoder is not drafted for"); err != nil {
		return err
	}
	if err := c.validateRuns(); err != nil {
		return err
	}
	f := speculateFlags{Draft: c.Draft, Tokens: c.Tokens, Speculate: speculateAuto}
	b := &draftBench{c: c, m: m}
	if b.drafts, err = f.drafting(ctx, m); err != nil {
		return err
	}
	defer b.drafts.close()
	texts, err := b.texts()
	if err != nil {
		return err
	}
	rows := c.Depth + 3*len(verified)*(2*c.Reps+1) + 2*verified[len(verified)-1]
	for _, t := range texts {
		rows = max(rows, len(t.ids)+c.Gen+1)
	}
	if rows > m.manifest.Context {
		return wrong(fmt.Errorf("bench --speculate needs a context of %d tokens, the model's holds %d; lower --depth, --gen or --reps, or give a shorter --text", rows, m.manifest.Context))
	}
	if b.eng, err = m.engine(ctx, &c.engineFlags, engine.Options{Context: rows, Draft: max(63, b.drafts.tokens)}); err != nil {
		return err
	}
	if err := b.drafts.start(b.eng); err != nil {
		return err
	}
	b.report.Threads, b.report.ISA, b.report.Depth = b.eng.Options().Threads, b.eng.Device().Info().Name, c.Depth
	if err := b.steps(ctx); err != nil {
		return err
	}
	for _, t := range texts {
		if err := b.text(ctx, t); err != nil {
			return err
		}
	}
	if c.JSON {
		return writeJSON(m.Stdout, b.report)
	}
	b.print()
	return nil
}

// steps times steps of paths and of trees, each interleaved with a one-token
// step because the machine's speed drifts, and returns medians.
func (b *draftBench) steps(ctx context.Context) error {
	plain := &bench{m: b.m, eng: b.eng, depth: b.c.Depth}
	ids := plain.add(1, b.c.Depth+1)
	defer plain.removeAll(ids)
	if err := plain.fill(ctx, ids); err != nil {
		return err
	}
	at := b.c.Depth + 1
	for _, n := range verified {
		var times, linear, tree []float64
		for rep := range 2*b.c.Reps + 1 {
			var t [3]float64
			for i, size := range []int{1, n, n} {
				var err error
				if t[i], err = b.step(ctx, plain, ids[0], size, at, i == 2); err != nil {
					return err
				}
				at++
			}
			if rep > 0 {
				times, linear, tree = append(times, t[1]), append(linear, t[1]/t[0]), append(tree, t[2]/t[0])
			}
		}
		for _, list := range [][]float64{times, linear, tree} {
			slices.Sort(list)
		}
		b.report.Steps = append(b.report.Steps, verifyTime{n, median(times) * 1e3, median(linear), median(tree)})
	}
	return nil
}

// step times one step of a sequence with n−1 drafted tokens, none of which is
// accepted: a path, or a tree in which the parent of each node is the second
// node before it.
func (b *draftBench) step(ctx context.Context, plain *bench, id engine.ID, n, at int, branches bool) (float64, error) {
	t := speculate.Tree{}
	for i := range n - 1 {
		parent := int32(i - 1)
		if branches {
			parent = int32(max(i-2, -1))
		}
		t.Tokens, t.Parent = append(t.Tokens, plain.token(i+1, at)), append(t.Parent, parent)
	}
	if err := b.eng.Propose(id, t); err != nil {
		return 0, err
	}
	start := time.Now()
	if _, err := b.eng.Infer(ctx); err != nil {
		return 0, err
	}
	d := time.Since(start).Seconds()
	return d, b.eng.Commit(id, plain.token(0, at))
}

// A draftText is a prompt to continue.
type draftText struct {
	name string
	ids  []int32
}

// The texts of the benchmark: a list to copy with one change, and a question
// with an answer that does not repeat itself.
const (
	copyText = `Original list:
[
  {"id": 1, "name": "Alice Johnson", "mail": "alice.johnson@example.com", "town": "Amsterdam", "active": true},
  {"id": 2, "name": "Bob Smithson", "mail": "bob.smithson@example.com", "town": "Berlin", "active": false},
  {"id": 3, "name": "Carol Williams", "mail": "carol.williams@example.com", "town": "Copenhagen", "active": true},
  {"id": 4, "name": "David Brownstone", "mail": "david.brownstone@example.com", "town": "Dublin", "active": true},
  {"id": 5, "name": "Eve Davidson", "mail": "eve.davidson@example.com", "town": "Edinburgh", "active": false}
]
The same list, in which Bob is active too:
[
  {"id": 1, "name": "Alice Johnson", "mail":`
	freeText = "Once upon a time, in a small village by the sea, there lived an old lighthouse keeper. One stormy night"
)

// texts returns the prompts as tokens; a model without a tokenizer gets
// numbers.
func (b *draftBench) texts() (list []draftText, err error) {
	if len(b.m.embedded.Tokenizer) == 0 {
		return []draftText{{"numbers", (&bench{m: b.m}).numbers(64)}}, nil
	}
	texts := [][2]string{{"repeats", copyText}, {"free", freeText}}
	if b.c.Text != "" {
		data, err := os.ReadFile(b.c.Text)
		if err != nil {
			return nil, wrong(err)
		}
		texts = append(texts, [2]string{filepath.Base(b.c.Text), string(data)})
	}
	for _, t := range texts {
		ids, err := b.m.bin.Encode(t[1])
		if err != nil {
			return nil, err
		}
		list = append(list, draftText{t[0], ids})
	}
	return list, nil
}

// numbers returns pseudo-random tokens.
func (b *bench) numbers(n int) []int32 {
	ids := make([]int32, n)
	for i := range ids {
		ids[i] = b.token(0, i)
	}
	return ids
}

// text measures every method on a text, interleaved with plain decoding. All
// must produce the same tokens.
func (b *draftBench) text(ctx context.Context, t draftText) error {
	methods := []string{speculateLookup, speculateMedusa, speculateDraft, speculateAuto}
	methods = slices.DeleteFunc(methods, func(name string) bool { return b.drafts.makers[name] == nil })
	for _, method := range append([]string{speculateNone}, methods...) {
		b.eng.ForgetDrafts()
		row := draftRow{Text: t.name, Method: method}
		var speeds, gains []float64
		for rep := range b.c.Reps + 1 {
			want, plain, err := b.generate(ctx, t, speculateNone, nil)
			if err != nil {
				return err
			}
			got, speed, err := b.generate(ctx, t, method, &row)
			if err != nil {
				return err
			}
			if !slices.Equal(got, want) {
				return fmt.Errorf("bug: %s produced other tokens than plain decoding on text %s", method, t.name)
			}
			if rep > 0 {
				speeds, gains = append(speeds, speed), append(gains, speed/plain)
			}
		}
		slices.Sort(speeds)
		slices.Sort(gains)
		row.TokS, row.Gain = spreadOf(speeds), spreadOf(gains)
		b.report.Texts = append(b.report.Texts, row)
	}
	return nil
}

// generate continues a text greedily and returns its tokens and their speed.
func (b *draftBench) generate(ctx context.Context, t draftText, method string, row *draftRow) (tokens []int32, speed float64, err error) {
	pick, err := decode.NewSampler(decode.Settings{}, -1)
	if err != nil {
		return nil, 0, err
	}
	s := &single{eng: b.eng, logits: b.eng.Output("logits"), vocab: b.m.manifest.Vocab, history: slices.Clone(t.ids)}
	if make := b.drafts.makers[method]; make != nil {
		s.drafter = make()
	}
	if s.id, err = b.eng.AddQuery(engine.Query{Tokens: t.ids, TopK: pick.TopK(), Choice: pick.Choice}); err != nil {
		return nil, 0, err
	}
	defer b.eng.Remove(s.id)
	var first time.Time
	var before engine.Stats
	for ended := false; !ended; {
		results, err := b.eng.Infer(ctx)
		if err != nil {
			return nil, 0, err
		}
		if !results[0].Ready {
			continue
		}
		if first.IsZero() {
			first, before = time.Now(), b.eng.Stats()
		}
		ended, err = s.take(results[0], pick, func() int { return b.c.Gen - len(tokens) }, func(token int32) (bool, error) {
			tokens = append(tokens, token)
			return len(tokens) <= b.c.Gen, nil
		})
		if err != nil && !errors.Is(err, engine.ErrFull) {
			return nil, 0, err
		}
	}
	speed = float64(len(tokens)-1) / time.Since(first).Seconds()
	if st := b.eng.Stats(); row != nil {
		row.Drafted = st.Drafted - before.Drafted
		row.Accepted = float64(st.Accepted-before.Accepted) / float64(max(1, row.Drafted))
		row.TokensPerStep = float64(len(tokens)-1) / float64(max(1, st.Steps-before.Steps))
	}
	return tokens, speed, nil
}

// print writes the tables.
func (b *draftBench) print() {
	w, r := b.m.Stdout, &b.report
	fmt.Fprintf(w, "%s, %s, %d threads, after %d tokens\n%-8s %8s %8s %8s\n", b.m.manifest.Name, r.ISA, r.Threads, r.Depth, "tokens", "ms", "t(T)/t(1)", "as a tree")
	for _, s := range r.Steps {
		fmt.Fprintf(w, "%-8d %8.2f %8.2f %8.2f\n", s.Tokens, s.MS, s.Ratio, s.Tree)
	}
	fmt.Fprintf(w, "\n%-12s %-8s %8s %12s %18s %8s %9s\n", "text", "method", "tok/s", "tokens/step", "gain (range)", "drafted", "accepted")
	for _, t := range r.Texts {
		fmt.Fprintf(w, "%-12s %-8s %8.1f %12.2f %18s %8d %8.0f%%\n", t.Text[max(0, len(t.Text)-12):], t.Method, t.TokS.Median, t.TokensPerStep,
			fmt.Sprintf("%.2f (%.2f–%.2f)", t.Gain.Median, t.Gain.Min, t.Gain.Max), t.Drafted, 100*t.Accepted)
	}
	var seen []string
	for _, t := range r.Texts {
		if t.Method != speculateNone && t.Gain.Median < 0.98 {
			seen = append(seen, fmt.Sprintf("%s on %s", t.Method, t.Text))
		}
	}
	if seen != nil {
		fmt.Fprintf(w, "slower than plain decoding: %s\n", strings.Join(seen, ", "))
	}
}
