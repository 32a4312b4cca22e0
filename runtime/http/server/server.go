//go:build unix

// Package server implements the HTTP server of a per-model binary: the APIs of OpenAI,
// Anthropic, Ollama and Inferflow, and endpoints for operators. Handlers decode a request, run it on
// package scheduler, and write the response at once or as a stream.
package server

import (
	"context"
	"log/slog"
	"net/http"
	"sync"
	"sync/atomic"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/http/access"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/sampling/speculate"
	"github.com/iflowc/iflowc/runtime/text/chat"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// A Config configures a Server.
type Config struct {
	Scheduler *scheduler.Scheduler
	Registry  *metrics.Registry // metrics for /metrics; nil: an empty registry
	VLLMNames bool              // write metrics under vLLM's names too
	Manifest  *manifest.Manifest
	Tokenizer *tokenizer.Tokenizer // nil: the model has none, requests contain token ids
	Template  *chat.Template       // nil: the model has none
	Model     string               // name of the served model; "": the manifest's
	Aliases   []string             // more names of the served model
	Context   int                  // maximum tokens of a sequence
	Sequences int                  // maximum concurrent sequences
	Defaults  Defaults

	Reranker  Reranker                                                                          // nil: no scores of pairs
	Embedder  Embedder                                                                          // nil: no embeddings
	Translate func(context.Context, scheduler.Job, Translation) ([][]Translated, error)         // nil: the model is not an encoder-decoder
	Fill      func(ctx context.Context, j scheduler.Job, text string, best int) ([]Mask, error) // nil: the model has no masked-LM head

	// Constrain returns the token mask of structured output; nil: structured output is
	// refused.
	Constrain func(Constraint) (decode.Mask, error)

	// Drafter returns the function that creates drafters of a drafting method, or nil
	// for no drafts. The method "" is the service's default. nil: requests cannot use
	// speculative decoding.
	Drafter func(method string) (func() speculate.Drafter, error)

	Adapters      AdapterOptions
	Access        *access.Control // keys and limits; nil: none
	SharePrefixes bool            // share the prefix cache among all clients
	Origins       []string        // origins that may send requests from browsers; "*": all
	Hosts         []string        // allowed host names on a loopback address, besides localhost

	Body       int64         // maximum bytes of a request body; 0: 4 MiB
	Memory     int64         // maximum bytes of memory of all requests, beside the model; 0: 512 MiB
	Responses  int64         // maximum bytes of stored responses; 0: 64 MiB
	KeepTime   time.Duration // time that responses are stored; 0: 1 hour
	Timeout    time.Duration // maximum time of a request; 0: 10 minutes
	LogPrompts bool          // log prompts and answers
	Log        *slog.Logger  // nil: no log
	Page       http.Handler  // handler of /; nil: a line of text
	Props      map[string]any

	pace pace // of streams; changed by tests
}

// A Constraint is the constraint of structured output.
type Constraint struct {
	Key    string // key of the request that sets it
	Scope  string // what is cached for it must not be found in another scope
	Kind   string // "json_object", "json_schema", "regex", "grammar", "tool"
	Schema []byte // of json_schema: the JSON Schema; of tool: that of an answer that may come instead of a call, or nil
	Text   string // of regex and grammar
	Tools  []Tool // of tool: the functions, one of which must be called
}

// A Tool is a function that the model may call.
type Tool struct {
	Name       string
	Parameters []byte // JSON Schema
	Strict     bool   // refuse a schema that cannot be enforced
}

// A Server handles HTTP requests.
type Server struct {
	cfg      Config
	mux      *http.ServeMux
	started  time.Time
	counts   counts
	memory   *memory
	adapters *adapterSet
	stored   *responseStore
	longest  func() int // maximum bytes of text per token; 0: there is no tokenizer

	reasoningEnd func() chat.ReasoningEnd

	local  bool        // the listener is on a loopback address
	ending atomic.Bool // refuse new requests
}

// New returns a server.
func New(cfg Config) *Server {
	if cfg.Model == "" {
		cfg.Model = cfg.Manifest.Name
	}
	if cfg.Body == 0 {
		cfg.Body = 4 << 20
	}
	if cfg.Memory == 0 {
		cfg.Memory = 512 << 20
	}
	if cfg.Responses == 0 {
		cfg.Responses = 64 << 20
	}
	if cfg.KeepTime == 0 {
		cfg.KeepTime = time.Hour
	}
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Minute
	}
	if cfg.pace == (pace{}) {
		cfg.pace = defaultPace
	}
	if cfg.Registry == nil {
		cfg.Registry = &metrics.Registry{}
	}
	if cfg.VLLMNames {
		cfg.Registry.Also(vllmNames, "model_name", cfg.Model)
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Access == nil {
		cfg.Access, _ = access.New(access.Options{Registry: cfg.Registry}) // cannot fail, because no keys are loaded
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), started: time.Now(), memory: newMemory(cfg.Memory), stored: newResponseStore(cfg.Responses, cfg.KeepTime)}
	s.adapters = newAdapterSet(cfg.Adapters, cfg.Registry)
	s.longest = sync.OnceValue(func() int {
		if cfg.Tokenizer == nil {
			return 0
		}
		return cfg.Tokenizer.Longest()
	})
	s.reasoningEnd = sync.OnceValue(func() chat.ReasoningEnd { return cfg.Template.ReasoningEnd(cfg.Tokenizer) })
	go s.longest() // decodes the whole vocabulary, so compute it ahead of the first request
	s.counts.register(cfg.Registry, cfg.Scheduler)
	for _, route := range s.routes() {
		s.mux.Handle(route.pattern, s.answer(route.handler))
	}
	s.mux.Handle("/", s.answer(s.other))
	return s
}

