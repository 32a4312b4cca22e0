//go:build unix

package server

import (
	"errors"
	"fmt"
	"io/fs"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"unicode"

	"github.com/iflowc/iflowc/runtime/engine"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// Limits of adapters that operators load.
const (
	maxAdapterName  = 128
	maxAdapterPath  = 1024
	maxAdapterFiles = 1000 // entries of an adapter's folder
)

// loadAdapterRequest is the body of /v1/load_lora_adapter.
type loadAdapterRequest struct {
	Name    string `json:"lora_name"`    // name by which requests select the adapter
	Path    string `json:"lora_path"`    // folder or GGUF file, in the folder of --lora-dir
	InPlace bool   `json:"load_inplace"` // replace a loaded adapter with this name
}

// unloadAdapterRequest is the body of /v1/unload_lora_adapter.
type unloadAdapterRequest struct {
	Name string `json:"lora_name"`   // name of the loaded adapter
	ID   *int64 `json:"lora_int_id"` // accepted without effect
}

// loadAdapter answers vLLM's POST /v1/load_lora_adapter.
func (s *Server) loadAdapter(w http.ResponseWriter, r *http.Request) error {
	var req loadAdapterRequest
	if err := s.operates(r); err != nil {
		return err
	}
	if s.adapters.Dir == "" {
		e := invalid("", "this service loads no adapters at run time; its operator can allow it with --lora-dir").withCode("adapters_not_allowed")
		e.status = http.StatusForbidden
		return e
	}
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if req.Name == "" || req.Path == "" {
		return invalid(map[bool]string{true: "lora_name", false: "lora_path"}[req.Name == ""], "lora_name and lora_path: expected both")
	}
	if err := CheckAdapterName(req.Name, s.reserved()); err != nil {
		return invalid("lora_name", "lora_name: %v", err)
	}
	path, err := adapterPath(s.adapters.Dir, req.Path)
	if err != nil {
		return err
	}
	select { // adapters are read one after another
	case s.adapters.loading <- struct{}{}:
	case <-r.Context().Done():
		return r.Context().Err()
	}
	defer func() { <-s.adapters.loading }()
	if a := s.adapters.find(req.Name); a != nil && !req.InPlace {
		return invalid("lora_name", "lora_name: the adapter %q is already loaded; set load_inplace to true to replace it", a.Name).withCode("adapter_exists")
	}
	if err := s.load(r, req.Name, path); err != nil {
		return err
	}
	return written(w, fmt.Sprintf("Success: LoRA adapter '%s' added successfully.", req.Name))
}

// load reads an adapter and makes it available.
func (s *Server) load(r *http.Request, name, path string) error {
	file, bytes, err := s.adapters.Open(path)
	if err != nil {
		return invalid("lora_path", "lora_path: %v", err)
	}
	defer file.Close()
	a := &Adapter{Name: name, Path: path, Bytes: bytes}
	a.Adapter, err = s.cfg.Scheduler.LoadAdapter(r.Context(), file, bytes)
	switch {
	case errors.Is(err, engine.ErrAdapterMemory), errors.Is(err, engine.ErrAdapters):
		e := invalid("lora_path", "lora_path: %v; unload another adapter, or start the service with more --lora-memory", err).withCode("adapter_memory_full")
		e.status, e.Type = http.StatusInsufficientStorage, serverError
		return e
	case errors.Is(err, scheduler.ErrClosed), errors.Is(err, engine.ErrLoad), r.Context().Err() != nil: // no fault of the request
		return err
	case err != nil:
		return invalid("lora_path", "lora_path: %v", err)
	}
	s.adapters.put(a)
	s.cfg.Log.Info("adapter loaded", "request", id(r), "adapter", name, "path", path, "bytes", bytes, "caller", callerOf(r).Name)
	return nil
}

// unloadAdapter answers vLLM's POST /v1/unload_lora_adapter.
func (s *Server) unloadAdapter(w http.ResponseWriter, r *http.Request) error {
	var req unloadAdapterRequest
	if err := s.operates(r); err != nil {
		return err
	}
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if req.Name == "" {
		return invalid("lora_name", "lora_name: expected the name of a loaded adapter")
	}
	if !s.adapters.drop(req.Name) {
		e := invalid("lora_name", "lora_name: the adapter %.80q is not loaded; GET /v1/models lists those that are", req.Name).withCode("model_not_found")
		e.status = http.StatusNotFound
		return e
	}
	s.cfg.Log.Info("adapter unloaded", "request", id(r), "adapter", req.Name, "caller", callerOf(r).Name)
	return written(w, fmt.Sprintf("Success: LoRA adapter '%s' removed successfully.", req.Name))
}

// operates returns an error for a client that is no operator.
func (s *Server) operates(r *http.Request) error {
	if callerOf(r).Operator {
		return nil
	}
	e := invalid("", "this endpoint is for operators; it needs a key with \"operator: true\" in the file of --keys").withCode("operator_only")
	e.status = http.StatusForbidden
	return e
}

// written writes a line of text, as vLLM answers.
func written(w http.ResponseWriter, text string) error {
	w.Header().Set("Content-Type", "text/plain; charset=utf-8")
	_, err := w.Write([]byte(text))
	return err
}

// CheckAdapterName returns an error for a name that an adapter cannot have; taken are
// names of the model or of other adapters.
func CheckAdapterName(name string, taken []string) error {
	switch {
	case strings.TrimSuffix(name, ":latest") == "":
		return errors.New("an adapter needs a name")
	case len(name) > maxAdapterName:
		return fmt.Errorf("expected a name of at most %d bytes", maxAdapterName)
	case strings.ContainsFunc(name, func(c rune) bool { return !unicode.IsPrint(c) }): // the Unicode replacement of invalid UTF-8 is a symbol
		return fmt.Errorf("%.80q contains control characters", name)
	}
	for _, other := range taken {
		if sameName(other, name) {
			return fmt.Errorf("%q is already the name of a model or of another adapter", name)
		}
	}
	return nil
}

// adapterPath returns the path of an adapter in a folder, without symbolic links. A path
// that leaves the folder is an error, and so is a link in the adapter's own folder that
// does.
func adapterPath(dir, path string) (string, error) {
	refuse := func(format string, args ...any) (string, error) {
		return "", invalid("lora_path", "lora_path: "+format, args...)
	}
	root, err := filepath.EvalSymlinks(dir)
	if err == nil {
		root, err = filepath.Abs(root)
	}
	if err != nil {
		return "", fmt.Errorf("--lora-dir: %w", err)
	}
	if len(path) > maxAdapterPath || strings.ContainsFunc(path, unicode.IsControl) {
		return refuse("expected at most %d bytes without control characters", maxAdapterPath)
	}
	if absolute, err := filepath.Abs(dir); err == nil && filepath.IsAbs(path) {
		if path, err = filepath.Rel(absolute, path); err != nil {
			return refuse("expected a path in the folder of --lora-dir")
		}
	}
	if !filepath.IsLocal(path) {
		return refuse("expected a path in the folder of --lora-dir")
	}
	full, err := within(root, filepath.Join(root, path))
	switch {
	case errors.Is(err, fs.ErrNotExist):
		e := invalid("lora_path", "lora_path: there is no adapter %.200q in the folder of --lora-dir", path).withCode("adapter_not_found")
		e.status = http.StatusNotFound
		return "", e
	case err != nil:
		return refuse("%.200q is not in the folder of --lora-dir", path)
	}
	entries, err := os.ReadDir(full)
	if err != nil { // a file, which has no folder
		return full, nil
	}
	if len(entries) > maxAdapterFiles {
		return refuse("the folder has %d entries; an adapter has at most %d", len(entries), maxAdapterFiles)
	}
	for _, f := range entries {
		if f.Type()&fs.ModeSymlink == 0 {
			continue
		}
		if _, err := within(root, filepath.Join(full, f.Name())); err != nil {
			return refuse("%.200q is a link out of the folder of --lora-dir", f.Name())
		}
	}
	return full, nil
}

// within resolves the symbolic links of a path, which must lead into root.
func within(root, path string) (string, error) {
	full, err := filepath.EvalSymlinks(path)
	if err != nil {
		return "", err
	}
	if inside, err := filepath.Rel(root, full); err != nil || !filepath.IsLocal(inside) {
		return "", errors.New("outside")
	}
	return full, nil
}
