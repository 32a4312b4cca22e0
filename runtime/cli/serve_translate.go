//go:build unix

package cli

import (
	"context"
	"math"
	"sync"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
)

// translations returns the handler of /translate, which works like the
// subcommand translate, without the ignored settings, with the drafting method that maker returns for ""; nil
// if the model is not an encoder-decoder.
func translations(m *model, s *scheduler.Scheduler, ignored []string, maker func(string) (func() speculate.Drafter, error)) func(context.Context, scheduler.Job, server.Translation) ([][]server.Translated, error) {
	if m.manifest.Network != encoderDecoder {
		return nil
	}
	return func(ctx context.Context, j scheduler.Job, t server.Translation) ([][]server.Translated, error) {
		c := translateCmd{Text: t.Texts, Src: t.Src, Tgt: t.Tgt, Beams: t.Beams, Best: t.Best, N: t.MaxTokens, ForcedBOS: t.ForcedBOS, Ignore: ignored}
		for _, ids := range t.IDs {
			list := string(jsonInts(ids))
			c.EncoderIDs = append(c.EncoderIDs, list[1:len(list)-1])
		}
		set, err := c.settings(m)
		if err != nil {
			return nil, server.RequestError{Err: err}
		}
		sources, err := c.sources(m, set)
		if err != nil {
			return nil, server.RequestError{Err: err}
		}
		drafter, err := maker("")
		if err != nil {
			return nil, err
		}
		out := make([][]server.Translated, len(sources))
		failed := make([]error, len(sources))
		slots := make(chan struct{}, max(1, m.eng.Options().MaxSeqs)) // so that a request with many texts does not fill the queue
		var wg sync.WaitGroup
		for i, ids := range sources {
			slots <- struct{}{}
			wg.Go(func() {
				defer func() { <-slots }()
				out[i], failed[i] = translateOne(ctx, m, s, j, set, ids, drafter)
			})
		}
		wg.Wait()
		for _, err := range failed {
			if err != nil {
				return nil, err
			}
		}
		return out, nil
	}
}

// translateOne returns the best results of one source.
func translateOne(ctx context.Context, m *model, s *scheduler.Scheduler, j scheduler.Job, set *translateSettings, source []int32, drafter func() speculate.Drafter) ([]server.Translated, error) {
	set = set.of(source)
	var found []translation
	var err error
	if set.single {
		found, err = translateSingle(ctx, s, j, set, source, drafter)
	} else {
		var list []decode.Hypothesis
		list, err = s.Beams(ctx, scheduler.Search{Job: j, Prompt: []int32{set.start}, Source: source, Options: set.options, Best: set.best})
		for _, h := range list {
			found = append(found, translation{Tokens: h.Tokens, Score: h.Score})
		}
		(&translator{m: m, settings: set}).fill(found)
	}
	if err != nil {
		return nil, err
	}
	out := make([]server.Translated, len(found))
	for i, f := range found {
		if m.tok != nil {
			f.Text = m.tok.Decode(f.Tokens, true)
		}
		out[i] = server.Translated(f)
	}
	return out, nil
}

// translateSingle takes one token at a time.
func translateSingle(ctx context.Context, s *scheduler.Scheduler, j scheduler.Job, set *translateSettings, source []int32, drafter func() speculate.Drafter) ([]translation, error) {
	c, err := set.newSampler()
	if err != nil {
		return nil, server.RequestError{Err: err}
	}
	g := scheduler.Generation{
		Job: j, Prompt: []int32{set.start}, Source: source, Samplers: []*decode.Sampler{c}, Max: set.options.MaxLength - 1, EOS: set.options.Rules.EOS, Logprobs: 0,
	}
	if drafter != nil {
		g.Drafter = func() speculate.Drafter { return speculate.WithSource(source, drafter()) }
	}
	tokens, sum := []int32{set.start}, 0.0
	stream, err := s.Generate(ctx, g)
	if err != nil {
		return nil, err
	}
	for {
		events, err := stream.Next(ctx)
		if err != nil {
			return nil, err
		}
		if len(events) == 0 {
			score := sum / math.Pow(float64(max(1, len(tokens)-1)), set.options.LengthPenalty)
			return []translation{{Tokens: tokens, Score: float32(score)}}, nil
		}
		for _, e := range events {
			if e.Token >= 0 {
				tokens, sum = append(tokens, e.Token), sum+e.Logprob
			}
		}
	}
}
