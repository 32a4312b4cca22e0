//go:build unix

package server_test

import (
	"flag"
	"fmt"
	"go/ast"
	"go/parser"
	"go/token"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/server"
)

//go:generate go test . -run ^TestReference -update

var update = flag.Bool("update", false, "rewrite docs/reference/http-api.md and metrics.md; read the difference")

// endpoints describes the routes and the types of their requests.
var endpoints = map[string]struct{ request, does string }{
	"POST /v1/chat/completions":          {"chat", "Answers a conversation, formatted with the model's chat template."},
	"POST /v1/completions":               {"completions", "Continues one or several texts."},
	"POST /v1/responses":                 {"responses", "Answers a conversation, in the form of OpenAI's Responses API."},
	"POST /v1/responses/input_tokens":    {"", "Returns the number of input tokens of a request for a response."},
	"GET /v1/responses/{id}":             {"", "Returns a stored response."},
	"GET /v1/responses/{id}/input_items": {"", "Returns the input items of a stored response."},
	"DELETE /v1/responses/{id}":          {"", "Deletes a stored response."},
	"POST /v1/messages":                  {"messages", "Answers a conversation, in the form of Anthropic's Messages API."},
	"POST /v1/messages/count_tokens":     {"", "Returns the number of input tokens of a request for a message."},
	"POST /api/chat":                     {"ollama chat", "Answers a conversation, in the form of Ollama's API."},
	"POST /api/generate":                 {"ollama generate", "Answers a text or continues it, in the form of Ollama's API."},
	"POST /api/embed":                    {"ollama embed", "Returns one vector of length 1 for each text, in the form of Ollama's API."},
	"POST /api/embeddings":               {"ollama embeddings", "Returns a vector of length 1 for a text, in the older form of Ollama's API."},
	"POST /api/pull":                     {"ollama pull", "Reports success for a model that is served, in the form of Ollama's API."},
	"GET /api/ps":                        {"", "Lists the served model as loaded, in the form of Ollama's API."},
	"GET /api/version":                   {"", "Returns the version of Ollama whose API this is."},
	"GET /api/tags":                      {"", "Lists the served model, in the form of Ollama's API."},
	"POST /api/show":                     {"ollama show", "Describes the served model, in the form of Ollama's API."},
	"POST /infill":                       {"infill", "Writes the text between two others, as llama.cpp does. For models with tokens for infilling."},
	"POST /v1/embeddings":                {"embeddings", "Returns one vector of length 1 for each text."},
	"POST /v1/rerank":                    {"rerank", "Scores documents by their relevance to a query and sorts them. For cross-encoders and rerankers."},
	"POST /v2/rerank":                    {"", "The same as `POST /v1/rerank`."},
	"POST /rerank":                       {"", "The same as `POST /v1/rerank`."},
	"POST /v1/score":                     {"score", "Scores pairs of texts. For cross-encoders and rerankers."},
	"POST /score":                        {"", "The same as `POST /v1/score`."},
	"POST /apply-template":               {"", "Takes the request of `POST /v1/chat/completions` and returns the prompt that the chat template makes of it."},
	"POST /tokenize":                     {"tokenize", "Returns the tokens of a text."},
	"POST /detokenize":                   {"detokenize", "Returns the text of tokens."},
	"POST /translate":                    {"translate", "Translates texts by beam search. For encoder-decoder models."},
	"POST /fill":                         {"fill", "Returns candidates for masked tokens. For encoders with a masked-LM head."},
	"POST /v1/load_lora_adapter":         {"load adapter", "Loads a LoRA adapter, as vLLM does. For operators."},
	"POST /v1/unload_lora_adapter":       {"unload adapter", "Unloads a LoRA adapter, as vLLM does. For operators."},
	"GET /v1/models":                     {"", "Lists the served model, once for each of its names, and the loaded adapters."},
	"GET /v1/models/{id...}":             {"", "Describes the served model or an adapter. Another id gets status 404."},
	"GET /health":                        {"", "Returns the numbers of running and waiting requests, with status 200, once the service is ready."},
	"GET /props":                         {"", "Returns the properties of the model and the settings of the service."},
	"GET /metrics":                       {"", "Returns [metrics](metrics.md) in the text format of Prometheus."},
	"GET /{$}":                           {"", "Returns the chat page."},
	"POST / and POST /inferflow":         {"inferflow", "Takes Inferflow's own requests. Errors are in `ret_code`."},
}

