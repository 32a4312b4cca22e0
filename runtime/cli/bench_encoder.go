//go:build unix

package cli

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/engine"
)

// planEncoder makes sentences of the requested lengths for an encoder.
func (c *benchCmd) planEncoder(m *model, b *bench) ([]benchTest, engine.Options, error) {
	var opt engine.Options
	if err := c.validateRuns(); err != nil {
		return nil, opt, err
	}
	lengths := c.Lengths
	if len(lengths) == 0 {
		for i := range 64 {
			lengths = append(lengths, 16+i*29%33)
		}
	}
	opt.Context, opt.MaxSeqs = slices.Max(lengths), slices.Max(c.Batch)
	if slices.Min(lengths) < 1 || opt.Context > m.manifest.Context {
		return nil, opt, wrong(fmt.Errorf("--lengths from %d to %d: expected numbers between 1 and %d", slices.Min(lengths), opt.Context, m.manifest.Context))
	}
	for q, n := range lengths {
		tokens := make([]int32, n)
		for i := range tokens {
			tokens[i] = b.token(q, i)
		}
		b.sentences = append(b.sentences, tokens)
	}
	opt.MaxTokens = max(engine.DefaultMaxTokens, opt.Context)
	opt.Graph = m.manifest.Graphs[0].Name
	return []benchTest{{"enc", len(lengths), (*bench).encode}}, opt, nil
}

// encode runs all sentences in batches, without pooling: work after the model
// is the same for all implementations.
func (b *bench) encode(ctx context.Context, _, batch int) (time.Duration, error) {
	start := time.Now()
	for lo := 0; lo < len(b.sentences); lo += batch {
		var ids []engine.ID
		for _, tokens := range b.sentences[lo:min(lo+batch, len(b.sentences))] {
			id, err := b.eng.AddQuery(engine.Query{Tokens: tokens})
			if err != nil {
				return 0, err
			}
			ids = append(ids, id)
		}
		for ready := 0; ready < len(ids); {
			results, err := b.eng.Infer(ctx)
			if err != nil {
				return 0, err
			}
			ready += len(results)
		}
		b.removeAll(ids)
	}
	return time.Since(start), nil
}
