//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/engine"
)

type translateCmd struct {
	Text           []string `arg:"" optional:"" help:"Texts."`
	engineFlags    `embed:""`
	speculateFlags `embed:""`
	EncoderIDs     []string `name:"encoder-ids" sep:"none" placeholder:"1,2,3" help:"Source text as token ids; repeat the flag for several texts."`
	Src            string   `placeholder:"LANG" help:"Source language, in the tokenizer's spelling."`
	Tgt            string   `placeholder:"LANG" help:"Target language, in the tokenizer's spelling."`
	Beams          int      `placeholder:"B" help:"Beams; 1 is greedy decoding (default: as generation_config.json says)."`
	Best           int      `placeholder:"K" help:"Results per source (default: as generation_config.json says)."`
	ForcedBOS      *int32   `name:"forced-bos" placeholder:"ID" help:"Token id after the start token."`
	Start          *int32   `placeholder:"ID" help:"Start token id (default: as generation_config.json says)."`
	N              int      `short:"n" placeholder:"N" help:"Maximum tokens after the start token (default: as generation_config.json says)."`
	Ignore         []string `name:"ignore-setting" placeholder:"FIELD" help:"Run without a field of generation_config.json."`
	Verbose        bool     `help:"Print all settings, and where each is from."`
	JSON           bool     `name:"json" help:"Print one JSON document."`
}

// A translation is one result.
type translation struct {
	Tokens []int32 `json:"tokens"` // starts with the start token
	Text   string  `json:"text"`
	Score  float32 `json:"score"` // log-probability over length^penalty
}

// translationTimings counts the steps of all sources and their draft tokens.
type translationTimings struct {
	Steps    int64 `json:"steps"`
	Drafted  int64 `json:"drafted"`
	Accepted int64 `json:"accepted"`
}

// Run prints the best results of each source, in order.
func (c *translateCmd) Run(ctx context.Context, m *model) error {
	m.prefetch(&c.engineFlags)
	s, err := c.settings(m)
	if err != nil {
		return wrong(err)
	}
	if c.Verbose {
		for _, line := range s.lines {
			m.say("sampling: %s", line)
		}
	}
	sources, err := c.sources(m, s)
	if err != nil {
		return err
	}
	drafts := &drafting{}
	switch {
	case s.single:
		if drafts, err = c.drafting(ctx, m); err != nil {
			return err
		}
	case c.asked():
		return wrong(c.errNoBeams(fmt.Sprintf("%d beams", s.options.Beams)))
	}
	opt := engine.Options{Graph: "decode", Context: s.options.MaxLength, MaxSeqs: s.options.Beams, Draft: drafts.tokens, Brief: brief}
	for _, ids := range sources {
		opt.Context = max(opt.Context, len(ids))
	}
	if _, err := m.engine(ctx, &c.engineFlags, opt); err != nil {
		return err
	}
	all := []translation{}
	for _, ids := range sources {
		run := (*translator).beams
		if s.single {
			run = (*translator).single
		}
		t := &translator{m: m, settings: s.of(ids), output: m.eng.Output("logits"), drafter: drafts.behind(ids)}
		found, err := run(t, ctx, ids)
		if err != nil {
			return err
		}
		all = append(all, found...)
	}
	return c.print(m, all, s.best)
}

func (c *translateCmd) print(m *model, all []translation, best int) error {
	if len(m.embedded.Tokenizer) > 0 {
		t, err := m.tokenizer()
		if err != nil {
			return err
		}
		for i := range all {
			all[i].Text = t.Decode(all[i].Tokens, true)
		}
	}
	if c.JSON {
		st := m.eng.Stats()
		return writeJSON(m.Stdout, struct {
			Outputs []translation      `json:"outputs"`
			Timings translationTimings `json:"timings"`
		}{all, translationTimings{st.Steps, st.Drafted, st.Accepted}})
	}
	for _, t := range all {
		text := t.Text
		if len(m.embedded.Tokenizer) == 0 {
			text = string(jsonInts(t.Tokens))
		}
		if best > 1 {
			text = fmt.Sprintf("%8.4f  %s", t.Score, text)
		}
		if _, err := fmt.Fprintln(m.Stdout, text); err != nil {
			return err
		}
	}
	return nil
}

// settings returns those of generation_config.json, overridden by the call's.
func (c *translateCmd) settings(m *model) (*translateSettings, error) {
	man := *m.manifest
	if c.Start != nil {
		man.BOS = int(*c.Start)
	}
	if l := man.Language; l != nil && (c.ForcedBOS != nil || c.Tgt != "" && !l.Last) {
		man.Language = nil // the call names the language
	}
	s, err := readSettings(&man, c.Ignore)
	if err != nil {
		return nil, err
	}
	if c.Start != nil {
		s.start = *c.Start
	}
	if c.Beams != 0 {
		s.options.Beams = c.Beams
	}
	if c.Best != 0 {
		s.best = c.Best
	} else {
		s.best = min(s.best, s.options.Beams)
	}
	if c.ForcedBOS != nil {
		s.options.Rules.ForcedBOS = []int32{*c.ForcedBOS}
	}
	if c.N != 0 {
		s.options.MaxLength = min(c.N+1, m.manifest.Context)
	}
	for _, id := range append([]int32{s.start}, s.options.Rules.ForcedBOS...) {
		if id < 0 || int(id) >= m.manifest.Vocab {
			return nil, fmt.Errorf("token id %d: the vocabulary has %d tokens", id, m.manifest.Vocab)
		}
	}
	switch {
	case c.N < 0:
		return nil, fmt.Errorf("-n %d: expected 1 or more", c.N)
	case s.options.Beams < 1 || s.options.Beams > 1024:
		return nil, fmt.Errorf("--beams %d: expected a number between 1 and 1024", s.options.Beams)
	case s.best < 1 || s.best > s.options.Beams:
		return nil, fmt.Errorf("--best %d: expected a number between 1 and the %d beams", s.best, s.options.Beams)
	}
	s.single = s.options.Beams == 1
	s.options.Rules.Prompt, s.options.Rules.MaxLength = 1, s.options.MaxLength
	return s, nil
}

// sources encodes the texts to translate and sets the target language.
func (c *translateCmd) sources(m *model, s *translateSettings) ([][]int32, error) {
	texts := slices.Clone(c.Text)
	if c.Tgt != "" {
		t, err := m.tokenizer()
		if err != nil {
			return nil, err
		}
		id, ok := languageToken(t, c.Tgt)
		if !ok {
			return nil, wrong(fmt.Errorf("--tgt %s: the vocabulary has no such language", c.Tgt))
		}
		switch {
		case isLanguage(t, s.start): // mBART's decoder starts with the language
			s.start = id
		case !inText(t, id):
			s.options.Rules.ForcedBOS = []int32{id}
		default:
			for i := range texts {
				texts[i] = t.Token(id) + " " + texts[i]
			}
		}
	}
	sources, err := m.texts(texts, c.EncoderIDs)
	if err != nil || c.Src == "" {
		return sources, err
	}
	if len(c.EncoderIDs) > 0 {
		return nil, wrong(errors.New("--src goes with texts, not with ids"))
	}
	t, err := m.tokenizer()
	if err != nil {
		return nil, err
	}
	for _, ids := range sources {
		if err := setSource(t, ids, c.Src); err != nil {
			return nil, err
		}
	}
	return sources, nil
}
