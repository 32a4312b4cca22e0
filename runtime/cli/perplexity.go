//go:build unix

package cli

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"math"
	"runtime"
	"sync"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

type perplexityCmd struct {
	File        string `arg:"" type:"path" help:"Text file."`
	engineFlags `embed:""`
	Context     int    `default:"512" placeholder:"512" help:"Tokens per window."`
	Stride      int    `default:"512" placeholder:"512" help:"Tokens from one window to the next; windows overlap if it is below --context."`
	Protocol    string `default:"windows" enum:"windows,llama.cpp" placeholder:"NAME" help:"Scored tokens: windows (all that no earlier window scored) or llama.cpp (the second half of each chunk, as its perplexity tool does)."`
	Chunks      int    `placeholder:"N" help:"Maximum windows; 0 is the whole file."`
	Against     string `placeholder:"BIN" help:"Another binary of the model, such as one in f16: also print the KL divergence from it, how often both prefer the same token, and the ratio of the perplexities."`
	Logits      bool   `hidden:"" help:"Write the logits of each scored token, for --against."`
	JSON        bool   `name:"json" help:"Print one JSON document."`
}

// perplexity is the subcommand's JSON document.
type perplexity struct {
	Perplexity float64 `json:"perplexity"`
	StdErr     float64 `json:"stderr"`
	Tokens     int     `json:"tokens"` // scored
	NLL        float64 `json:"nll"`    // mean, nats per token

	Against *divergence `json:"against,omitempty"`
}

// perplexityRows is the number of rows of logits per step: enough to share one
// read of the head's weights, and a few tens of megabytes.
const perplexityRows = 128

// Run scores the file in windows of --context positions, by one of two
// protocols.
func (c *perplexityCmd) Run(ctx context.Context, m *model) error {
	m.prefetch(&c.engineFlags)
	ids, err := c.read(m)
	if err != nil {
		return err
	}
	graph, err := m.graphWith("perplexity", "logits")
	if err != nil {
		return err
	}
	if _, err := m.engine(ctx, &c.engineFlags, engine.Options{Graph: graph, Context: c.Context, MaxOutRows: min(perplexityRows, c.Context)}); err != nil {
		return err
	}
	cut := cutWindows
	if c.Protocol == "llama.cpp" {
		cut = cutChunks
	}
	list := cut(ids, m.startToken(), c.Context, c.Stride)
	if len(list) == 0 {
		return wrong(fmt.Errorf("%s: %d tokens; expected %d or more for a chunk of --context %d", c.File, len(ids), c.Context, c.Context))
	}
	if c.Chunks > 0 {
		list = list[:min(c.Chunks, len(list))]
	}
	s, err := c.score(ctx, m, list)
	if err != nil || c.Logits {
		return err
	}
	out, err := s.result()
	if err != nil {
		return wrong(fmt.Errorf("%s: %w", c.File, err))
	}
	if c.JSON {
		return writeJSON(m.Stdout, out)
	}
	text := fmt.Sprintf("perplexity %.4f ± %.4f over %d tokens (%.5f nats per token)\n", out.Perplexity, out.StdErr, out.Tokens, out.NLL)
	if d := out.Against; d != nil {
		text += fmt.Sprintf("against %s: KL divergence %v nats, the same top token for %v of all, perplexity times %v\n", d.Reference, d.KL, d.SameTop, d.Ratio)
	}
	_, err = io.WriteString(m.Stdout, text)
	return err
}

// score runs the windows.
func (c *perplexityCmd) score(ctx context.Context, m *model, list []window) (*score, error) {
	s := &score{}
	switch {
	case c.Logits:
		s.logits = bufio.NewWriterSize(m.Stdout, 1<<20)
		fmt.Fprintf(s.logits, logitsHead, m.manifest.Vocab)
	case c.Against != "":
		var err error
		if s.ref, err = c.startReference(ctx); err != nil {
			return nil, err
		}
		defer s.ref.stop()
		if err := s.ref.head(m.manifest.Vocab); err != nil {
			return nil, err
		}
	}
	bar := newProgress(m.Stderr, "windows", len(list))
	for i, w := range list {
		if err := s.window(ctx, m, w); err != nil {
			return nil, err
		}
		bar.step(i + 1)
	}
	bar.end()
	if s.logits != nil {
		return s, s.logits.Flush()
	}
	return s, nil
}

