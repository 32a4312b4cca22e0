package access

import (
	"sync"

	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// Labels for requests without a key's name. Names cannot contain parentheses.
const (
	noKey      = "(none)"    // clients of a service without keys
	unknownKey = "(unknown)" // clients with a wrong key
	otherKeys  = "(other)"   // names beyond maxLabels
)

// maxLabels bounds the number of labels of a service that reloads changing keys.
const maxLabels = 1000

// counts are the metrics by key; nil: none.
type counts struct {
	request, token, refuse, outdated *metrics.Counter

	mu   sync.Mutex
	seen map[string]bool
}

func newCounts(r *metrics.Registry) *counts {
	if r == nil {
		return nil
	}
	return &counts{
		request:  r.Counter("iflowc_key_requests_total", "Admitted requests, by key name.", "key"),
		token:    r.Counter("iflowc_key_tokens_total", "Prompt tokens that were computed, and generated tokens, by key name.", "key"),
		refuse:   r.Counter("iflowc_key_refused_total", "Requests over a limit or with a wrong key, by key name; (unknown) for wrong keys.", "key"),
		outdated: r.Counter("iflowc_key_old_requests_total", "Requests with a key that is not the last in its name's list, by key name; when it stops rising, remove the old keys.", "key"),
		seen:     map[string]bool{},
	}
}

// label returns the name, or otherKeys if there are too many names.
func (c *counts) label(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.seen[name] {
		if len(c.seen) >= maxLabels {
			return otherKeys
		}
		c.seen[name] = true
	}
	return name
}

func (c *counts) requests(name string) {
	if c != nil {
		c.request.Add(1, c.label(name))
	}
}

func (c *counts) tokens(name string, n int) {
	if c != nil {
		c.token.Add(float64(n), c.label(name))
	}
}

func (c *counts) refused(name string) {
	if c != nil {
		c.refuse.Add(1, c.label(name))
	}
}

func (c *counts) old(name string) {
	if c != nil {
		c.outdated.Add(1, c.label(name))
	}
}
