package access

import (
	"sync"

	"github.com/iflowc/iflowc/runtime/kit/metrics"
)

// Labels that are no key's name: names have no parentheses.
const (
	noKey      = "(none)"    // callers of a service that asks for no keys
	unknownKey = "(unknown)" // callers with a wrong key
	otherKeys  = "(other)"   // names beyond mostLabels
)

// mostLabels bounds the labels that a long life with changing keys leaves.
const mostLabels = 1000

// counts are what keys did; nil counts nothing.
type counts struct {
	request, token, refuse *metrics.Counter

	mu   sync.Mutex
	seen map[string]bool
}

func newCounts(r *metrics.Registry) *counts {
	if r == nil {
		return nil
	}
	return &counts{
		request: r.Counter("iflowc_key_requests_total", "Requests that were admitted, by the name of their key.", "key"),
		token:   r.Counter("iflowc_key_tokens_total", "Tokens of prompts and answers, by the name of their key.", "key"),
		refuse:  r.Counter("iflowc_key_refused_total", "Requests over a limit or with a wrong key, by the name of their key.", "key"),
		seen:    map[string]bool{},
	}
}

// label is the name, or another once there are too many.
func (c *counts) label(name string) string {
	c.mu.Lock()
	defer c.mu.Unlock()
	if !c.seen[name] {
		if len(c.seen) >= mostLabels {
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
