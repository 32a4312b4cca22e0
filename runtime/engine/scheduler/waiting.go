//go:build unix

package scheduler

import (
	"cmp"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// A Request identifies a client's request in the log. Several jobs may belong to one.
type Request struct {
	ID      string
	Arrived time.Time

	reported bool // used only by the loop
}

// longWait is the time after which a client's waiting is logged.
const longWait = 10 * time.Second

// reportWaiting logs, once for each request, that its client has waited for longWait:
// for its first token, or for the next one of a suspended job. s.mu is held.
func (s *Scheduler) reportWaiting(now time.Time) {
	if s.opt.Log == nil {
		return
	}
	var lines [][]any
	var queued []policy.Waiting // set once a job is reported
	var have resources
	for i, e := range s.waiting {
		if !e.waitsLong(now) {
			continue
		}
		if queued == nil {
			queued, have = s.queued(), s.resources()
		}
		lines = append(lines, append(append(e.waitLine(now), "waiting", len(s.waiting)), have.reason(&queued[i])...))
	}
	for _, e := range s.live {
		if !e.answered && e.waitsLong(now) {
			lines = append(lines, append(e.waitLine(now), e.progressReason()...))
		}
	}
	if len(lines) == 0 {
		return
	}
	go func() { // steps do not wait for the log
		for _, line := range lines {
			s.opt.Log.Warn("a client waits long", line...)
		}
	}()
}

// waitsLong reports whether a job's client waits for longWait, the first time that it
// does.
func (e *entry) waitsLong(now time.Time) bool {
	if e.Request == nil || e.Request.reported {
		return false
	}
	e.Request.reported = now.Sub(e.waitsSince()) >= longWait
	return e.Request.reported
}

// waitsSince returns the time since when a job's client waits.
func (e *entry) waitsSince() time.Time {
	if e.answered {
		return e.since
	}
	return e.Request.Arrived
}

func (e *entry) waitLine(now time.Time) []any {
	return []any{"request", e.Request.ID, "caller", e.Client, "priority", e.Priority, "seconds", int(now.Sub(e.waitsSince()).Seconds())}
}

// resources are what jobs in the queue wait for.
type resources struct {
	limit, running int // sequences
	pages          int // that are free
	clients        int // that have jobs
	idle           bool
}

func (s *Scheduler) resources() resources {
	r := resources{limit: s.eng.Options().MaxSeqs, pages: s.eng.Unused(), idle: len(s.live) == 0}
	clients := map[string]bool{}
	for _, l := range s.live {
		r.running += l.slots()
		r.pages -= l.slots()
		clients[l.Client] = true
	}
	for _, e := range s.waiting {
		clients[e.Client] = true
	}
	r.pages, r.clients = max(0, r.pages), len(clients)
	return r
}

// reason says what a job in the queue waits for.
func (r *resources) reason(w *policy.Waiting) []any {
	free := r.limit - r.running
	why := "its turn: other requests come first"
	switch {
	case r.clients > 1 && w.Sequences > free && w.ClientLoad > 0 && w.ClientLoad+w.Sequences > r.limit/r.clients:
		why = "its client's share: its other requests use it"
	case w.Sequences > free:
		why = "sequences: all run (--parallel)"
	case !policy.Fits(w, free, r.pages, r.idle):
		why = "KV cache: pages are missing (--pages, --memory)"
	}
	return []any{
		"for", why, "sequences", w.Sequences, "running", r.running, "parallel", r.limit, "caller_running", w.ClientLoad, "pages", w.Pages, "free_pages", r.pages,
	}
}

// progressReason says what a live job waits for.
func (e *entry) progressReason() []any {
	why := "prefill: its prompt is being computed"
	if e.late() {
		why = "a token mask: its grammar is being computed"
	}
	return []any{"for", why, "prompt_tokens", cmp.Or(e.prompt.length, e.tokens()), "computed", e.prompt.done}
}
