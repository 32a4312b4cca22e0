//go:build unix

package server_test

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A letterReranker scores a pair by the letters of the query in the document: each adds
// one half. With strict, a document with a "!" fails.
type letterReranker struct {
	tok    *tokenizer.Tokenizer
	strict bool
}

func (r letterReranker) Tokens(query, document string, within tokenizer.PairLimit) (ids, types []int32, err error) {
	return r.tok.EncodePair(query, document, within)
}

func (r letterReranker) Score(_ context.Context, _ scheduler.Job, ids, types []int32) (score float64, err error) {
	n := slices.Index(types, 1)
	if n < 0 {
		n = len(ids)
	}
	for _, id := range ids[n:] {
		if id == 0 && r.strict {
			return 0, errors.New("the score is NaN; the weights or the input are damaged")
		}
		if slices.Contains(ids[:n], id) {
			score += 0.5
		}
	}
	return score, nil
}

func startReranker(t *testing.T) *service {
	return start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Reranker = letterReranker{c.Tokenizer, true}
	})
}

type reranking struct {
	ID, Object, Model string
	Results           []struct {
		Index    int
		Score    float64 `json:"relevance_score"`
		Document *struct{ Text string }
	}
	Usage struct {
		Prompt int `json:"prompt_tokens"`
		Total  int `json:"total_tokens"`
	}
	Error *struct {
		Message     string
		Param, Code *string
	}
}

// TestRerank checks order, forms of documents, top_n and return_documents.
func TestRerank(t *testing.T) {
	t.Parallel()
	s := startReranker(t)
	for _, c := range []struct {
		keys   string
		want   string // "index score text" of each result
		tokens int
	}{
		{`"documents":["x","ab","a"]`, "1 1 ab,2 0.5 a,0 0 x", 10},
		{`"documents":[{"text":"x"},"ab",{"title":"b","text":"a"}],"top_n":2`, "1 1 ab,2 0.5 a", 10},
		{`"documents":["b","a","","a"],"top_n":9,"return_documents":true`, "0 0.5 b,1 0.5 a,3 0.5 a,2 0 ", 11},
		{`"documents":["x","a"],"return_documents":false,"rank_fields":["text"],"max_chunks_per_doc":null`, "1 0.5 -,0 0 -", 6},
		{`"documents":"aab","top_n":0`, "0 1.5 aab", 5},
	} {
		for _, path := range []string{"/v1/rerank", "/v2/rerank", "/rerank"} {
			var got reranking
			status, _ := s.post(t, path, `{"model":"fake","query":"ab",`+c.keys+`}`, &got)
			var list []string
			for _, r := range got.Results {
				text := "-"
				if r.Document != nil {
					text = r.Document.Text
				}
				list = append(list, fmt.Sprint(r.Index, " ", r.Score, " ", text))
			}
			if status != 200 || strings.Join(list, ",") != c.want || got.Usage.Prompt != c.tokens || got.Usage.Total != c.tokens || got.Model != "fake" || got.ID == "" {
				t.Errorf("%s %s: status %d, %+v", path, c.keys, status, got)
			}
		}
	}
}

// TestShortened checks the tokens of pairs that a request shortens. The query has 2 tokens.
func TestShortened(t *testing.T) {
	t.Parallel()
	s := startReranker(t)
	for keys, want := range map[string]int{
		`"documents":["abcdef"],"max_tokens_per_doc":3`: 5, `"documents":["abcdef","ab"],"max_tokens_per_doc":4`: 10, `"documents":["abcdef"],"truncate_prompt_tokens":4`: 4,
		`"documents":["abcdef"],"truncate_prompt_tokens":3`: 3, `"documents":["abcdef"],"truncate_prompt_tokens":-1`: 8, `"documents":["` + strings.Repeat("b", 60000) + `"],"truncate_prompt_tokens":-1`: 512,
		`"documents":["` + strings.Repeat("b", 60000) + `"],"max_tokens_per_doc":100`: 102, `"documents":["` + strings.Repeat("c", 3000) + `"],"max_tokens_per_doc":600,"truncate_prompt_tokens":9`: 9,
	} {
		var got reranking
		if status, _ := s.post(t, "/v1/rerank", `{"query":"ab",`+keys+`}`, &got); status != 200 || got.Usage.Total != want {
			t.Errorf("%.40s: status %d, %d tokens, expected %d: %+v", keys, status, got.Usage.Total, want, got.Error)
		}
	}
}

