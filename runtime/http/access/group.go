package access

import (
	"fmt"
	"sync"
	"time"
)

// A group shares limits: all requests of a key, or of an address.
type group struct {
	name string // label in metrics

	mu          sync.Mutex
	maxPriority int
	operator    bool
	metricsOnly bool
	limits      Limits
	requests    bucket
	tokens      bucket
	running     int
}

func newGroup(name string) *group { return &group{name: name} }

// set changes the limits, and the rights to those of k. Running requests continue.
func (g *group) set(k *Key, l Limits, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maxPriority, g.operator, g.metricsOnly, g.limits = k.MaxPriority, k.Operator, k.MetricsOnly, l
	g.requests.set(l.Requests, now)
	g.tokens.set(l.Tokens, now)
}

// A Refusal is the reason why a client has to wait.
type Refusal struct {
	Limit string        // "requests", "tokens" or "concurrency"
	Text  string        // error message
	Wait  time.Duration // until it may retry; 0: unknown
}

// begin admits a request, or returns a refusal.
func (g *group) begin(who string, now time.Time) *Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := &g.limits
	if l.Concurrency > 0 && g.running >= l.Concurrency {
		return &Refusal{"concurrency", fmt.Sprintf("%s has reached its limit of %d concurrent requests; wait for one to end", who, l.Concurrency), 0}
	}
	if w := g.tokens.wait(0, now); w > 0 {
		return &Refusal{"tokens", fmt.Sprintf("%s has exceeded its limit of %d tokens per minute", who, l.Tokens), w}
	}
	if w := g.requests.wait(1, now); w > 0 {
		return &Refusal{"requests", fmt.Sprintf("%s has reached its limit of %d requests per minute", who, l.Requests), w}
	}
	g.requests.take(1, now)
	g.running++
	return nil
}

// end marks the end of a request.
func (g *group) end() {
	g.mu.Lock()
	g.running--
	g.mu.Unlock()
}

func (g *group) charge(tokens int, now time.Time) {
	g.mu.Lock()
	g.tokens.take(float64(tokens), now)
	g.mu.Unlock()
}

// quotas returns the state of the limits per minute.
func (g *group) quotas(now time.Time) (requests, tokens Quota) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests.quota(now), g.tokens.quota(now)
}
