//go:build unix

package cli

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

type generateCmd struct {
	promptFlags   `embed:""`
	samplingFlags `embed:""`
	engineFlags   `embed:""`

	speculateFlags `embed:""`
	choiceFlags    `embed:""`

	N         *int     `short:"n" placeholder:"N" help:"Maximum tokens to generate (default: the model's max_new_tokens or max_length, else 128)."`
	IgnoreEOS bool     `name:"ignore-eos" help:"Continue after the end-of-text token."`
	Stop      []string `sep:"none" placeholder:"TEXT" help:"Stop before this text; may be repeated."`
	StopIDs   []int32  `name:"stop-ids" placeholder:"1,2" help:"Also stop after one of these tokens."`
	JSON      bool     `name:"json" help:"Print one JSON document at the end instead of streaming text."`
}

// generated is generate's JSON document.
type generated struct {
	PromptTokens []int32 `json:"prompt_tokens"`
	Tokens       []int32 `json:"tokens"`
	Text         string  `json:"text"`
	FinishReason string  `json:"finish_reason"`
	Timings      timings `json:"timings"`
}

type timings struct {
	LoadS      float64 `json:"load_s"`
	PromptS    float64 `json:"prompt_s"`
	PromptTokS float64 `json:"prompt_tok_s"`
	GenTokS    float64 `json:"gen_tok_s"`

	Steps    int64 `json:"steps"` // that produced tokens after the first
	Drafted  int64 `json:"drafted"`
	Accepted int64 `json:"accepted"`

	Ranks []said `json:"ranks,omitempty"` // of this process, if the model is partitioned
}

// Run continues the prompt.
func (c *generateCmd) Run(ctx context.Context, m *model) error {
	if c.N != nil && *c.N < 0 {
		return wrong(fmt.Errorf("-n %d: expected 0 or more", *c.N))
	}
	if slices.Contains(c.Stop, "") {
		return wrong(errors.New("--stop: expected a text"))
	}
	p, err := c.plan(m)
	if err != nil {
		return wrong(err)
	}
	m.prefetch(&c.engineFlags)
	ids, err := m.prompt(&c.promptFlags)
	if err != nil {
		return err
	}
	if err := m.fits(ids); err != nil {
		return err
	}
	p.most = p.Limit(c.N, len(ids), defaultMost)
	if p.sampler == nil {
		return c.many(ctx, m, ids, p)
	}
	p.sampler.Restart(len(ids), min(p.most, m.manifest.Context-len(ids)), nil)
	return c.one(ctx, m, ids, p)
}

// defaultMost is the maximum of generated tokens if neither the call nor the model has
// one.
const defaultMost = 128

// A generatePlan is how generate continues its prompt.
type generatePlan struct {
	*sampling
	sampler sampler // of generate's own loop; nil: many continues the prompt
	search  bool    // by a beam search
	beams   decode.BeamOptions
	stop    []string
	most    int // maximum number of tokens
}

// plan reads the flags and the model's configuration.
func (c *generateCmd) plan(m *model) (p *generatePlan, err error) {
	p = &generatePlan{}
	if p.beams, p.search, err = decode.ParseBeams(c.Strategy); err != nil {
		return nil, err
	}
	flags := c.samplingFlags
	if p.search {
		flags.Strategy = ""
	}
	if p.sampling, err = flags.sampling(m, true); err != nil {
		return nil, err
	}
	if n := p.Whole("num_beams", 1); n > 1 && !p.search {
		if p.Temperature > 0 || p.Strategy != "" {
			return nil, p.Refuse("num_beams", n, "a beam search draws no tokens at random")
		}
		p.search, p.beams = true, decode.BeamOptions{Beams: n, LengthPenalty: p.Number("length_penalty", 1), Stopping: p.Stopping}
	}
	p.stop = slices.Concat(c.Stop, p.Stop)
	if p.search || c.Choices != 1 || c.Logprobs >= 0 {
		return p, c.checkChoices(p.beams, p.search)
	}
	p.sampler, err = decode.NewSampler(p.Settings, -1)
	return p, err
}

// one streams a single continuation.
func (c *generateCmd) one(ctx context.Context, m *model, ids []int32, p *generatePlan) error {
	drafts, err := c.drafting(ctx, m)
	if err != nil {
		return err
	}
	defer drafts.close()
	g := &generation{m: m, cmd: c, sampler: p.sampler, most: p.most, stop: decode.Stopper{Words: p.stop}, out: generated{PromptTokens: ids, Tokens: []int32{}, FinishReason: "length"}}
	if g.eng, err = m.engine(ctx, &c.engineFlags, engine.Options{Context: m.room(len(ids), p.most), Draft: drafts.tokens, Brief: brief}); err != nil {
		return err
	}
	if err := drafts.start(g.eng); err != nil {
		return err
	}
	g.drafter = drafts.drafter(p.sampler)
	g.out.Timings.LoadS = time.Since(m.Start).Seconds()
	if err := g.startText(); err != nil {
		return err
	}
	err = g.run(ctx)
	if e := g.endText(); err == nil {
		err = e
	}
	if err != nil {
		return err
	}
	if c.JSON {
		return writeJSON(m.Stdout, g.out)
	}
	return nil
}

