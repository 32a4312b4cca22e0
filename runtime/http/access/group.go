package access

import (
	"fmt"
	"sync"
	"time"
)

// A group is who shares limits: a key's owner, or an address.
type group struct {
	name string // what metrics call it

	mu          sync.Mutex
	maxPriority int
	limits      Limits
	requests    bucket
	tokens      bucket
	running     int
}

func newGroup(name string) *group { return &group{name: name} }

// set changes what the group may do. What runs goes on.
func (g *group) set(maxPriority int, l Limits, now time.Time) {
	g.mu.Lock()
	defer g.mu.Unlock()
	g.maxPriority, g.limits = maxPriority, l
	g.requests.set(l.Requests, now)
	g.tokens.set(l.Tokens, now)
}

// A Refusal says why a caller has to wait.
type Refusal struct {
	Limit string        // "requests", "tokens" or "concurrency"
	Text  string        // a sentence
	Wait  time.Duration // until it may ask again; 0: unknown
}

// begin admits a request, or says why not.
func (g *group) begin(who string, now time.Time) *Refusal {
	g.mu.Lock()
	defer g.mu.Unlock()
	l := &g.limits
	if l.Concurrency > 0 && g.running >= l.Concurrency {
		return &Refusal{"concurrency", fmt.Sprintf("%s may have %d requests at once, and has them; wait for one to end", who, l.Concurrency), 0}
	}
	if w := g.tokens.wait(0, now); w > 0 {
		return &Refusal{"tokens", fmt.Sprintf("%s may use %d tokens per minute, and has used more", who, l.Tokens), w}
	}
	if w := g.requests.wait(1, now); w > 0 {
		return &Refusal{"requests", fmt.Sprintf("%s may send %d requests per minute, and has sent them", who, l.Requests), w}
	}
	g.requests.take(1, now)
	g.running++
	return nil
}

// end says that a request has ended.
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

// quotas are what is left of the limits per minute.
func (g *group) quotas(now time.Time) (requests, tokens Quota) {
	g.mu.Lock()
	defer g.mu.Unlock()
	return g.requests.quota(now), g.tokens.quota(now)
}