// read checks the flags and encodes the file.
func (c *perplexityCmd) read(m *model) ([]int32, error) {
	switch {
	case c.Context < 2:
		return nil, wrong(fmt.Errorf("--context %d: expected 2 or more", c.Context))
	case c.Context > m.manifest.Context:
		return nil, wrong(fmt.Errorf("--context %d: the model's context holds %d", c.Context, m.manifest.Context))
	case c.Stride < 1:
		return nil, wrong(fmt.Errorf("--stride %d: expected 1 or more", c.Stride))
	case c.Chunks < 0:
		return nil, wrong(fmt.Errorf("--chunks %d: expected 0 (all) or more", c.Chunks))
	}
	text, err := readText("", c.File)
	if err != nil {
		return nil, err
	}
	t, err := m.tokenizer()
	if err != nil {
		return nil, err
	}
	return t.Encode(text, false), nil
}

// A score adds up negative log-likelihoods and their squares.
type score struct {
	n       int
	sum, sq float64
	ref     *reference    // nil: none
	logits  *bufio.Writer // nil: the logits are not written
	tokens  []tokenScore  // scratch
}

// A tokenScore is the loss of a token and, with a reference, the comparison with it.
type tokenScore struct {
	loss, longer, kl float64
	same             bool
}

// window runs one window and scores its tokens, each with the logits of the
// token before it.
func (s *score) window(ctx context.Context, m *model, w window) error {
	if w.score >= len(w.tokens) {
		return nil
	}
	logits := m.eng.Output("logits")
	if s.ref != nil {
		s.ref.window()
	}
	return m.each(ctx, engine.Query{Tokens: w.tokens, Last: len(w.tokens) - w.score + 1}, func(r engine.Result) error {
		return s.add(r, logits, w.tokens, m.manifest.Vocab)
	})
}

// add scores a step's rows: row i predicts the token after its own. Rows are
// computed in parallel and summed in order.
func (s *score) add(r engine.Result, output int, tokens []int32, vocab int) error {
	n := min(r.Rows, len(tokens)-1-r.First)
	if n <= 0 {
		return nil
	}
	var ref []float32
	switch {
	case s.logits != nil:
		for i := range n {
			if err := writeLogits(s.logits, r.Row(output, i)[:vocab]); err != nil {
				return err
			}
		}
		return nil
	case s.ref != nil:
		var err error
		if ref, err = s.ref.read(n, vocab); err != nil {
			return err
		}
	}
	s.tokens = append(s.tokens[:0], make([]tokenScore, n)...)
	parallel(n, func(i int) {
		t, row, token := &s.tokens[i], r.Row(output, i)[:vocab], tokens[r.First+i+1]
		if s.ref == nil {
			t.loss = nll(row, token)
			return
		}
		var refLoss float64
		t.loss, refLoss, t.kl, t.same = compare(row, ref[i*vocab:][:vocab], token)
		t.longer = t.loss - refLoss
	})
	for _, t := range s.tokens {
		if math.IsNaN(t.loss) {
			return decode.ErrNaN
		}
		s.n++
		s.sum += t.loss
		s.sq += t.loss * t.loss
		if s.ref != nil {
			s.ref.add(t)
		}
	}
	return nil
}

// parallel calls f for 0 to n−1 on all CPUs.
func parallel(n int, f func(i int)) {
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), n)
	for k := range workers {
		wg.Go(func() {
			for i := k; i < n; i += workers {
				f(i)
			}
		})
	}
	wg.Wait()
}

// nll returns −log softmax(logits)[token].
func nll(logits []float32, token int32) float64 {
	sum, top, _ := normalize(logits)
	return math.Log(sum) + float64(top) - float64(logits[token])
}

// normalize returns Σ exp(logit − top), the largest logit, and its first token.
func normalize(logits []float32) (sum float64, top float32, at int) {
	top = logits[0]
	for i, l := range logits {
		if l > top {
			top, at = l, i
		}
	}
	for _, l := range logits {
		sum += math.Exp(float64(l) - float64(top))
	}
	return sum, top, at
}

// result returns exp of the mean, and the standard error transformed likewise.
func (s *score) result() (perplexity, error) {
	if s.n == 0 {
		return perplexity{}, fmt.Errorf("the text has no token to score; expected at least two tokens")
	}
	n := float64(s.n)
	mean := s.sum / n
	p := perplexity{Perplexity: math.Exp(mean), Tokens: s.n, NLL: mean}
	if s.n > 1 {
		variance := max(0, (s.sq-n*mean*mean)/(n-1))
		p.StdErr = p.Perplexity * math.Sqrt(variance/n)
	}
	if s.ref != nil {
		p.Against = s.ref.result()
	}
	return p, nil
}
