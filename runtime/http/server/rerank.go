//go:build unix

package server

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"reflect"
	"slices"
	"time"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A Reranker scores pairs of a query and a document.
type Reranker interface {
	// Tokens returns the tokens of a pair, and their types; nil if the model has none.
	Tokens(query, document string, within tokenizer.PairLimit) (ids, types []int32, err error)
	// Score returns the relevance of a pair's document to its query.
	Score(ctx context.Context, j scheduler.Job, ids, types []int32) (float64, error)
}

// rerankRequest is the body of /v1/rerank: that of Jina, Cohere, vLLM and llama.cpp.
type rerankRequest struct {
	shared
	Model     string    `json:"model"`                  // name of the served model or of an adapter; may be left out
	Query     string    `json:"query"`                  // the text that documents are compared with
	Documents documents `json:"documents"`              // texts, or objects with the key text
	TopN      int       `json:"top_n"`                  // number of results, best first; 0: all
	Return    *bool     `json:"return_documents"`       // false: leave the documents out of the results
	MaxTokens *int      `json:"max_tokens_per_doc"`     // shorten documents to this many tokens
	Truncate  *int      `json:"truncate_prompt_tokens"` // shorten pairs to this many tokens, the longer text first; −1: to the context

	unsupportedScore
}

// scoreRequest is the body of /v1/score, which is vLLM's.
type scoreRequest struct {
	shared
	Model    string    `json:"model"`                  // name of the served model or of an adapter; may be left out
	Text1    documents `json:"text_1"`                 // a query for all texts of text_2, or one for each
	Text2    documents `json:"text_2"`                 // a text or an array of texts
	Truncate *int      `json:"truncate_prompt_tokens"` // shorten pairs to this many tokens, the longer text first; −1: to the context

	unsupportedScore
}

// unsupportedScore lists keys of other rerankers that would change the scores.
type unsupportedScore struct {
	Activation    json.RawMessage `json:"activation" neutral:"true"`
	Instruction   json.RawMessage `json:"instruction" neutral:"\"\""`
	MaxChunks     json.RawMessage `json:"max_chunks_per_doc" use:"max_tokens_per_doc"`
	RankFields    json.RawMessage `json:"rank_fields" neutral:"[]|[\"text\"]"`
	UseActivation json.RawMessage `json:"use_activation" neutral:"true"`
}

// documents is a text or a list of texts. An element may also be an object with the key
// text.
type documents []string

// UnmarshalJSON accepts all forms of documents.
func (d *documents) UnmarshalJSON(data []byte) error {
	var list []json.RawMessage // without data, whose bytes decoding would overwrite
	if data[0] == '"' {
		list = append(list, data)
	} else if err := json.Unmarshal(data, &list); err != nil {
		return err
	}
	*d = nil
	for _, element := range list {
		var text string
		var object struct{ Text *string }
		if json.Unmarshal(element, &object) == nil && object.Text != nil {
			text = *object.Text
		} else if string(element) == "null" {
			return &json.UnmarshalTypeError{Value: "null", Type: reflect.TypeFor[string]()}
		} else if err := json.Unmarshal(element, &text); err != nil {
			return err
		}
		*d = append(*d, text)
	}
	return nil
}

// A textPair is a query and a document.
type textPair struct{ query, document string }

// A rerankResult is the score of a document.
type rerankResult struct {
	Index    int             `json:"index"`
	Score    float64         `json:"relevance_score"`
	Document *rerankDocument `json:"document,omitempty"`
}

type rerankDocument struct {
	Text string `json:"text"`
}

// rerank answers /v1/rerank.
func (s *Server) rerank(w http.ResponseWriter, r *http.Request) error {
	var req rerankRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if err := s.checkScores(r, req.Model, req.Truncate, req.unsupportedScore); err != nil {
		return err
	}
	switch {
	case req.Query == "":
		return invalid("query", "query: expected a text")
	case len(req.Documents) == 0 || len(req.Documents) > maxInputs:
		return invalid("documents", "documents: expected between 1 and %d texts", maxInputs)
	case req.TopN < 0:
		return invalid("top_n", "top_n: expected 1 or more, or 0 for all documents")
	case or(req.MaxTokens, 1) < 1:
		return invalid("max_tokens_per_doc", "max_tokens_per_doc: expected 1 or more")
	}
	pairs := make([]textPair, len(req.Documents))
	for i, d := range req.Documents {
		pairs[i] = textPair{req.Query, d}
	}
	scores, tokens, err := s.scorePairs(r, req.shared, "documents", pairs, s.pairLimit(req.Truncate, or(req.MaxTokens, 0)))
	if err != nil {
		return err
	}
	results := make([]rerankResult, len(scores))
	for i, v := range scores {
		results[i] = rerankResult{Index: i, Score: v}
	}
	slices.SortStableFunc(results, func(a, b rerankResult) int { return cmp.Compare(b.Score, a.Score) })
	if n := req.TopN; n > 0 && n < len(results) {
		results = results[:n]
	}
	if or(req.Return, true) {
		for i := range results {
			text := req.Documents[results[i].Index]
			if err := s.takeText(r, "return_documents", len(text)); err != nil {
				return err
			}
			results[i].Document = &rerankDocument{text}
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": newID("rerank-"), "object": "list", "model": s.modelName(r), "results": results, "usage": scoreUsage(tokens),
		"meta": map[string]any{"api_version": map[string]string{"version": "2"}, "tokens": map[string]int{"input_tokens": tokens}}, // Cohere's
	})
	return nil
}

