//go:build unix

package cli

import (
	"context"
	"errors"

	"github.com/iflowc/iflowc/runtime/engine"
)

// batchSeqs is the maximum number of texts per step.
const batchSeqs = 16

// batchOptions returns engine options for a batch of texts.
func batchOptions(graph string, texts [][]int32) engine.Options {
	opt := engine.Options{Graph: graph, MaxSeqs: min(len(texts), batchSeqs)}
	for _, ids := range texts {
		opt.Context = max(opt.Context, len(ids))
	}
	return opt
}

// batch runs queries to the end of their tokens, several at once, and calls back
// with each step's results and the query's index.
func (m *model) batch(ctx context.Context, queries []engine.Query, visit func(int, engine.Result) error) error {
	index := map[engine.ID]int{}
	next := 0
	for next < len(queries) || len(index) > 0 {
		for next < len(queries) {
			id, err := m.eng.AddQuery(queries[next])
			if errors.Is(err, engine.ErrBusy) {
				break
			}
			if err != nil {
				return err
			}
			index[id] = next
			next++
		}
		results, err := m.eng.Infer(ctx)
		if err != nil {
			return err
		}
		for _, r := range results {
			if err := visit(index[r.ID], r); err != nil {
				return err
			}
			if r.Ready {
				delete(index, r.ID)
			}
		}
		for _, r := range results {
			if r.Ready {
				m.eng.Remove(r.ID)
			}
		}
	}
	return nil
}
