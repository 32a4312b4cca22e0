//go:build unix

package app

import (
	"context"
	"fmt"
	"math"
	"runtime"
	"sync"

	"github.com/iflowc/iflowc/runtime/decode"
	"github.com/iflowc/iflowc/runtime/engine"
)

type perplexityCmd struct {
	File        string `arg:"" type:"path" help:"A text file."`
	engineFlags `embed:""`
	Context     int  `default:"512" placeholder:"512" help:"Tokens a window."`
	Stride      int  `default:"512" placeholder:"512" help:"Tokens from one window to the next; less than the context makes windows overlap, and only new tokens count."`
	Chunks      int  `placeholder:"N" help:"Stop after N windows."`
	JSON        bool `name:"json" help:"Print one JSON document."`
}

// perplexity is the verb's JSON document.
type perplexity struct {
	Perplexity float64 `json:"perplexity"`
	StdErr     float64 `json:"stderr"`
	Tokens     int     `json:"tokens"` // scored
	NLL        float64 `json:"nll"`    // mean, nats a token
}

// perplexityRows is how many rows of logits a step gives at once: enough that
// the head's weights are read for many, and a few tens of megabytes.
const perplexityRows = 128

// Run scores the file in windows of --context positions, each beginning with
// the start token where the model wants one. A window's tokens that an earlier
// one scored are its context only; what begins a window without a start token
// has no context and is not scored.
func (c *perplexityCmd) Run(ctx context.Context, m *model) error {
	if err := m.mustBe(decoderOnly, "perplexity", "only a decoder predicts each next token of a text"); err != nil {
		return err
	}
	m.prefetch(&c.engineFlags)
	ids, err := c.read(m)
	if err != nil {
		return err
	}
	graph, err := m.graphWith("perplexity", "logits")
	if err != nil {
		return err
	}
	if _, err := m.engine(ctx, &c.engineFlags, engine.Options{Graph: graph, Context: c.Context, MaxWanted: min(perplexityRows, c.Context)}); err != nil {
		return err
	}
	spans := windows(len(ids), c.span(m), c.Stride)
	if c.Chunks > 0 {
		spans = spans[:min(c.Chunks, len(spans))]
	}
	bar := newProgress(m.Stderr, "windows", len(spans))
	var s score
	for i, w := range spans {
		if err := s.window(ctx, m, ids, w); err != nil {
			return err
		}
		bar.step(i + 1)
	}
	bar.end()
	out, err := s.result()
	if err != nil {
		return wrong(fmt.Errorf("%s: %w", c.File, err))
	}
	if c.JSON {
		return writeJSON(m.Stdout, out)
	}
	_, err = fmt.Fprintf(m.Stdout, "perplexity %.4f ± %.4f over %d tokens (%.5f nats a token)\n", out.Perplexity, out.StdErr, out.Tokens, out.NLL)
	return err
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

// span is how many of a window's positions hold the file's tokens.
func (c *perplexityCmd) span(m *model) int {
	if m.startToken() >= 0 {
		return c.Context - 1
	}
	return c.Context
}

// startToken is the token that a text begins with, -1 for none.
func (m *model) startToken() int {
	if m.manifest.AddBOS {
		return m.manifest.BOS
	}
	return -1
}

// A span is a window: tokens from … to-1, of which those from score on count.
type span struct{ from, score, to int }

// windows cuts n tokens into spans of a size, their starts a stride apart and
// never leaving a token out.
func windows(n, size, stride int) []span {
	var list []span
	end := 0
	for from := 0; end < n; from += min(stride, size) {
		to := min(from+size, n)
		list = append(list, span{from, end, to})
		end = to
	}
	return list
}

// A score adds up negative log-likelihoods and their squares.
type score struct {
	n        int
	sum, sq  float64
	perToken []float64 // scratch
}

// window runs one window and scores its tokens.
func (s *score) window(ctx context.Context, m *model, ids []int32, w span) error {
	var tokens []int32
	if bos := m.startToken(); bos >= 0 {
		tokens = append(tokens, int32(bos))
	}
	shift := len(tokens) // place of ids[w.from] in tokens
	tokens = append(tokens, ids[w.from:w.to]...)
	// The row of the token before each scored one is wanted.
	first := max(w.score-w.from+shift-1, 0)
	if first >= len(tokens)-1 {
		return nil
	}
	logits := m.eng.Output("logits")
	return m.each(ctx, engine.Query{Tokens: tokens, Last: len(tokens) - first}, func(r engine.Result) error {
		return s.add(r, logits, tokens, m.manifest.Vocab)
	})
}

// add scores a step's rows: row i predicts the token after its own. Rows are
// shared out to processors, sums are taken in order.
func (s *score) add(r engine.Result, output int, tokens []int32, vocab int) error {
	n := min(r.Rows, len(tokens)-1-r.First)
	if n <= 0 {
		return nil
	}
	s.perToken = append(s.perToken[:0], make([]float64, n)...)
	var wg sync.WaitGroup
	workers := min(runtime.GOMAXPROCS(0), n)
	for k := range workers {
		wg.Go(func() {
			for i := k; i < n; i += workers {
				s.perToken[i] = nll(r.Row(output, i)[:vocab], tokens[r.First+i+1])
			}
		})
	}
	wg.Wait()
	for _, x := range s.perToken {
		if math.IsNaN(x) {
			return decode.ErrNaN
		}
		s.n++
		s.sum += x
		s.sq += x * x
	}
	return nil
}

// nll is −log softmax(logits)[token].
func nll(logits []float32, token int32) float64 {
	top := logits[0]
	for _, l := range logits {
		top = max(top, l)
	}
	sum := 0.0
	for _, l := range logits {
		sum += math.Exp(float64(l) - float64(top))
	}
	return math.Log(sum) + float64(top) - float64(logits[token])
}

// result is exp of the mean, with the standard error carried through exp.
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
	return p, nil
}
