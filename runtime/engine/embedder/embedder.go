//go:build unix

// Package embedder makes vectors of texts with a decoder or an encoder, for the
// service and for programs that import a model.
package embedder

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/pooling"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// An Embedder makes vectors of texts as the model's files say, scaled to
// length 1, each text by itself among whatever else the scheduler runs.
type Embedder struct {
	encode  func(text string) ([]int32, error)
	s       *scheduler.Scheduler
	vocab   int
	context int
	pooling string
	output  int
	query   engine.Query // what every query wants
	outRows bool         // the output counts output rows
}

// New gives nil where the engine has no hidden states to make vectors of. encode
// is what the model reads of a text.
func New(m *manifest.Manifest, encode func(text string) ([]int32, error), eng *engine.Engine, s *scheduler.Scheduler) *Embedder {
	how, _, err := pooling.Of(m)
	if err != nil || m.Network == "encoder_decoder" {
		return nil
	}
	e := &Embedder{encode: encode, s: s, vocab: m.Vocab, context: eng.Options().Context, pooling: how}
	name := "hidden"
	if how == "pooler" {
		name = "pooled"
	}
	if e.output = eng.Output(name); e.output < 0 {
		return nil
	}
	e.outRows = eng.Graph().Outputs[e.output].Rows == "out_rows"
	switch {
	case how == "pooler":
		e.query.Rows = []int{0}
	case e.outRows && how != "last":
		e.query.Last = -1
	}
	return e
}

// Tokens are what the model reads of a text; ids are taken as they are.
func (e *Embedder) Tokens(text string, ids []int32) ([]int32, error) {
	if ids == nil {
		var err error
		if ids, err = e.encode(text); err != nil {
			return nil, err
		}
	}
	for _, id := range ids {
		if id < 0 || int(id) >= e.vocab {
			return nil, fmt.Errorf("token id %d: the vocabulary has %d tokens", id, e.vocab)
		}
	}
	if len(ids) == 0 || len(ids) > e.context {
		return nil, fmt.Errorf("the text has %d tokens; expected 1 to %d", len(ids), e.context)
	}
	return ids, nil
}

// Embed computes the vector of a text's tokens.
func (e *Embedder) Embed(ctx context.Context, j scheduler.Job, tokens []int32) ([]float32, error) {
	var p pooling.Pool
	q := e.query
	q.Tokens = tokens
	err := e.s.Rows(ctx, j, q, func(r engine.Result) error {
		rows := r.Tokens()
		if e.outRows {
			rows = r.Rows
		}
		for k := range rows {
			p.Add(r.Row(e.output, k), e.pooling)
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return p.Vector(e.pooling, true), nil
}
