//go:build unix

package cli

import (
	"context"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// scoreFunctions are the functions from a pair's logit to its score, by the names of
// PyTorch's modules. Sentence-transformers uses Sigmoid unless the model's files name
// another one.
var scoreFunctions = map[string]func(float64) float64{
	"": sigmoid, "Sigmoid": sigmoid, "Identity": func(x float64) float64 { return x }, "Tanh": math.Tanh,
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// activation returns the function from a pair's logit to its score.
func (m *model) activation() (func(float64) float64, error) {
	f, ok := scoreFunctions[m.manifest.Activation]
	if !ok {
		return nil, wrong(fmt.Errorf("%s scores pairs with the activation %q; supported are Identity, Sigmoid and Tanh", m.manifest.Name, m.manifest.Activation))
	}
	return f, nil
}

// relevance returns the score of a pair's logit.
func (m *model) relevance(logit float32) (float64, error) {
	f, err := m.activation()
	if err != nil {
		return 0, err
	}
	x := f(float64(logit))
	if math.IsNaN(x) || math.IsInf(x, 0) {
		return 0, fmt.Errorf("the score is %v; the weights or the input are damaged", x)
	}
	return x, nil
}

// A reranker scores pairs of texts as the subcommand classify does.
type reranker struct {
	m       *model
	encoder *pairEncoder
	s       *scheduler.Scheduler
	at      int          // index of the output with the score
	query   engine.Query // template of every query
}

// reranks returns the service's reranker; nil if the model has no single score for a
// pair of texts.
func reranks(m *model, eng *engine.Engine, s *scheduler.Scheduler) server.Reranker {
	at := eng.Output(m.judged())
	if at < 0 || m.tok == nil || m.manifest.LabelsTokens || m.manifest.Score == nil && eng.Graph().Outputs[at].Used != 1 {
		return nil
	}
	encoder, err := m.pairs()
	if err == nil {
		_, err = m.activation()
	}
	if err != nil {
		fmt.Fprintf(m.Stderr, "note: /v1/rerank is not served: %v\n", err)
		return nil
	}
	r := &reranker{m: m, encoder: encoder, s: s, at: at, query: engine.Query{Last: 1}} // a decoder's last token has read the pair
	if eng.Graph().Name == encodeGraph {
		r.query = engine.Query{Rows: []int{0}}
	}
	return r
}

// Tokens returns the tokens of a pair, and their types if the model has any.
func (r *reranker) Tokens(query, document string, within tokenizer.PairLimit) (ids, types []int32, err error) {
	return r.encoder.encode(query, document, within)
}

// Score returns the relevance of a pair's document to its query.
func (r *reranker) Score(ctx context.Context, j scheduler.Job, ids, types []int32) (score float64, err error) {
	q := r.query
	q.Tokens, q.Types = ids, types
	err = r.s.Rows(ctx, j, q, func(res engine.Result) (err error) {
		if res.Rows > 0 {
			score, err = r.m.relevance(r.m.scored(res.Row(r.at, 0))[0])
		}
		return err
	})
	return score, err
}
