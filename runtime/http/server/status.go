//go:build unix

package server

import (
	"fmt"
	"maps"
	"net/http"
	"runtime"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/kit/hostmem"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// counts are the server's metrics.
type counts struct{ requests *metrics.Counter }

func (c *counts) register(r *metrics.Registry, s *scheduler.Scheduler) {
	c.requests = r.Counter("iflowc_requests_total", "Requests by status; 499: the client disconnected before the response.", "code")
	r.Func("gauge", "iflowc_requests_waiting", "Requests in the queue.", func() float64 {
		waiting, _ := s.Load()
		return float64(waiting)
	})
	r.Func("gauge", "iflowc_requests_running", "Running requests.", func() float64 {
		_, running := s.Load()
		return float64(running)
	})
	r.Func("gauge", "go_goroutines", "Goroutines.", func() float64 { return float64(runtime.NumGoroutine()) })
	started := float64(time.Now().UnixMilli()) / 1e3
	r.Func("gauge", "process_start_time_seconds", "Start of the service, in seconds since 1970.", func() float64 { return started })
	r.Func("gauge", "process_resident_memory_bytes", "Resident memory in bytes; 0 if unknown.", func() float64 { return float64(hostmem.Resident()) })
}

// health answers GET /health.
func (s *Server) health(w http.ResponseWriter, _ *http.Request) error {
	waiting, running := s.cfg.Scheduler.Load()
	writeJSON(w, http.StatusOK, map[string]any{"status": "ok", "running": running, "waiting": waiting})
	return nil
}

// metrics answers GET /metrics.
func (s *Server) metrics(w http.ResponseWriter, _ *http.Request) error {
	w.Header().Set("Content-Type", "text/plain; version=0.0.4; charset=utf-8")
	s.cfg.Registry.WriteTo(w) // the client disconnected
	return nil
}

// A modelObject describes the model, with the keys of OpenAI's and of Anthropic's API.
type modelObject struct {
	ID      string    `json:"id"`
	Object  string    `json:"object"`
	Created int64     `json:"created"`
	OwnedBy string    `json:"owned_by"`
	Context int       `json:"max_model_len"`
	Network string    `json:"network"`
	Params  int64     `json:"params"`
	Type    string    `json:"type"`             // Anthropic's
	Name    string    `json:"display_name"`     // Anthropic's
	Time    time.Time `json:"created_at"`       // Anthropic's
	Parent  string    `json:"parent,omitempty"` // of an adapter: the model
	Root    string    `json:"root,omitempty"`   // of an adapter: its path, for operators
}

func (s *Server) describe() modelObject {
	m := s.cfg.Manifest
	return modelObject{
		ID: s.cfg.Model, Object: "model", Created: s.started.Unix(), OwnedBy: "iflowc", Context: s.cfg.Context, Network: m.Network, Params: m.Params,
		Type: "model", Name: s.cfg.Model, Time: s.started.UTC().Truncate(time.Second),
	}
}

// describeAdapter describes an adapter as vLLM does.
func (s *Server) describeAdapter(r *http.Request, a *Adapter) modelObject {
	m := s.describe()
	m.ID, m.Name, m.Parent = a.Name, a.Name, s.cfg.Model
	m.Created, m.Time = a.created.Unix(), a.created.UTC().Truncate(time.Second)
	if callerOf(r).Operator {
		m.Root = a.Path
	}
	return m
}

// names lists the names of the model, the usual one first.
func (s *Server) names() []string {
	list := []string{s.cfg.Model}
	for _, name := range s.cfg.Aliases {
		if name != s.cfg.Model {
			list = append(list, name)
		}
	}
	return list
}

// models answers GET /v1/models.
func (s *Server) models(w http.ResponseWriter, r *http.Request) error {
	var list []modelObject
	m := s.describe()
	for _, m.ID = range s.names() {
		m.Name = m.ID
		list = append(list, m)
	}
	for _, a := range s.adapters.all() {
		list = append(list, s.describeAdapter(r, a))
	}
	writeJSON(w, http.StatusOK, map[string]any{"object": "list", "data": list, "has_more": false, "first_id": list[0].ID, "last_id": list[len(list)-1].ID})
	return nil
}

// model answers GET /v1/models/ID; /v1/models/ is the list.
func (s *Server) model(w http.ResponseWriter, r *http.Request) error {
	name := r.PathValue("id")
	if name == "" {
		return s.models(w, r)
	}
	base, adapter := s.lookUp(name, s.adapters.find)
	switch {
	case base:
		writeJSON(w, http.StatusOK, s.describe())
	case adapter == nil:
		return s.noModel(name)
	default:
		writeJSON(w, http.StatusOK, s.describeAdapter(r, adapter))
	}
	return nil
}

// noModel returns the error for the name of another model.
func (s *Server) noModel(name string) *apiError {
	more := ""
	if n := len(s.adapters.all()); n > 0 {
		more = fmt.Sprintf(" and the adapters of GET /v1/models (%d)", n)
	}
	e := invalid("model", "the model %.80q does not exist; this service serves %q%s", name, s.cfg.Model, more).withCode("model_not_found")
	e.status = http.StatusNotFound
	return e
}

// props answers GET /props: model, template, adapters and the properties in Config.Props.
func (s *Server) props(w http.ResponseWriter, _ *http.Request) error {
	adapters := []map[string]any{}
	for _, a := range s.adapters.all() {
		adapters = append(adapters, map[string]any{"name": a.Name, "bytes": a.Bytes})
	}
	p := map[string]any{
		"model": s.describe(), "hash": s.cfg.Manifest.Hash, "compiler": s.cfg.Manifest.Compiler,
		"sequences": s.cfg.Sequences, "endpoints": s.served(), "uptime_s": int(time.Since(s.started).Seconds()),
		"adapters": adapters,
	}
	if s.cfg.Template != nil {
		p["chat_template"] = s.cfg.Template.Source()
	}
	maps.Copy(p, s.cfg.Props)
	writeJSON(w, http.StatusOK, p)
	return nil
}

// served lists the endpoints that depend on the model and that this one has.
func (s *Server) served() (list []string) {
	c, text := &s.cfg, s.cfg.Tokenizer != nil
	infills := text && c.Tokenizer.Infill() != nil
	for _, e := range []struct {
		path string
		has  bool
	}{
		{"/v1/chat/completions", c.Template != nil && text}, {"/v1/completions", c.Manifest.Network == "decoder_only"}, {"/infill", infills},
		{"/v1/embeddings", c.Embedder != nil}, {"/v1/rerank", c.Reranker != nil}, {"/translate", c.Translate != nil}, {"/fill", c.Fill != nil},
	} {
		if e.has {
			list = append(list, e.path)
		}
	}
	return list
}

// fingerprint returns the system_fingerprint of answers, which identifies the model's
// build.
func (s *Server) fingerprint() string {
	hash := s.cfg.Manifest.Hash
	return "fp_" + hash[:min(12, len(hash))]
}

// page answers GET /.
func (s *Server) page(w http.ResponseWriter, r *http.Request) error {
	if s.cfg.Page != nil {
		s.cfg.Page.ServeHTTP(w, r)
		return nil
	}
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte(s.cfg.Model + " is running; send requests to /v1/chat/completions, see /props\n"))
	return err
}

// other answers all other paths: Inferflow requests, else an error.
func (s *Server) other(w http.ResponseWriter, r *http.Request) error {
	if inferflowPath(r) {
		return s.inferflow(w, r)
	}
	var allowed []string
	for _, method := range []string{http.MethodGet, http.MethodPost, http.MethodDelete} {
		probe := r.Clone(r.Context())
		probe.Method = method
		if _, pattern := s.mux.Handler(probe); pattern != "/" && pattern != "" || inferflowPath(probe) {
			allowed = append(allowed, method)
		}
	}
	if len(allowed) > 0 {
		w.Header().Set("Allow", strings.Join(allowed, ", "))
		e := invalid("", "%.20s %.200s: use %s", r.Method, r.URL.Path, strings.Join(allowed, " or ")).withCode("method_not_allowed")
		e.status = http.StatusMethodNotAllowed
		return e
	}
	e := invalid("", "there is no endpoint %.200s", r.URL.Path).withCode("unknown_url")
	e.status = http.StatusNotFound
	return e
}
