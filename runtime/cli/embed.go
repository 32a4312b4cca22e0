//go:build unix

package cli

import (
	"context"
	"errors"
	"fmt"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/pooling"
)

type embedCmd struct {
	Text         []string `arg:"" optional:"" help:"Texts."`
	IDs          []string `name:"ids" sep:"none" placeholder:"1,2,3" help:"Text as token ids; repeat the flag for several texts."`
	encoderFlags `embed:""`
	engineFlags  `embed:""`
	Pooling      string `enum:",mean,cls,last,max,weighted,sqrt,pooler" default:"" placeholder:"mean" help:"Pooling: mean, cls (first token), last, max, weighted (position-weighted mean), sqrt (sum over the square root of the length) or pooler (default: as the model's files say, else mean)."`
	PromptName   string `name:"prompt-name" placeholder:"query" help:"Put the model's prompt of that name in front of texts (default: as the model's files say)."`
	Prompt       string `placeholder:"TEXT" help:"Put TEXT in front of texts, in place of the model's prompts."`
	Normalize    bool   `help:"Scale embeddings to length 1 (default: as the model's files say)."`
	JSON         bool   `name:"json" help:"Accepted for uniformity; the output is always JSON."`
}

// Run prints {"embeddings":[[…],…]}: first the texts, then the lists of ids.
func (c *embedCmd) Run(ctx context.Context, m *model) error {
	output, err := c.resolve(m)
	if err != nil {
		return err
	}
	graph, err := m.graphWith("embed --pooling "+c.Pooling, output)
	if err != nil {
		return err
	}
	m.prefetch(&c.engineFlags)
	texts, err := c.texts(m)
	if err != nil {
		return err
	}
	queries, err := m.queries(&c.encoderFlags, texts)
	if err != nil {
		return err
	}
	eng, err := m.engine(ctx, &c.engineFlags, batchOptions(graph, texts))
	if err != nil {
		return err
	}
	at := eng.Output(output)
	outRows := eng.Graph().Outputs[at].Rows == "out_rows"
	for i := range queries {
		switch {
		case c.Pooling == "pooler":
			queries[i].Rows = []int{0}
		case outRows && c.Pooling != "last":
			queries[i].Last = -1
		}
	}
	pools := make([]pooling.Pool, len(texts))
	err = m.batch(ctx, queries, func(i int, r engine.Result) error {
		rows := r.Tokens()
		if outRows {
			rows = r.Rows
		}
		for k := range rows {
			pools[i].Add(r.Row(at, k), c.Pooling)
		}
		return nil
	})
	if err != nil {
		return err
	}
	out := newRowWriter(m.Stdout)
	fmt.Fprint(out.w, `{"embeddings":[`)
	for i := range pools {
		if err := out.row(pools[i].Vector(c.Pooling, c.Normalize)); err != nil {
			return fmt.Errorf("embedding: %w", err)
		}
	}
	fmt.Fprint(out.w, "]}\n")
	return out.w.Flush()
}

// queries returns the queries for texts, with the token types of the flags.
func (m *model) queries(f *encoderFlags, texts [][]int32) (queries []engine.Query, err error) {
	queries = make([]engine.Query, len(texts))
	for i, ids := range texts {
		queries[i].Tokens = ids
		if queries[i].Types, err = m.types(f, len(ids)); err != nil {
			return nil, err
		}
	}
	return queries, nil
}

// resolve sets unset flags from the model's files and returns the name of the output to
// pool. --pooling is of the hidden states.
func (c *embedCmd) resolve(m *model) (output string, err error) {
	if c.Pooling != "" {
		if c.Pooling == "pooler" {
			return "pooled", nil
		}
		return "hidden", nil
	}
	how, normalize, err := pooling.Of(m.manifest)
	c.Pooling, c.Normalize = how, c.Normalize || normalize
	return pooling.Output(m.manifest, how), wrong(err)
}

// texts returns the ids of texts, truncated and in lower case if the model's
// files say so, with a prompt in front.
func (c *embedCmd) texts(m *model) ([][]int32, error) {
	prompt, err := pooling.Prompt(m.manifest, c.PromptName)
	if err != nil {
		return nil, wrong(err)
	}
	if c.Prompt != "" {
		prompt = c.Prompt
	}
	var lists []string
	for _, text := range c.Text {
		ids, err := m.bin.EncodeWhole(prompt + text)
		if err != nil {
			return nil, err
		}
		list := string(jsonInts(ids))
		lists = append(lists, list[1:len(list)-1])
	}
	return m.texts(nil, append(lists, c.IDs...))
}

// texts returns the ids of texts and of lists of ids, at least one.
func (m *model) texts(texts, lists []string) ([][]int32, error) {
	var all [][]int32
	for _, text := range texts {
		ids, err := m.encode(text)
		if err != nil {
			return nil, err
		}
		all = append(all, ids)
	}
	for _, list := range lists {
		ids, err := m.ids(list)
		if err != nil {
			return nil, err
		}
		all = append(all, ids)
	}
	if len(all) == 0 {
		return nil, wrong(errors.New("expected a text, or token ids"))
	}
	for _, ids := range all {
		if err := m.fits(ids); err != nil {
			return nil, err
		}
	}
	return all, nil
}