// TestReference compares docs/reference/http-api.md with the routes and the types of
// their requests.
func TestReference(t *testing.T) {
	t.Parallel()
	var b strings.Builder
	b.WriteString("# HTTP API\n\nGenerated from the server's routes and request types by `go generate ./runtime/http/server`; do not edit.\n" +
		"[Serving](../serving.md) explains the features, [Security](../security.md#request-fields) has the range of every field.\n" +
		"Requests and responses of `/v1` are OpenAI's, those of `/v1/messages` Anthropic's.\n\n| endpoint | does |\n|---|---|\n")
	routes := append(server.Routes(), "POST / and POST /inferflow")
	for _, pattern := range routes {
		e, ok := endpoints[pattern]
		if !ok {
			t.Fatalf("%s: not described in this test", pattern)
		}
		fmt.Fprintf(&b, "| `%s` | %s |\n", shown(pattern), e.does)
	}
	docs, refused := fieldComments(t, ".", "../../text/chat"), map[string]bool{}
	for _, f := range server.Unsupported() {
		refused[f.Source] = true
	}
	rows := func(list []server.Field, leave func(f server.Field) bool) {
		b.WriteString("| field | type | meaning |\n|---|---|---|\n")
		for _, f := range list {
			if refused[f.Source] || leave(f) {
				continue
			}
			if docs[f.Source] == "" {
				t.Errorf("%s has no comment", f.Source)
			}
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", f.Name, f.Type, strings.ReplaceAll(docs[f.Source], "|", "\\|"))
		}
	}
	requests, sampling := server.RequestFields(), map[string]bool{}
	for _, f := range server.SamplingFields() {
		sampling[f.Source] = true
	}
	for _, pattern := range routes {
		e := endpoints[pattern]
		if e.request == "" {
			continue
		}
		fmt.Fprintf(&b, "\n## %s\n\n%s", shown(pattern), e.does)
		samples := slices.ContainsFunc(requests[e.request], func(f server.Field) bool { return f.Source == "sampling.Temperature" })
		if samples {
			b.WriteString(" The request may contain all [sampling fields](#sampling-fields) too.")
		}
		b.WriteString("\n\n")
		rows(requests[e.request], func(f server.Field) bool { return samples && sampling[f.Source] })
	}
	b.WriteString("\n## Sampling fields\n\nFields of every request that samples text.\n\n")
	rows(server.SamplingFields(), func(server.Field) bool { return false })
	writeRefused(&b)
	golden(t, "http-api.md", b.String())
}

// writeRefused writes the section on refused fields.
func writeRefused(b *strings.Builder) {
	b.WriteString("\n## Refused fields\n\nThese fields of other services would change the answer and are not implemented. A request with one gets status 400, " +
		"unless the field is null or has its neutral value.\n\n| field | neutral value | use instead |\n|---|---|---|\n")
	seen := map[string]bool{}
	for _, f := range server.Unsupported() {
		if !seen[f.Name] {
			neutral := strings.ReplaceAll(f.Tag.Get("neutral"), "|", " or ")
			fmt.Fprintf(b, "| `%s` | %s | %s |\n", f.Name, code(neutral), f.Tag.Get("use"))
		}
		seen[f.Name] = true
	}
}

