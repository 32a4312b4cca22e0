//go:build unix

package api

import (
	"context"
	"encoding/json"
	"fmt"
	"iter"
	"slices"

	"github.com/iflowc/iflowc/runtime/binary"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/settings"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// Sampling configures a generation. A field that is 0 has the value of the model's own
// configuration, else that of the subcommands of a binary. Chat samples at temperature
// 0.8 with top-k 40, top-p 0.95 and min-p 0.05. So does Generate if a field or the
// configuration asks for sampling; otherwise it is greedy.
type Sampling struct {
	MaxTokens         int             // maximum generated tokens; without the model's own: the rest of the context
	Greedy            bool            // take the most probable token after penalties; no other field of sampling counts
	Temperature       float64         // divides the logits
	TopK              int             // sample from the K most probable tokens; -1: all
	TopP              float64         // nucleus sampling: sample from the fewest tokens with a total probability of P; 1: all
	MinP              float64         // sample from tokens at least P times as probable as the most probable one; negative: all
	RepetitionPenalty float64         // above 1 makes earlier tokens less probable; 1: none
	Seed              uint64          // seed of the random numbers
	Stop              []string        // end before one of these texts
	Schema            json.RawMessage // JSON Schema of the text; nil: any text
}

// A Message is a message of a conversation.
type Message struct {
	Role    string // system, user or assistant
	Content string
}

// Generate continues a prompt. It yields pieces of text as tokens complete them; an
// error is the last pair. Breaking the loop cancels the generation.
func (m *Model) Generate(ctx context.Context, prompt string, o Sampling) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		if err := m.complete(ctx, prompt, o, yield); err != nil {
			yield("", err)
		}
	}
}

func (m *Model) complete(ctx context.Context, prompt string, o Sampling, yield func(string, error) bool) error {
	ids, err := m.bin.Encode(prompt)
	if err != nil {
		return err
	}
	tok, err := m.bin.Tokenizer()
	if err != nil {
		return err
	}
	text := tok.NewStream(true)
	for _, id := range ids { // a token's text may depend on the tokens before it
		text.Push(id)
	}
	return m.run(ctx, ids, m.bin.Manifest.EOS, text, o, true, yield)
}

// textOf converts tokens to text.
type textOf interface {
	Push(id int32) string
	Flush() string
}

// An answer is the text of an answer without its reasoning.
type answer struct{ *chat.Reader }

func (a answer) Push(id int32) string { return a.Reader.Push(id).Content }
func (a answer) Flush() string        { return a.Reader.Flush().Content }

// Chat answers a conversation with the model's chat template. It omits the reasoning that
// some models write before the answer.
func (m *Model) Chat(ctx context.Context, messages []Message, o Sampling) iter.Seq2[string, error] {
	return func(yield func(string, error) bool) {
		err := m.chat(ctx, messages, o, yield)
		if err != nil {
			yield("", err)
		}
	}
}

func (m *Model) chat(ctx context.Context, messages []Message, o Sampling, yield func(string, error) bool) error {
	if m.template == nil {
		return binary.Blame(fmt.Errorf("%s cannot chat: %w", m.bin.Manifest.Name, m.why))
	}
	tok, err := m.bin.Tokenizer()
	if err != nil {
		return err
	}
	list := make([]chat.Message, len(messages))
	for i, msg := range messages {
		list[i] = chat.Message{Role: msg.Role, Content: msg.Content}
	}
	p, err := m.template.Encode(tok, list, chat.RenderOptions{AddGenerationPrompt: true})
	if err != nil {
		return binary.Blame(err)
	}
	text := answer{m.template.NewReader(tok, p.IDs, chat.ReaderOptions{Reasoning: true})}
	return m.run(ctx, p.IDs, m.template.Stops(tok, m.bin.Manifest.EOS), text, o, false, yield)
}

