package main

import (
	"bytes"
	"encoding/json"
	"fmt"
	"io"
	"maps"
	"math"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/demotest"
	"github.com/iflowc/iflowc/ir/irtest"
)

// TestRerank compares the scores of /v1/rerank and /v1/score with transformers: the pair
// is that of the tiny BERT classifier bert_classes, of which one class is kept.
func TestRerank(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	var want struct {
		IDs, Types []int
		Classes    [][]float64
	}
	readJSONFile(t, tinyModels+"bert_classes/expected.json", &want)
	query, document := words(want.IDs[:10]), words(want.IDs[10:])
	for _, class := range irtest.Sample(t, 1, []int{0, 1, 2}) {
		logit := want.Classes[0][class]
		activation := []string{"torch.nn.modules.activation.Sigmoid", "torch.nn.modules.linear.Identity", ""}[class]
		dir := wordModel(t, "bert_classes", map[string]any{
			"id2label": map[string]string{"0": "LABEL_0"}, "label2id": map[string]int{"LABEL_0": 0}, "sentence_transformers": map[string]string{"activation_fn": activation},
		}, nil)
		path := filepath.Join(dir, "model.safetensors")
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, keepRow(t, data, class, "classifier.weight", "classifier.bias"), 0o644); err != nil {
			t.Fatal(err)
		}
		score := 1 / (1 + math.Exp(-logit))
		if class == 1 {
			score = logit
		}
		compareScores(t, dir, query, document, true, score)
	}
}

// TestRerankDecoder compares the scores of a decoder that scores by the next token.
func TestRerankDecoder(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	var want struct {
		IDs    []int
		Logits [][]float64
	}
	readJSONFile(t, tinyModels+"qwen3/expected.json", &want)
	dir := wordModel(t, "qwen3", nil, map[string]any{
		"modules.json":             []map[string]string{{"path": "", "type": "a.Transformer"}, {"path": "1_LogitScore", "type": "a.LogitScore"}},
		"1_LogitScore/config.json": map[string]int{"true_token_id": 29, "false_token_id": 32},
		"tokenizer_config.json":    map[string]string{"chat_template": "{% for m in messages %}{{ m.content }} {% endfor %}"},
	})
	last := want.Logits[len(want.Logits)-1]
	compareScores(t, dir, words(want.IDs[:10]), words(want.IDs[10:]), false, 1/(1+math.Exp(last[32]-last[29])))
}

// compareScores serves a model and compares the score of a pair, alone, among others and
// shortened. shortens: the model shortens pairs, not only documents.
func compareScores(t *testing.T, dir, query, document string, shortens bool, want float64) {
	t.Helper()
	url := serving(t, dir, "--quant", "f32", "--isa", "portable", "--alias", "reranker")
	var ranked struct {
		Results []struct {
			Index    int
			Score    float64 `json:"relevance_score"`
			Document struct{ Text string }
		}
		Usage struct {
			Tokens int `json:"total_tokens"`
		}
	}
	postJSON(t, url+"/v1/rerank", map[string]any{"model": "cohere/Reranker", "query": query, "documents": []any{"w5", map[string]string{"text": document}, document + " w9"}}, &ranked)
	if n := 3*len(strings.Fields(query)) + 2*len(strings.Fields(document)) + 2; len(ranked.Results) != 3 || ranked.Usage.Tokens != n {
		t.Fatalf("%+v", ranked)
	}
	for i, r := range ranked.Results {
		if i > 0 && r.Score > ranked.Results[i-1].Score {
			t.Errorf("not sorted: %+v", ranked)
		}
		if r.Index == 1 && (math.Abs(r.Score-want) > 1e-4 || r.Document.Text != document) {
			t.Errorf("%+v, transformers has %g", r, want)
		}
	}
	for key, tokens := range map[string]int{"truncate_prompt_tokens": len(strings.Fields(query + " " + document)), "max_tokens_per_doc": len(strings.Fields(document))} {
		body := map[string]any{"query": query, "documents": []string{document + " w9 w5"}, key: tokens}
		if !shortens && key == "truncate_prompt_tokens" {
			continue
		}
		postJSON(t, url+"/v1/rerank", body, &ranked)
		if r := ranked.Results[0]; math.Abs(r.Score-want) > 1e-4 {
			t.Errorf("%s: %+v, transformers has %g", key, r, want)
		}
	}
	var scored struct{ Data []struct{ Score float64 } }
	postJSON(t, url+"/v1/score", map[string]any{"text_1": query, "text_2": []string{document, "w5"}}, &scored)
	if len(scored.Data) != 2 || math.Abs(scored.Data[0].Score-want) > 1e-4 {
		t.Errorf("%+v, transformers has %g", scored, want)
	}
}

// words returns the text of ids of a wordModel.
func words(ids []int) string {
	list := make([]string, len(ids))
	for i, id := range ids {
		list[i] = fmt.Sprintf("w%d", id)
	}
	return strings.Join(list, " ")
}

// wordModel copies a tiny model. It changes its config.json, and adds a tokenizer of the
// words w0, w1 and so on, and other JSON files.
func wordModel(t *testing.T, family string, changes, files map[string]any) string {
	t.Helper()
	dir := t.TempDir()
	var config map[string]any
	readJSONFile(t, tinyModels+family+"/config.json", &config)
	maps.Copy(config, changes)
	vocab := map[string]int{}
	for i := range int(config["vocab_size"].(float64)) {
		vocab[fmt.Sprintf("w%d", i)] = i
	}
	all := map[string]any{"config.json": config, "tokenizer.json": map[string]any{
		"version": "1.0", "added_tokens": []any{}, "pre_tokenizer": map[string]any{"type": "Whitespace"},
		"model": map[string]any{"type": "WordLevel", "unk_token": "w0", "vocab": vocab},
	}}
	maps.Copy(all, files)
	for name, v := range all {
		data, err := json.Marshal(v)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.MkdirAll(filepath.Join(dir, filepath.Dir(name)), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	data, err := os.ReadFile(tinyModels + family + "/model.safetensors")
	if err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(dir, "model.safetensors"), data, 0o644); err != nil {
		t.Fatal(err)
	}
	return dir
}

// keepRow returns a safetensors file with one row of the named tensors.
func keepRow(t *testing.T, file []byte, row int, names ...string) []byte {
	t.Helper()
	out, err := demotest.EditTensors(file, func(name string, h *demotest.StoredTensor, data []byte) []byte {
		if !slices.Contains(names, name) {
			return data
		}
		bytes := len(data) / h.Shape[0]
		h.Shape[0] = 1
		return data[row*bytes:][:bytes]
	})
	if err != nil {
		t.Fatal(err)
	}
	return out
}

func readJSONFile(t *testing.T, path string, v any) {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		t.Fatalf("%s: %v", path, err)
	}
}

// postJSON sends a request that succeeds and decodes its answer.
func postJSON(t *testing.T, url string, request, answer any) {
	t.Helper()
	body, err := json.Marshal(request)
	if err != nil {
		t.Fatal(err)
	}
	resp, err := http.Post(url, "application/json", bytes.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	defer resp.Body.Close()
	data, err := io.ReadAll(resp.Body)
	if err != nil || resp.StatusCode != http.StatusOK {
		t.Fatalf("%s: status %d, %s, %v", url, resp.StatusCode, data, err)
	}
	if err := json.Unmarshal(data, answer); err != nil {
		t.Fatal(err)
	}
}
