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
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// Sampling configures a generation. The zero value decodes greedily until the model
// ends the text or the context is full.
type Sampling struct {
	MaxTokens         int             // maximum generated tokens; 0: the rest of the context
	Temperature       float64         // 0: greedy
	TopK              int             // sample from the K most probable tokens; 0: all
	TopP              float64         // nucleus sampling: sample from the fewest tokens with a total probability of P; 0: all
	MinP              float64         // sample from tokens at least P times as probable as the most probable one; 0: all
	RepetitionPenalty float64         // above 1 makes earlier tokens less probable; 0: none
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
	return m.run(ctx, ids, m.bin.Manifest.EOS, text, o, yield)
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
	return m.run(ctx, p.IDs, m.template.Stops(tok, m.bin.Manifest.EOS), text, o, yield)
}

// run generates and yields text until it ends or the caller breaks the loop.
func (m *Model) run(ctx context.Context, ids, ends []int32, text textOf, o Sampling, yield func(string, error) bool) error {
	if m.bin.Manifest.Network != "decoder_only" {
		return binary.Blame(fmt.Errorf("%s is not a decoder and does not generate text", m.bin.Manifest.Name))
	}
	if len(ids) >= m.context {
		return binary.Blame(fmt.Errorf("the prompt has %d tokens; the context holds %d", len(ids), m.context))
	}
	if slices.Contains(o.Stop, "") {
		return binary.Blame(fmt.Errorf("a stop text is empty"))
	}
	sampler, err := m.sampler(o, ends)
	if err != nil {
		return binary.Blame(err)
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	limit := m.context - len(ids)
	if o.MaxTokens > 0 {
		limit = min(limit, o.MaxTokens)
	}
	stream, err := m.s.Generate(ctx, scheduler.Generation{Prompt: ids, Samplers: []*decode.Sampler{sampler}, Max: limit, EOS: ends, Logprobs: -1})
	if err != nil {
		return err
	}
	return read(ctx, stream, text, decode.Stopper{Words: o.Stop}, yield)
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

// sampler returns the sampler of a generation.
func (m *Model) sampler(o Sampling, ends []int32) (*decode.Sampler, error) {
	set := decode.Settings{Options: decode.Options{
		Temperature: o.Temperature, TopK: o.TopK, TopP: o.TopP, MinP: o.MinP, Penalty: o.RepetitionPenalty, Seed: o.Seed,
	}}
	set.Rules.EOS = ends
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
