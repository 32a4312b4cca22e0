//go:build unix

// Package server is the HTTP service of a per-model binary: the interface of
// OpenAI, Inferflow's own, and what operators need. Handlers read a request,
// let runtime/engine/scheduler compute, and write the answer whole or as it comes.
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

// A Config is what a service is made of.
type Config struct {
	Scheduler *scheduler.Scheduler
	Registry  *metrics.Registry // what /metrics shows; nil: an empty one
	Manifest  *manifest.Manifest
	Tokenizer *tokenizer.Tokenizer // nil: the model has none, requests give ids
	Template  *chat.Template       // nil: the model has none
	Model     string               // the name that answers give; "": the manifest's
	Context   int                  // rows of a sequence
	Sequences int                  // at once
	Defaults  Defaults

	Embedder  Embedder                                                                          // nil: no embeddings
	Translate func(context.Context, scheduler.Job, Translation) ([][]Translated, error)         // nil: no encoder-decoder
	Fill      func(ctx context.Context, j scheduler.Job, text string, best int) ([]Mask, error) // nil: no masked-LM head

	// Constrain makes the matcher of structured output; nil: such requests are
	// refused.
	Constrain func(Constraint) (decode.Mask, error)

	// Drafter gives what makes the drafters of a method, "" for the service's own;
	// nil where nothing is drafted. A nil function: requests cannot ask.
	Drafter func(method string) (func() speculate.Drafter, error)

	Access        *access.Control // who may ask, and how much; nil: everybody, without limits
	SharePrefixes bool            // requests of all callers may reuse each other's prefixes
	Origins       []string        // origins that browsers may ask from: "*" for all
	Hosts         []string        // names that the service answers to besides those of its own machine

	Body       int64         // most bytes of a request; 0: 4 MiB
	Memory     int64         // most bytes that all requests take together, beside the model; 0: 512 MiB
	Timeout    time.Duration // most time for an answer; 0: 10 minutes
	LogPrompts bool          // log prompts and answers too
	Log        *slog.Logger  // nil: no log
	Page       http.Handler  // what / shows; nil: a line of text
	Props      map[string]any
}

// A Constraint is what structured output must match.
type Constraint struct {
	Kind   string // "json_object", "json_schema", "regex", "grammar", "tool"
	Schema []byte // of json_schema: the JSON Schema
	Text   string // of regex and grammar
	Tools  []Tool // of tool: those that may be called, one of which must be
}

// A Tool is a function that the model may call.
type Tool struct {
	Name       string
	Parameters []byte // JSON Schema
}

// A Server answers requests.
type Server struct {
	cfg     Config
	mux     *http.ServeMux
	started time.Time
	counts  counts
	memory  *memory
	longest func() int // bytes of a text that a token stands for at most; 0: there is no tokenizer

	local  bool        // only the machine itself can reach the service
	ending atomic.Bool // no new work
}

// New makes a server.
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
	if cfg.Timeout == 0 {
		cfg.Timeout = 10 * time.Minute
	}
	if cfg.Registry == nil {
		cfg.Registry = &metrics.Registry{}
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Access == nil {
		cfg.Access, _ = access.New(access.Options{Registry: cfg.Registry}) // nothing is loaded: it cannot fail
	}
	s := &Server{cfg: cfg, mux: http.NewServeMux(), started: time.Now(), memory: newMemory(cfg.Memory)}
	s.longest = sync.OnceValue(func() int {
		if cfg.Tokenizer == nil {
			return 0
		}
		return cfg.Tokenizer.Longest()
	})
	go s.longest() // it spells the whole vocabulary: not while somebody waits for the start
	s.counts.register(cfg.Registry, cfg.Scheduler)
	for _, route := range s.routes() {
		s.mux.Handle(route.pattern, s.answer(route.handler))
	}
	s.mux.Handle("/", s.answer(s.other))
	return s
}

// A handler answers one request, or returns the error to answer with.
type handler func(w http.ResponseWriter, r *http.Request) error

// A route is an endpoint of the service. docs/reference/http-api.md is generated
// from the routes and the requests' types.
type route struct {
	pattern string
	handler handler
}

// routes lists the endpoints. All other paths go to [Server.other].
func (s *Server) routes() []route {
	return []route{
		{"POST /v1/chat/completions", s.chat},
		{"POST /v1/completions", s.completions},
		{"POST /v1/embeddings", s.embeddings},
		{"POST /tokenize", s.tokenize},
		{"POST /detokenize", s.detokenize},
		{"POST /translate", s.translate},
		{"POST /fill", s.fill},
		{"GET /v1/models", s.models},
		{"GET /v1/models/{id...}", s.model},
		{"GET /health", s.health},
		{"GET /props", s.props},
		{"GET /metrics", s.metrics},
		{"GET /{$}", s.page},
	}
}

// Handler is the service as a handler, with everything around the routes.
func (s *Server) Handler() http.Handler { return s.around(s.mux) }
