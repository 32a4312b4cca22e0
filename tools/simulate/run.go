//go:build unix

package main

import (
	"context"
	"fmt"
	"time"

	"github.com/iflowc/iflowc/passes/cost"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/engine"
)

// vocab is the vocabulary size of the simulated model.
const vocab = 64

// A measured is the result of a run.
type measured struct {
	Speed  float64 // tokens per second, of all sequences together
	Bubble float64
}

// measure runs sequences of a given length with the engine on simulated ranks,
// and checks every token.
func measure(ctx context.Context, r *ranks, sequences, tokens int) (measured, error) {
	r.vocab = vocab
	man := &manifest.Manifest{
		Format: manifest.Format, Name: r.model.Name, Network: "decoder_only", Vocab: vocab, Context: 4096,
		Graphs: []manifest.Graph{{Name: "decode", Outputs: []manifest.Output{{Name: "logits", Rows: "out_rows", Cols: vocab, Used: vocab}}}},
	}
	e, err := engine.Open(engine.Model{Manifest: man, Device: r}, engine.Options{Threads: 1, MaxSeqs: sequences, Context: tokens + 1})
	if err != nil {
		return measured{}, err
	}
	defer e.Close()
	last, count := map[engine.ID]int32{}, map[engine.ID]int32{}
	for i := range int32(sequences) {
		id, err := e.AddQuery(engine.Query{Tokens: []int32{i % vocab}})
		if err != nil {
			return measured{}, err
		}
		last[id] = i % vocab
	}
	start := time.Now()
	for left := sequences * tokens; left > 0; {
		results, err := e.Infer(ctx)
		if err != nil {
			return measured{}, err
		}
		for _, res := range results {
			left--
			token := next(last[res.ID], count[res.ID], vocab)
			if res.Row(0, 0)[token] != 1 {
				return measured{}, fmt.Errorf("sequence %d got another token than alone", res.ID)
			}
			last[res.ID], count[res.ID] = token, count[res.ID]+1
			if int(count[res.ID]) == tokens {
				e.Remove(res.ID)
			} else if err := e.Commit(res.ID, token); err != nil {
				return measured{}, err
			}
		}
	}
	return measured{float64(sequences*tokens) / time.Since(start).Seconds(), e.Stats().Bubble()}, nil
}

// A schedule is a measured row of Table 5.
type schedule struct {
	cost.ReportRow
	One, All measured
}

// schedules measures the three schedules of the report, with one sequence and
// with as many as stages.
func schedules(ctx context.Context, model *cost.Model, machine *cost.Machine, tokens int) ([]schedule, error) {
	var out []schedule
	for _, row := range cost.ReportRows {
		r := &ranks{model: model, machine: machine, plan: cost.Spread(len(model.Layers), row.Stages, row.TPSize)}
		one, err := measure(ctx, r, 1, tokens)
		if err != nil {
			return nil, err
		}
		all, err := measure(ctx, r, row.Stages, tokens)
		if err != nil {
			return nil, err
		}
		out = append(out, schedule{row, one, all})
	}
	return out, nil
}