func scoreUsage(tokens int) map[string]int {
	return map[string]int{"prompt_tokens": tokens, "completion_tokens": 0, "total_tokens": tokens}
}

// scoreObject is a result of /v1/score.
type scoreObject struct {
	Index  int     `json:"index"`
	Object string  `json:"object"`
	Score  float64 `json:"score"`
}

// score answers /v1/score.
func (s *Server) score(w http.ResponseWriter, r *http.Request) error {
	var req scoreRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if err := s.checkScores(r, req.Model, req.Truncate, req.unsupportedScore); err != nil {
		return err
	}
	n := len(req.Text2)
	switch {
	case n == 0 || n > maxInputs:
		return invalid("text_2", "text_2: expected between 1 and %d texts", maxInputs)
	case len(req.Text1) != 1 && len(req.Text1) != n:
		return invalid("text_1", "text_1: expected one text, or as many as text_2, %d", n)
	}
	pairs := make([]textPair, n)
	for i, d := range req.Text2 {
		pairs[i] = textPair{req.Text1[i%len(req.Text1)], d}
	}
	scores, tokens, err := s.scorePairs(r, req.shared, "text_2", pairs, s.pairLimit(req.Truncate, 0))
	if err != nil {
		return err
	}
	data := make([]scoreObject, n)
	for i, v := range scores {
		data[i] = scoreObject{i, "score", v}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"id": newID("score-"), "object": "list", "created": time.Now().Unix(), "model": s.modelName(r), "data": data, "usage": scoreUsage(tokens),
	})
	return nil
}

// checkScores checks what requests for scores have in common.
func (s *Server) checkScores(r *http.Request, model string, truncate *int, keys unsupportedScore) error {
	if err := s.selectModel(r, model); err != nil {
		return err
	}
	if s.cfg.Reranker == nil {
		return invalid("model", "%s does not rerank; reranking needs a model with one score for a pair of texts, such as a cross-encoder", s.cfg.Model)
	}
	if n := or(truncate, -1); n != -1 && (n < 1 || n > s.cfg.Context) {
		return invalid("truncate_prompt_tokens", "truncate_prompt_tokens: expected a number between 1 and %d, or -1 for the context", s.cfg.Context)
	}
	return refuseUnsupported(keys)
}

// pairLimit returns the limit of a request's pairs, without that of the service.
func (s *Server) pairLimit(truncate *int, document int) tokenizer.PairLimit {
	l := tokenizer.PairLimit{Second: document}
	if n := truncate; n != nil {
		l.Cut, l.Tokens = true, *n
	}
	if l.Tokens <= 0 {
		l.Tokens = s.cfg.Context
	}
	return l
}

// bytesOfPairToken is the memory of a token of a pair: its id and its type.
const bytesOfPairToken = 8

// scorePairs returns the scores of pairs and their number of tokens; param is the key
// that contains the documents.
func (s *Server) scorePairs(r *http.Request, p shared, param string, pairs []textPair, limit tokenizer.PairLimit) (scores []float64, total int, err error) {
	job, err := s.job(r, p)
	if err != nil {
		return nil, 0, err
	}
	ids, types := make([][]int32, len(pairs)), make([][]int32, len(pairs))
	for i, pair := range pairs {
		if limit.Cut || limit.Second > 0 { // only its beginning counts
			pair.document = beginning(pair.document, s.maxText()-len(pair.query))
		}
		if err := s.checkText(param, len(pair.query)+len(pair.document)); err != nil {
			return nil, 0, inElement(err, param, i)
		}
		if err := s.tokenizing(r, param, len(pair.query)+len(pair.document), func(within tokenizer.Limit) (err error) {
			limit.Tick = within.Tick
			ids[i], types[i], err = s.cfg.Reranker.Tokens(pair.query, pair.document, limit)
			return err
		}); err != nil {
			return nil, 0, inElement(err, param, i)
		}
		if len(ids[i]) == 0 {
			return nil, 0, invalid(param, "%s[%d]: the pair has no tokens", param, i)
		}
		if err := s.take(r, param, int64(bytesOfPairToken*len(ids[i]))); err != nil {
			return nil, 0, err
		}
		total += len(ids[i])
	}
	scores = make([]float64, len(pairs))
	if err := s.each(r.Context(), len(pairs), func(ctx context.Context, i int) (err error) {
		scores[i], err = s.cfg.Reranker.Score(ctx, job, ids[i], types[i])
		return err
	}); err != nil {
		return nil, 0, err
	}
	return scores, total, nil
}

// beginning returns the first n bytes of a text, or fewer, so that no character is split.
func beginning(text string, n int) string {
	if n = max(n, 0); n >= len(text) {
		return text
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return text[:n]
}

// inElement adds the element of a list that an error of a request is about.
func inElement(err error, param string, i int) error {
	var e *apiError
	if !errors.As(err, &e) || e.status != http.StatusBadRequest {
		return err
	}
	at := *e
	at.Message = fmt.Sprintf("%s[%d]: %s", param, i, e.Message)
	return &at
}