// fits checks a prompt against the model's context.
func (m *model) fits(ids []int32) error {
	if len(ids) > m.manifest.Context {
		return wrong(fmt.Errorf("the prompt has %d tokens, the model's context holds %d; shorten the prompt", len(ids), m.manifest.Context))
	}
	return nil
}

// room returns the context for a prompt and n more tokens: a small KV cache
// touches less memory.
func (m *model) room(prompt, n int) int {
	return max(1, min(m.manifest.Context, prompt+min(n, m.manifest.Context)))
}

// A generation is one run of generate.
type generation struct {
	m       *model
	cmd     *generateCmd
	sampler sampler
	most    int // maximum number of tokens
	eng     *engine.Engine
	drafter speculate.Drafter
	stream  *tokenizer.Stream // nil: the model has no tokenizer
	stop    decode.Stopper
	text    *bufio.Writer // the terminal, unless --json
	prompt  int64         // steps of the prefill
	out     generated
}

// run prefills the prompt and then decodes token by token.
func (g *generation) run(ctx context.Context) error {
	begin := time.Now()
	s := &single{eng: g.eng, logits: g.eng.Output("logits"), vocab: g.m.manifest.Vocab, drafter: g.drafter, history: slices.Clone(g.out.PromptTokens)}
	if s.logits < 0 {
		return wrong(fmt.Errorf("%s has no output logits; it cannot generate", g.m.manifest.Name))
	}
	var err error
	if s.id, err = g.eng.AddQuery(engine.Query{Tokens: s.history, TopK: g.sampler.TopK(), Choice: g.sampler.Choice}); err != nil {
		return err
	}
	var first time.Time
	for len(g.out.Tokens) < g.most || first.IsZero() {
		results, err := g.eng.Infer(ctx)
		if err != nil {
			return err
		}
		if !results[0].Ready {
			continue // another chunk of the prompt
		}
		if first.IsZero() {
			first, g.prompt = time.Now(), g.eng.Stats().Steps
			g.out.Timings.PromptS = first.Sub(begin).Seconds()
			g.out.Timings.PromptTokS = float64(len(g.out.PromptTokens)) / g.out.Timings.PromptS
		}
		if g.most == 0 {
			break
		}
		ended, err := s.take(results[0], g.sampler, func() int { return g.most - len(g.out.Tokens) }, g.more)
		if errors.Is(err, engine.ErrFull) {
			break
		}
		if ended || err != nil {
			g.rate(first)
			return err
		}
	}
	g.rate(first)
	return nil
}

// rate returns the speed of the tokens after the first. The first one counts as
// prefill.
func (g *generation) rate(first time.Time) {
	if n := len(g.out.Tokens) - 1; n > 0 {
		g.out.Timings.GenTokS = float64(n) / time.Since(first).Seconds()
	}
	st := g.eng.Stats()
	g.out.Timings.Steps, g.out.Timings.Drafted, g.out.Timings.Accepted = st.Steps-g.prompt, st.Drafted, st.Accepted
	g.out.Timings.Ranks = g.m.said()
}

// more takes a token and reports whether another one may follow in the same
// step.
func (g *generation) more(token int32) (bool, error) {
	stop, err := g.take(token)
	return !stop && len(g.out.Tokens) < g.most, err
}

// take records a token and prints its text; stop reports the end of the text.
func (g *generation) take(token int32) (stop bool, err error) {
	g.out.Tokens = append(g.out.Tokens, token)
	if !g.cmd.IgnoreEOS && slices.Contains(g.m.manifest.EOS, token) || slices.Contains(g.cmd.StopIDs, token) {
		g.out.FinishReason = "stop"
		return true, nil
	}
	if g.stream != nil {
		err := g.show(g.stop.Push(g.stream.Push(token)))
		if g.stop.Done {
			g.out.FinishReason = "stop"
		}
		return g.stop.Done, err
	}
	sep := ","
	if len(g.out.Tokens) == 1 {
		sep = ""
	}
	return false, g.show(fmt.Sprint(sep, token))
}

// startText prepares the output. A model without a tokenizer prints ids.
func (g *generation) startText() (err error) {
	g.text = bufio.NewWriter(g.m.Stdout)
	g.stream, err = g.m.textStream(g.out.PromptTokens)
	return err
}

// textStream returns the stream that converts generated tokens to text, or nil
// if the model has no tokenizer. The stream has decoded the prompt and dropped
// its text, because a token's text may depend on the tokens before it.
func (m *model) textStream(prompt []int32) (*tokenizer.Stream, error) {
	if len(m.embedded.Tokenizer) == 0 {
		return nil, nil
	}
	t, err := m.tokenizer()
	if err != nil {
		return nil, err
	}
	stream := t.NewStream(true)
	for _, id := range prompt {
		stream.Push(id)
	}
	return stream, nil
}

func (g *generation) show(text string) error {
	if g.cmd.JSON {
		if g.stream != nil {
			g.out.Text += text
		}
		return nil
	}
	if text == "" {
		return nil
	}
	g.text.WriteString(text)
	return g.text.Flush()
}

// endText writes the rest of the stream and ends the line.
func (g *generation) endText() error {
	if g.stream != nil {
		if err := g.show(g.stop.Push(g.stream.Flush()) + g.stop.Flush()); err != nil {
			return err
		}
	}
	if g.cmd.JSON {
		return nil
	}
	return g.show("\n")
}