// TestReferenceMetrics compares docs/reference/metrics.md with the output of /metrics.
func TestReferenceMetrics(t *testing.T) {
	t.Parallel()
	s := start(t, func(c *server.Config, _ *scheduler.Options, _ *engine.Options) { c.VLLMNames = true })
	var b strings.Builder
	b.WriteString("# Metrics\n\nGenerated from the answer of `GET /metrics` by `go generate ./runtime/http/server`; do not edit.\n" +
		"The format is the text format of Prometheus. [Monitoring](../monitoring.md) explains how to scrape and watch them.\n\n| metric | kind | meaning |\n|---|---|---|\n")
	var text strings.Builder
	if _, err := s.cfg.Registry.WriteTo(&text); err != nil {
		t.Fatal(err)
	}
	names := map[string]string{} // of vLLM's, by ours
	for _, a := range server.VLLMNames() {
		names[a.Of] += ", `" + a.Name + "`"
	}
	help, found := "", 0
	var vllm strings.Builder
	for line := range strings.SplitSeq(text.String(), "\n") {
		if rest, ok := strings.CutPrefix(line, "# HELP "); ok {
			_, help, _ = strings.Cut(rest, " ")
			continue
		}
		name, kind, ok := strings.Cut(strings.TrimPrefix(line, "# TYPE "), " ")
		switch {
		case !ok || !strings.HasPrefix(line, "# TYPE "):
		case strings.HasPrefix(name, "vllm:"):
			found++
		default:
			fmt.Fprintf(&b, "| `%s` | %s | %s |\n", name, kind, help)
			if names[name] != "" {
				fmt.Fprintf(&vllm, "| `%s` | %s |\n", name, names[name][2:])
			}
		}
	}
	if found != len(server.VLLMNames()) {
		t.Errorf("%d of %d names of vLLM are written", found, len(server.VLLMNames()))
	}
	b.WriteString("\n## Names of vLLM\n\n`serve --metrics-names vllm` also writes these metrics under vLLM's names, with its label `model_name`.\n" +
		"`vllm:prompt_tokens_total` leaves out tokens found in the prefix cache.\n\n| metric | in vLLM |\n|---|---|\n" + vllm.String())
	golden(t, "metrics.md", b.String())
}

// shown returns a route's pattern as the reference shows it.
func shown(pattern string) string {
	return strings.NewReplacer("{$}", "", "{id...}", "ID", "{id}", "ID").Replace(pattern)
}

func code(text string) string {
	if text == "" {
		return ""
	}
	return "`" + text + "`"
}

// golden compares a page of the reference with its expected text.
func golden(t *testing.T, name, want string) {
	t.Helper()
	path := filepath.Join("..", "..", "..", "docs", "reference", name)
	if *update {
		if err := os.WriteFile(path, []byte(want), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	got, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(want, string(got)); diff != "" {
		t.Errorf("docs/reference/%s is stale; run go generate ./runtime/http/server:\n%s", name, diff)
	}
}

// fieldComments returns the line comments of the fields of all structs in folders, by
// "Struct.Field", or ".Field" for anonymous structs.
func fieldComments(t *testing.T, folders ...string) map[string]string {
	t.Helper()
	docs := map[string]string{}
	for _, folder := range folders {
		files, err := filepath.Glob(filepath.Join(folder, "*.go"))
		if err != nil {
			t.Fatal(err)
		}
		for _, path := range files {
			file, err := parser.ParseFile(token.NewFileSet(), path, nil, parser.ParseComments)
			if err != nil {
				t.Fatal(err)
			}
			ast.Inspect(file, func(n ast.Node) bool {
				if spec, ok := n.(*ast.TypeSpec); ok {
					collectComments(docs, spec.Name.Name, spec.Type)
				}
				return true
			})
		}
	}
	return docs
}

func collectComments(docs map[string]string, name string, kind ast.Expr) {
	structure, ok := kind.(*ast.StructType)
	if !ok {
		return
	}
	for _, f := range structure.Fields.List {
		for _, n := range f.Names {
			if text := strings.TrimSpace(f.Comment.Text()); text != "" {
				docs[name+"."+n.Name] = text
			}
		}
		inner := f.Type
		if p, ok := inner.(*ast.StarExpr); ok {
			inner = p.X
		}
		collectComments(docs, "", inner)
	}
}
