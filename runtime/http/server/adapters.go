//go:build unix

package server

import (
	"context"
	"net/http"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// An Adapter is a loaded LoRA adapter, which requests select by its name.
type Adapter struct {
	Name    string
	Path    string // of its files; only operators see it
	Bytes   int64  // memory of its matrices
	Adapter *scheduler.Adapter
	created time.Time
}

// AdapterOptions configure the LoRA adapters of a service.
type AdapterOptions struct {
	Loaded []*Adapter // at the start
	Dir    string     // folder of the adapters that operators may load; "": none
	// Open reads an adapter's files. It returns the memory of its matrices, and an error if
	// the adapter does not fit the model.
	Open func(path string) (*lora.Adapter, int64, error)
}

// An adapterSet is the loaded adapters of a service.
type adapterSet struct {
	AdapterOptions
	loading chan struct{}    // holds a value while an adapter is read, so that only one is in memory
	counter *metrics.Counter // requests by adapter

	mu      sync.RWMutex
	list    []*Adapter // in the order of their loads
	counted map[string]bool
}

func newAdapterSet(opt AdapterOptions, r *metrics.Registry) *adapterSet {
	now := time.Now()
	for _, a := range opt.Loaded {
		a.created = now
	}
	return &adapterSet{
		AdapterOptions: opt, list: slices.Clone(opt.Loaded), loading: make(chan struct{}, 1), counted: map[string]bool{},
		counter: r.Counter("iflowc_lora_requests_total", "Requests with a LoRA adapter, by the adapter's name.", "adapter"),
	}
}

// all returns the adapters in the order of their loads.
func (l *adapterSet) all() []*Adapter {
	l.mu.RLock()
	defer l.mu.RUnlock()
	return slices.Clone(l.list)
}

// find returns the adapter with a name, or nil.
func (l *adapterSet) find(name string) *Adapter {
	l.mu.RLock()
	defer l.mu.RUnlock()
	if at := l.index(name); at >= 0 {
		return l.list[at]
	}
	return nil
}

// index returns the index of an adapter in the list, or -1. l.mu is held.
func (l *adapterSet) index(name string) int {
	return slices.IndexFunc(l.list, func(a *Adapter) bool { return sameName(a.Name, name) })
}

// hold returns the adapter with a name and holds it until its Release, or returns nil.
func (l *adapterSet) hold(name string) *Adapter {
	l.mu.RLock()
	defer l.mu.RUnlock()
	at := l.index(name)
	if at < 0 {
		return nil
	}
	l.list[at].Adapter.Hold()
	return l.list[at]
}

// put adds an adapter, in place of the one with its name.
func (l *adapterSet) put(a *Adapter) {
	a.created = time.Now()
	l.mu.Lock()
	defer l.mu.Unlock()
	if at := l.index(a.Name); at >= 0 {
		l.list[at].Adapter.Unload()
		l.list[at] = a
		return
	}
	l.list = append(l.list, a)
}

// drop unloads the adapter with a name; it returns false if there is none. Requests that
// hold the adapter finish with it.
func (l *adapterSet) drop(name string) bool {
	l.mu.Lock()
	defer l.mu.Unlock()
	at := l.index(name)
	if at < 0 {
		return false
	}
	l.list[at].Adapter.Unload()
	l.list = slices.Delete(l.list, at, at+1)
	return true
}

// Limits of the metric of requests by adapter.
const (
	maxCounted    = 1000      // names with a count of their own
	otherAdapters = "(other)" // names beyond maxCounted
)

// count counts a request of an adapter.
func (l *adapterSet) count(name string) {
	l.mu.Lock()
	if !l.counted[name] && len(l.counted) >= maxCounted {
		name = otherAdapters
	}
	l.counted[name] = true
	l.mu.Unlock()
	l.counter.Add(1, name)
}

// A selection is the adapter of a request; nil: none. The request holds it.
type selection struct{ adapter *Adapter }

type selectionKey struct{}

func withSelection(ctx context.Context) (context.Context, *selection) {
	v := &selection{}
	return context.WithValue(ctx, selectionKey{}, v), v
}

// end releases the adapter.
func (v *selection) end() {
	if v.adapter != nil {
		v.adapter.Adapter.Release()
	}
}

// selected returns the adapter of a request, or nil.
func selected(r *http.Request) *Adapter {
	if v, ok := r.Context().Value(selectionKey{}).(*selection); ok {
		return v.adapter
	}
	return nil
}

// modelName returns the name of the model that answers a request.
func (s *Server) modelName(r *http.Request) string {
	if a := selected(r); a != nil {
		return a.Name
	}
	return s.cfg.Model
}

// selectModel selects the model that a request names; "" stands for the served one. The
// error is that of an unknown name.
func (s *Server) selectModel(r *http.Request, name string) error {
	v, ok := r.Context().Value(selectionKey{}).(*selection)
	base, adapter := s.lookUp(name, s.adapters.hold)
	switch {
	case base:
		return nil
	case adapter == nil:
		return s.noModel(name)
	case !ok || v.adapter != nil: // the first name counts
		adapter.Adapter.Release()
		return nil
	}
	v.adapter = adapter
	s.adapters.count(adapter.Name)
	return nil
}

// maxModelName is the most bytes of a name in a request.
const maxModelName = 1024

// lookUp finds a name: base reports whether it is one of the model's, else get returns
// the adapter. Case, Ollama's tag ":latest" and what is in front of a slash, such as a
// client's "openai/", do not matter.
func (s *Server) lookUp(name string, get func(name string) *Adapter) (base bool, a *Adapter) {
	if name == "" {
		return true, nil
	}
	reserved := s.reserved()
	for rest, more := name, len(name) <= maxModelName; more; _, rest, more = strings.Cut(rest, "/") {
		if slices.ContainsFunc(reserved, func(k string) bool { return sameName(k, rest) }) {
			return true, nil
		}
		if a := get(rest); a != nil {
			return false, a
		}
	}
	return false, nil
}

// reserved lists the names that stand for the model without an adapter.
func (s *Server) reserved() []string {
	return append([]string{"default", s.cfg.Model, s.cfg.Manifest.Name}, s.cfg.Aliases...)
}

// sameName reports whether two names of models are equal, but for case and Ollama's tag.
func sameName(a, b string) bool {
	return strings.EqualFold(strings.TrimSuffix(a, ":latest"), strings.TrimSuffix(b, ":latest"))
}
