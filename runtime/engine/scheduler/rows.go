//go:build unix

package scheduler

import (
	"context"

	"github.com/iflowc/iflowc/runtime/engine"
)

// Rows computes a query and calls visit with the result of each step. The engine waits
// while visit runs; visit copies the rows it needs.
func (s *Scheduler) Rows(ctx context.Context, j Job, q engine.Query, visit func(engine.Result) error) error {
	t := &rows{query: q, visit: visit, box: newMailbox[struct{}]()}
	if err := s.submit(ctx, j, t); err != nil {
		return err
	}
	_, err := t.box.get(ctx)
	return err
}

// rows is the task of Rows.
type rows struct {
	query engine.Query
	visit func(engine.Result) error
	box   *mailbox[struct{}]
	ready bool
}

func (t *rows) slots() int    { return 1 }
func (t *rows) tokens() int   { return len(t.query.Tokens) + len(t.query.Source) }
func (t *rows) end(err error) { t.box.close(err) }

func (t *rows) start(x *access) error {
	_, err := x.add(t.query)
	return err
}

func (t *rows) take(r engine.Result) error {
	t.ready = t.ready || r.Ready
	return t.visit(r)
}

func (t *rows) apply(*access) (bool, error) { return t.ready, nil }
