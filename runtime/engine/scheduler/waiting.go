//go:build unix

package scheduler

import (
	"cmp"
	"slices"
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
	var queued []policy.Waiting
	var order []int // positions in the queue, once a job is reported
	for i, e := range s.waiting {
		if !e.waitsLong(now) {
			continue
		}
		if order == nil {
			queued = s.queued()
			order = positions(queued)
		}
		lines = append(lines, append(e.waitLine(now), append([]any{"position", order[i], "waiting", len(s.waiting)}, s.reason(e, &queued[i])...)...))
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

// positions returns the place of each waiting job in the order of their admission,
// from 1.
func positions(queued []policy.Waiting) []int {
	at, rest := make([]int, len(queued)), make([]int, len(queued))
	for i := range rest {
		rest[i] = i
	}
	left := slices.Clone(queued)
	for n := 1; len(left) > 0; n++ {
		i := policy.NextWaiting(left, 0)
		at[rest[i]] = n
		left, rest = slices.Delete(left, i, i+1), slices.Delete(rest, i, i+1)
	}
	return at
}

// reason says what a job in the queue waits for.
func (s *Scheduler) reason(e *entry, w *policy.Waiting) []any {
	limit, clients := s.eng.Options().MaxSeqs, map[string]bool{e.Client: true}
	running, pages := 0, s.eng.Unused()
	for _, l := range s.live {
		running += l.slots()
		pages -= l.slots()
		clients[l.Client] = true
	}
	for _, other := range s.waiting {
		clients[other.Client] = true
	}
	pages = max(0, pages)
	why := "its turn: other requests come first"
	switch {
	case len(clients) > 1 && w.Sequences > limit-running && w.ClientLoad > 0 && w.ClientLoad+w.Sequences > limit/len(clients):
		why = "its client's share: its other requests use it"
	case w.Sequences > limit-running:
		why = "sequences: all run (--parallel)"
	case !policy.Fits(w, limit-running, pages, len(s.live) == 0):
		why = "KV cache: pages are missing (--pages, --memory)"
	}
	return []any{
		"for", why, "sequences", w.Sequences, "running", running, "parallel", limit, "caller_running", w.ClientLoad, "pages", w.Pages, "free_pages", pages,
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
