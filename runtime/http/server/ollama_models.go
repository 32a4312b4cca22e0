//go:build unix

package server

import (
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"time"
)

// ollamaDetails describes the model in Ollama's API.
type ollamaDetails struct {
	Parent   string   `json:"parent_model"`
	Format   string   `json:"format"`
	Family   string   `json:"family"`
	Families []string `json:"families"`
	Size     string   `json:"parameter_size"`
	Level    string   `json:"quantization_level"`
}

func (s *Server) ollamaDetails() ollamaDetails {
	m := s.cfg.Manifest
	return ollamaDetails{Format: "iflowc", Family: m.Network, Families: []string{m.Network}, Size: shortCount(m.Params), Level: s.weightType()}
}

// weightType returns the type of most bytes of the weights.
func (s *Server) weightType() (most string) {
	bytes := map[string]int64{}
	for _, w := range s.cfg.Manifest.Weights {
		name := w.DType.String()
		if bytes[name] += w.Bytes; most == "" || bytes[name] > bytes[most] {
			most = name
		}
	}
	return most
}

// shortCount writes a number of parameters as Ollama does: 134.5M, 7.2B.
func shortCount(n int64) string {
	for _, unit := range []struct {
		size int64
		name string
	}{{1e9, "B"}, {1e6, "M"}, {1e3, "K"}} {
		if n >= unit.size {
			return fmt.Sprintf("%.1f%s", float64(n)/float64(unit.size), unit.name)
		}
	}
	return fmt.Sprint(n)
}

// An ollamaModel is the served model in a list of Ollama's API.
type ollamaModel struct {
	Name     string        `json:"name"`
	Model    string        `json:"model"`
	Modified time.Time     `json:"modified_at"`
	Size     int64         `json:"size"`
	Digest   string        `json:"digest"`
	Details  ollamaDetails `json:"details"`
}

// ollamaLoaded is the served model in the list of loaded models. It never expires; as in
// Ollama's API, the year 2318 says so.
type ollamaLoaded struct {
	ollamaModel
	Expires time.Time `json:"expires_at"`
	VRAM    int64     `json:"size_vram"`
	Context int       `json:"context_length"`
}

// ollamaModels lists the served model under each of its names, then the adapters.
func (s *Server) ollamaModels() (list []ollamaModel) {
	m, size := s.cfg.Manifest, int64(0)
	for i := range m.Weights {
		size += m.Weights[i].Bytes
	}
	for _, name := range s.names() {
		name = tagged(name)
		list = append(list, ollamaModel{name, name, s.started.UTC(), size, m.Hash, s.ollamaDetails()})
	}
	for _, a := range s.adapters.all() {
		digest := sha256.Sum256([]byte(m.Hash + "\x00" + a.Name + "\x00" + a.created.String()))
		details := s.ollamaDetails()
		details.Parent = tagged(s.cfg.Model)
		name := tagged(a.Name)
		list = append(list, ollamaModel{name, name, a.created.UTC(), a.Bytes, hex.EncodeToString(digest[:]), details})
	}
	return list
}

// ollamaTags answers GET /api/tags.
func (s *Server) ollamaTags(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]any{"models": s.ollamaModels()})
	return nil
}