// run generates and yields text until it ends or the caller breaks the loop. quiet says
// that tokens are drawn only if the caller or the model asks for it.
func (m *Model) run(ctx context.Context, ids, ends []int32, text textOf, o Sampling, quiet bool, yield func(string, error) bool) error {
	if m.bin.Manifest.Network != "decoder_only" {
		return binary.Blame(fmt.Errorf("%s is not a decoder and does not generate text", m.bin.Manifest.Name))
	}
	if len(ids) >= m.context {
		return binary.Blame(fmt.Errorf("the prompt has %d tokens; the context holds %d", len(ids), m.context))
	}
	if slices.Contains(o.Stop, "") {
		return binary.Blame(fmt.Errorf("a stop text is empty"))
	}
	own, err := settings.Read(m.bin.Manifest, m.ignore)
	if err != nil {
		return binary.Blame(err)
	}
	sampler, err := m.sampler(o, own, ends, quiet)
	if err != nil {
		return binary.Blame(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := m.context - len(ids)
	var asked *int
	if o.MaxTokens > 0 {
		asked = &o.MaxTokens
	}
	limit = min(limit, own.Limit(asked, len(ids), limit))
	sampler.Restart(len(ids), limit, nil)
	stream, err := m.s.Generate(ctx, scheduler.Generation{Prompt: ids, Samplers: []*decode.Sampler{sampler}, Max: limit, EOS: ends, Logprobs: -1})
	if err != nil {
		return err
	}
	return read(ctx, stream, text, decode.Stopper{Words: slices.Concat(o.Stop, own.Stop)}, yield)
}

// read yields the text of events.
func read(ctx context.Context, events *scheduler.Stream, text textOf, stop decode.Stopper, yield func(string, error) bool) error {
	for {
		list, err := events.Next(ctx)
		if err != nil {
			return err
		}
		piece := ""
		for _, e := range list {
			if e.Index >= 0 && !e.End && !stop.Done {
				piece += stop.Push(text.Push(e.Token))
			}
		}
		if len(list) == 0 {
			piece = stop.Push(text.Flush()) + stop.Flush()
		}
		if piece != "" && !yield(piece, nil) || len(list) == 0 || stop.Done {
			return nil
		}
	}
}

// flags returns the fields that are set, as settings of a caller.
func (o *Sampling) flags() settings.Flags {
	f := settings.Flags{Values: map[string]float64{}, Seeded: o.Seed != 0}
	for name, v := range map[string]float64{
		"temperature": o.Temperature, "top_k": float64(o.TopK), "top_p": o.TopP, "min_p": o.MinP, "repetition_penalty": o.RepetitionPenalty,
	} {
		if v != 0 {
			f.Values[name] = v
		}
	}
	if o.MinP < 0 {
		f.Values["min_p"] = 0
	}
	if o.Greedy {
		f = settings.Flags{Values: map[string]float64{"temperature": 0}}
	}
	return f
}

// sampler returns the sampler of a generation.
func (m *Model) sampler(o Sampling, own *settings.Config, ends []int32, quiet bool) (*decode.Sampler, error) {
	if err := own.NoBeams("this package"); err != nil {
		return nil, err
	}
	r, err := own.Resolve(o.flags(), quiet)
	if err != nil {
		return nil, err
	}
	set := r.Settings
	set.Seed, set.Rules.EOS = o.Seed, ends
	if o.Greedy && o.RepetitionPenalty != 0 {
		set.Penalty = o.RepetitionPenalty
	}
	if o.Schema != nil {
		maker, err := m.maker(ends)
		if err != nil {
			return nil, err
		}
		if set.Mask, err = maker.Schema(o.Schema); err != nil {
			return nil, err
		}
	}
	return decode.NewSampler(set, -1)
}

// maker returns the maker of token masks for texts that end with one of the given
// tokens. A maker scans the whole vocabulary, so makers are kept: at most two, for
// prompts and for chats.
func (m *Model) maker(ends []int32) (*grammar.Maker, error) {
	tok, err := m.bin.Tokenizer()
	if err != nil {
		return nil, err
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for _, k := range m.makers {
		if slices.Equal(k.ends, ends) {
			return k.maker, nil
		}
	}
	maker := grammar.NewMaker(m.bin.Manifest.Vocab, tok.Bytes, ends)
	m.makers = append(m.makers, keptMaker{ends, maker})
	return maker, nil
}

// A keptMaker is a maker with its EOS tokens.
type keptMaker struct {
	ends  []int32
	maker *grammar.Maker
}
