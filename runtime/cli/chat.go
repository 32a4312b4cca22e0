//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"os"
	"os/signal"
	"strings"
	"syscall"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/kit/regular"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

type chatCmd struct {
	samplingFlags `embed:""`
	engineFlags   `embed:""`

	speculateFlags `embed:""`

	System   string `placeholder:"TEXT" help:"System message."`
	Template string `placeholder:"NAME|FILE|TEXT" help:"Chat template: ${templates}, a file, or the template's text (default: the model's own)."`
	N        *int   `short:"n" placeholder:"N" help:"Maximum tokens of a response; 0 is no limit (default: the model's max_new_tokens or max_length, else 1024)."`
	Reason   int    `name:"reasoning-budget" default:"-1" placeholder:"N" help:"Maximum tokens of reasoning, after which the answer begins; 0: no reasoning, -1: no limit (default)."`

	NoHistory bool `help:"Keep no history of typed messages (default: iflowc/chat_history in $$XDG_STATE_HOME or ~/.local/state)."`
}

// Run chats until the input ends.
func (c *chatCmd) Run(ctx context.Context, m *model) error {
	if c.N != nil && *c.N < 0 {
		return wrong(fmt.Errorf("-n %d: expected 0 (no limit) or more", *c.N))
	}
	s, err := c.session(m)
	if err != nil {
		return err
	}
	if s.drafts, err = c.drafting(ctx, m); err != nil {
		return err
	}
	defer s.drafts.close()
	m.several = true
	m.prefetch(&c.engineFlags)
	// Prefix keeps the KV cache of the conversation so far, so that only new
	// tokens are computed.
	_, opt, err := m.plan(&c.engineFlags, engine.Options{Prefix: true, Draft: s.drafts.tokens, Brief: brief})
	if err != nil {
		return err
	}
	if s.eng, err = m.engine(ctx, &c.engineFlags, opt); err != nil {
		return err
	}
	if err := s.drafts.start(s.eng); err != nil {
		return err
	}
	if s.logits = s.eng.Output("logits"); s.logits < 0 {
		return wrong(fmt.Errorf("%s has no output logits; it cannot chat", m.manifest.Name))
	}
	// The chat handles signals itself: Ctrl-C stops a response.
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	defer signal.Stop(signals)
	return s.run(context.WithoutCancel(ctx), signals, !c.NoHistory)
}

// defaultReply is the maximum of tokens of a response if neither the call nor the model
// has one.
const defaultReply = 1024

// session prepares a conversation.
func (c *chatCmd) session(m *model) (*chatSession, error) {
	if c.Reason < -1 {
		return nil, wrong(fmt.Errorf("--reasoning-budget %d: expected a number of tokens, 0 or -1", c.Reason))
	}
	set, err := c.sampling(m, false)
	if err != nil {
		return nil, wrong(err)
	}
	if err := set.NoBeams("chat"); err != nil {
		return nil, wrong(err)
	}
	if c.Seed == nil {
		set.Seed = rand.Uint64()
	}
	tok, err := m.tokenizer()
	if err != nil {
		return nil, err
	}
	choice, err := templateText(c.Template)
	if err != nil {
		return nil, wrong(err)
	}
	t, err := chat.Open(m.bin.Templates(), tok, choice)
	if err != nil {
		if c.Template == "" {
			err = fmt.Errorf("%w, with --template", err)
		}
		return nil, wrong(err)
	}
	stops := t.Stops(tok, m.manifest.EOS)
	set.Rules.EOS = stops
	sampler, err := decode.NewSampler(set.Settings, -1)
	if err != nil {
		return nil, wrong(err)
	}
	s := &chatSession{
		m: m, tok: tok, template: t, stops: stops, sampler: sampler, words: set.Stop,
		budget: c.Reason, render: chat.RenderOptions{AddGenerationPrompt: true},
		limit:    func(prompt int) int { return set.Limit(c.N, prompt, defaultReply) },
		terminal: isTerminalFile(m.Stdin) && isTerminal(m.Stdout),
	}
	if c.Reason == 0 {
		s.render.Variables = chat.ReasoningVariables(false)
	}
	s.system(c.System)
	return s, nil
}

// templateText returns the text of --template: the content of a file, or the
// value itself.
func templateText(choice string) (string, error) {
	if choice == "" || strings.Contains(choice, "{") {
		return choice, nil
	}
	data, err := regular.Read(choice, maxConversation)
	if errors.Is(err, os.ErrNotExist) {
		return choice, nil // the name of a built-in template
	}
	return string(data), err
}

// isTerminalFile reports whether input comes from a terminal.
func isTerminalFile(r any) bool {
	f, ok := r.(*os.File)
	return ok && isTerminal(f)
}