// ollamaLoaded answers GET /api/ps.
func (s *Server) ollamaLoaded(w http.ResponseWriter, _ *http.Request) error {
	never := time.Date(2318, 1, 1, 0, 0, 0, 0, time.UTC)
	var list []ollamaLoaded
	for i, m := range s.ollamaModels() {
		if i == 0 || m.Details.Parent != "" { // the model once, and the adapters
			list = append(list, ollamaLoaded{m, never, 0, s.cfg.Context})
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{"models": list})
	return nil
}

// ollamaVersion is the version of Ollama whose API this is. Clients compare it.
const ollamaVersion = "0.12.11"

// ollamaVersion answers GET /api/version.
func (s *Server) ollamaVersion(w http.ResponseWriter, _ *http.Request) error {
	writeJSON(w, http.StatusOK, map[string]string{"version": ollamaVersion})
	return nil
}

// tagged returns a name of a model with a tag, which all names in Ollama's lists have.
func tagged(name string) string {
	if strings.Contains(name[strings.LastIndexByte(name, '/')+1:], ":") {
		return name
	}
	return name + ":latest"
}

// ollamaPullRequest is the body of /api/pull.
type ollamaPullRequest struct {
	Model    string `json:"model"`    // name of the served model or of an adapter
	Name     string `json:"name"`     // older name of model
	Stream   *bool  `json:"stream"`   // false: one object; default: a line of JSON per step
	Insecure bool   `json:"insecure"` // accepted without effect
}

// ollamaPull answers POST /api/pull for a model that is served: nothing is left to do.
func (s *Server) ollamaPull(w http.ResponseWriter, r *http.Request) error {
	var req ollamaPullRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	name := cmp.Or(req.Model, req.Name)
	if name == "" {
		return invalid("model", "model: expected the name of the model")
	}
	if base, adapter := s.lookUp(name, s.adapters.find); !base && adapter == nil {
		return s.noModel(name)
	}
	steps := []string{"pulling manifest", "verifying sha256 digest", "writing manifest", "success"}
	status := func(step string) map[string]string { return map[string]string{"status": step} }
	if !or(req.Stream, true) {
		writeJSON(w, http.StatusOK, status(steps[len(steps)-1]))
		return nil
	}
	out := s.newSender(w, r, true)
	for _, step := range steps {
		if err := out.add(status(step)); err != nil {
			return err
		}
	}
	return out.flush()
}

// ollamaShowRequest is the body of /api/show.
type ollamaShowRequest struct {
	Model   string `json:"model"`   // name of the served model or of an adapter; may be left out
	Name    string `json:"name"`    // older name of model
	Verbose bool   `json:"verbose"` // accepted without effect
}

// ollamaShow answers POST /api/show.
func (s *Server) ollamaShow(w http.ResponseWriter, r *http.Request) error {
	var req ollamaShowRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if req.Model == "" {
		req.Model = req.Name
	}
	base, adapter := s.lookUp(req.Model, s.adapters.find)
	if !base && adapter == nil {
		return s.noModel(req.Model)
	}
	details, file := s.ollamaDetails(), "FROM "+s.cfg.Model
	if adapter != nil {
		details.Parent = tagged(s.cfg.Model)
		file += "\nADAPTER " + adapter.Name
	}
	m, d, source := s.cfg.Manifest, &s.cfg.Defaults, ""
	can := []string{"completion"}
	if s.cfg.Template != nil {
		source = s.cfg.Template.Source()
		can = append(can, "tools")
		if strings.Contains(source, "enable_thinking") || strings.Contains(source, "<think>") {
			can = append(can, "thinking")
		}
	}
	if slices.Contains(s.served(), "/infill") {
		can = append(can, "insert")
	}
	if s.cfg.Embedder != nil {
		can = append(can, "embedding")
	}
	parameters := fmt.Sprintf("num_ctx %d\ntemperature %v", s.cfg.Context, d.Temperature)
	if d.TopK > 0 {
		parameters += fmt.Sprintf("\ntop_k %d", d.TopK)
	}
	if d.TopP > 0 {
		parameters += fmt.Sprintf("\ntop_p %v", d.TopP)
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"license": "", "modelfile": file, "parameters": parameters, "template": source, "details": details, "capabilities": can, "modified_at": s.started.UTC(),
		"model_info": map[string]any{
			"general.architecture": m.Network, "general.basename": m.Name, "general.parameter_count": m.Params,
			m.Network + ".context_length": s.cfg.Context, m.Network + ".vocab_size": m.Vocab,
		},
	})
	return nil
}