// TestScore checks one text against many, and pairs.
func TestScore(t *testing.T) {
	t.Parallel()
	s := startReranker(t)
	for keys, want := range map[string][]float64{
		`"text_1":"ab","text_2":"a"`: {0.5}, `"text_1":["ab"],"text_2":["a","x","ba"]`: {0.5, 0, 1}, `"text_1":["a","b"],"text_2":["a","a"]`: {0.5, 0},
	} {
		for _, path := range []string{"/v1/score", "/score"} {
			var got struct {
				Object string
				Data   []struct {
					Index  int
					Object string
					Score  float64
				}
			}
			status, _ := s.post(t, path, `{`+keys+`}`, &got)
			var scores []float64
			for i, d := range got.Data {
				if scores = append(scores, d.Score); d.Index != i || d.Object != "score" {
					t.Errorf("%s: %+v", keys, d)
				}
			}
			if status != 200 || got.Object != "list" || !slices.Equal(scores, want) {
				t.Errorf("%s: status %d, %+v, expected %v", keys, status, got, want)
			}
		}
	}
}

// TestRefusedRerank checks the messages of refused requests.
func TestRefusedRerank(t *testing.T) {
	t.Parallel()
	s := startReranker(t)
	long := strings.Repeat("a", 600)
	for body, want := range map[string]string{
		`"documents":["a"]`: "query: expected a text", `"query":"a"`: "documents: expected between", `"query":"a","documents":[]`: "documents: expected between",
		`"query":"a","documents":[1]`: "documents: expected a text, found number", `"query":"a","documents":["a",null]`: "documents: expected a text, found null",
		`"query":"a","documents":[{"title":"a"}]`: "documents: expected a text, found object", `"query":"a","documents":{"text":"a"}`: "documents: expected a list, found object",
		`"query":"a","documents":["a"],"top_n":-1`: "top_n: expected", `"query":"a","documents":["a"],"max_chunks_per_doc":5`: "max_chunks_per_doc is not supported", `"query":"a","documents":["a"],"truncate_prompt_tokens":-2`: "truncate_prompt_tokens: expected a number between 1 and 512",
		`"query":"` + long + `","documents":["a"],"max_tokens_per_doc":1`: "documents[0]: this model's maximum",
		`"query":"a","documents":["a","` + long + `"]`:                    "documents[1]: this model's maximum context length is 512", `"query":"` + long + `","documents":["a"]`: "documents[0]: this model's",
		`"query":"` + long[:300] + `","documents":["` + long[:300] + `"]`: "documents[0]: this model's maximum context length is 512 tokens; the text has more", `"model":"x","query":"a","documents":["a"]`: "the model \"x\" does not exist",
	} {
		var got reranking
		if status, _ := s.post(t, "/v1/rerank", `{`+body+`}`, &got); status/100 != 4 || got.Error == nil || !strings.HasPrefix(got.Error.Message, want) {
			t.Errorf("%.60s: status %d, %+v, expected %q", body, status, got.Error, want)
		}
	}
	var got reranking
	if status, _ := s.post(t, "/v1/rerank", `{"query":"a","documents":["a","!"]}`, &got); status != 500 || !strings.Contains(got.Error.Message, "NaN") {
		t.Errorf("a score that is none: status %d, %+v", status, got.Error)
	}
	plain := start(t, nil)
	for _, path := range []string{"/v1/rerank", "/v1/score"} {
		if status, _ := plain.post(t, path, `{"query":"a","documents":["a"],"text_1":"a","text_2":"a"}`, &got); status != 400 || !strings.Contains(got.Error.Message, "fake does not rerank") {
			t.Errorf("%s: status %d, %+v", path, status, got.Error)
		}
	}
}

// TestRerankMemory checks that a long query cannot be repeated without limit.
func TestRerankMemory(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) {
		c.Reranker, c.Memory = letterReranker{c.Tokenizer, true}, 8<<20
	})
	body, err := json.Marshal(map[string]any{"query": strings.Repeat("a", 500), "documents": slices.Repeat([]string{"b"}, 2048)})
	if err != nil {
		t.Fatal(err)
	}
	var got reranking
	if status, _ := s.post(t, "/v1/rerank", string(body), &got); status != 400 || !strings.Contains(got.Error.Message, "more than the limit of 4 MB per client") {
		t.Errorf("status %d, %+v", status, got.Error)
	}
}
