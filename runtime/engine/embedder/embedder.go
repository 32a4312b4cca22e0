//go:build unix

// Package embedder computes embeddings of texts with a decoder or an encoder, for the
// HTTP server and for programs that import a model.
package embedder

import (
	"context"
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/pooling"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// An Embedder computes embeddings as the model's files declare (pooling), scaled to
// length 1. The scheduler batches its texts with other jobs.
type Embedder struct {
	m       *manifest.Manifest
	encode  func(text string) ([]int32, error)
	s       *scheduler.Scheduler
	vocab   int
	context int
	pooling string
	output  int
	query   engine.Query // template of every query
	outRows bool         // the output has one row per output row, not per token
}

// New returns an Embedder, or nil if the engine has no hidden states to pool. encode
// tokenizes a text, special tokens included.
func New(m *manifest.Manifest, encode func(text string) ([]int32, error), eng *engine.Engine, s *scheduler.Scheduler) *Embedder {
	how, _, err := pooling.Of(m)
	if err != nil || m.Network == "encoder_decoder" {
		return nil
	}
	e := &Embedder{m: m, encode: encode, s: s, vocab: m.Vocab, context: eng.Options().Context, pooling: how}
	if e.output = eng.Output(pooling.Output(m, how)); e.output < 0 {
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

// Tokens returns the tokens of a text behind a prompt of the model, or ids if they are not
// nil. It checks them against the vocabulary and the context.
func (e *Embedder) Tokens(prompt, text string, ids []int32) ([]int32, error) {
	before, err := pooling.Prompt(e.m, prompt)
	if err != nil {
		return nil, err
	}
	if ids == nil {
		if ids, err = e.encode(before + text); err != nil {
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

// Embed computes the embedding of a text's tokens.
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