// A handler answers a request. An error that it returns becomes the response.
type handler func(w http.ResponseWriter, r *http.Request) error

// A route is an endpoint of the service. docs/reference/http-api.md is generated from
// the routes and the types of their requests.
type route struct {
	pattern string
	handler handler
}

// routes lists the endpoints. All other paths go to [Server.other].
func (s *Server) routes() []route {
	return []route{
		{"POST /v1/chat/completions", s.chat},
		{"POST /v1/completions", s.completions},
		{"POST /infill", s.infill},
		{"POST /v1/responses", s.responses},
		{"POST /v1/responses/input_tokens", s.countInput},
		{"GET /v1/responses/{id}", s.storedAnswer},
		{"GET /v1/responses/{id}/input_items", s.storedInput},
		{"DELETE /v1/responses/{id}", s.dropResponse},
		{"POST /v1/messages", s.messages},
		{"POST /v1/messages/count_tokens", s.countMessages},
		{"POST /api/chat", s.ollamaChat},
		{"POST /api/generate", s.ollamaGenerate},
		{"POST /api/embed", s.ollamaEmbed},
		{"POST /api/embeddings", s.ollamaEmbeddings},
		{"POST /api/pull", s.ollamaPull},
		{"GET /api/tags", s.ollamaTags},
		{"GET /api/ps", s.ollamaLoaded},
		{"GET /api/version", s.ollamaVersion},
		{"POST /api/show", s.ollamaShow},
		{"POST /v1/embeddings", s.embeddings},
		{"POST /v1/rerank", s.rerank},
		{"POST /v2/rerank", s.rerank},
		{"POST /rerank", s.rerank},
		{"POST /v1/score", s.score},
		{"POST /score", s.score},
		{"POST /apply-template", s.applyTemplate},
		{"POST /tokenize", s.tokenize},
		{"POST /detokenize", s.detokenize},
		{"POST /translate", s.translate},
		{"POST /fill", s.fill},
		{"POST /v1/load_lora_adapter", s.loadAdapter},
		{"POST /v1/unload_lora_adapter", s.unloadAdapter},
		{"GET /v1/models", s.models},
		{"GET /v1/models/{id...}", s.model},
		{"GET /health", s.health},
		{"GET /props", s.props},
		{"GET /metrics", s.metrics},
		{"GET /{$}", s.page},
	}
}

// Handler returns the HTTP handler of the service, with its middleware.
func (s *Server) Handler() http.Handler { return s.middleware(s.mux) }
