//go:build unix

package cli

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/engine"
)

type logitsCmd struct {
	promptFlags  `embed:""`
	encoderFlags `embed:""`
	engineFlags  `embed:""`
	EncoderIDs   string `name:"encoder-ids" placeholder:"1,2,3" help:"Encoder input as token ids, for an encoder-decoder."`
	Last         int    `default:"1" placeholder:"1" help:"Number of last tokens to print."`
	JSON         bool   `name:"json" help:"Accepted for uniformity; the output is always JSON."`
}

// Run prints {"ids":[…],"logits":[[…],…]}.
func (c *logitsCmd) Run(ctx context.Context, m *model) error {
	if c.Last < 1 {
		return wrong(fmt.Errorf("--last %d: expected 1 or more", c.Last))
	}
	graph, err := m.graphWith("logits", "logits")
	if err != nil {
		return err
	}
	m.prefetch(&c.engineFlags)
	ids, err := m.prompt(&c.promptFlags)
	if err != nil {
		return err
	}
	query := engine.Query{Tokens: ids, Last: min(c.Last, len(ids))}
	if query.Types, err = m.types(&c.encoderFlags, len(ids)); err != nil {
		return err
	}
	if query.Source, err = m.source(c.EncoderIDs); err != nil {
		return err
	}
	opt := engine.Options{Graph: graph, Context: max(len(ids), len(query.Source))}
	if graph == encodeGraph {
		opt.MaxOutRows = query.Last
	}
	if err := m.fits(ids); err != nil {
		return err
	}
	eng, err := m.engine(ctx, &c.engineFlags, opt)
	if err != nil {
		return err
	}
	out := newRowWriter(m.Stdout)
	fmt.Fprintf(out.w, `{"ids":%s,"logits":[`, jsonInts(ids))
	at := eng.Output("logits")
	err = m.each(ctx, query, func(r engine.Result) error {
		for i := range r.Rows {
			row := r.Row(at, i)
			if err := out.row(row[:min(m.manifest.Vocab, len(row))]); err != nil {
				return fmt.Errorf("logits: %w", err)
			}
		}
		return nil
	})
	if err != nil {
		return err
	}
	fmt.Fprint(out.w, "]}\n")
	return out.w.Flush()
}

// source returns the ids for an encoder-decoder's encoder; other models have
// none.
func (m *model) source(list string) ([]int32, error) {
	both := m.manifest.Network == encoderDecoder
	switch {
	case list == "" && !both:
		return nil, nil
	case list == "":
		return nil, wrong(fmt.Errorf("%s is an encoder-decoder: expected --encoder-ids for its encoder", m.manifest.Name))
	case !both:
		return nil, wrong(fmt.Errorf("%s is %s: omit --encoder-ids", m.manifest.Name, article(m.manifest.Network)))
	}
	ids, err := m.ids(list)
	if err != nil {
		return nil, err
	}
	return ids, m.fits(ids)
}

// each runs one query to the end of its tokens and calls back with every step's
// result.
func (m *model) each(ctx context.Context, q engine.Query, visit func(engine.Result) error) error {
	id, err := m.eng.AddQuery(q)
	if err != nil {
		return err
	}
	defer m.eng.Remove(id)
	for {
		results, err := m.eng.Infer(ctx)
		if err != nil {
			return err
		}
		if err := visit(results[0]); err != nil || results[0].Ready {
			return err
		}
	}
}

// jsonInts formats ids as a JSON array.
func jsonInts(ids []int32) []byte {
	b := []byte{'['}
	for i, id := range ids {
		if i > 0 {
			b = append(b, ',')
		}
		b = fmt.Append(b, id)
	}
	return append(b, ']')
}
