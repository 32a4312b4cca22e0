//go:build unix

package cli

import (
	"context"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
)

// filler returns the handler of /fill, which works like the subcommand fill;
// nil if the engine has no masked-LM head.
func filler(m *model, eng *engine.Engine, s *scheduler.Scheduler) func(context.Context, scheduler.Job, string, int) ([]server.Mask, error) {
	at := eng.Output("logits")
	if at < 0 || eng.Graph().Name != encodeGraph || m.tok == nil {
		return nil
	}
	return func(ctx context.Context, j scheduler.Job, text string, best int) ([]server.Mask, error) {
		ids, masks, err := m.masked(m.tok, text)
		if err != nil {
			return nil, server.RequestError{Err: err}
		}
		if n := eng.Options().MaxOutRows; len(masks) > n {
			masks = masks[:n]
		}
		var out []server.Mask
		err = s.Rows(ctx, j, engine.Query{Tokens: ids, Rows: masks}, func(r engine.Result) error {
			for i, mask := range masks {
				row := r.Row(at, i)
				list, err := mostProbable(m.tok, row[:min(m.manifest.Vocab, len(row))], best)
				if err != nil {
					return err
				}
				g := server.Mask{Position: mask}
				for _, c := range list {
					g.Candidates = append(g.Candidates, server.Candidate(c))
				}
				out = append(out, g)
			}
			return nil
		})
		return out, err
	}
}
