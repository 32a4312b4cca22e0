package policy

import "time"

// A Waiting is the state of a request in the queue.
type Waiting struct {
	Priority   int           // smaller is more urgent
	Waited     time.Duration // since it came
	ClientLoad int           // sequences of its client that are live
	Sequences  int           // that it takes
	Pages      int           // KV-cache pages that it takes
}

// aging is after how long a waiting request counts as one step more urgent, up to
// the most urgent that wait: beyond, it would take the turns of other clients.
const aging = 5 * time.Second

// Admit is the index of the request that is to become live next, the oldest
// first in waiting; -1: none. It is the most urgent, then one of the client with
// the fewest live sequences, then the oldest: a large request whose turn it is is
// not overtaken by smaller ones until it never fits. Where nothing is live
// whatever comes is admitted, however large.
func Admit(waiting []Waiting, sequences, pages int, idle bool, without Rule) int {
	if len(waiting) == 0 {
		return -1
	}
	floor := waiting[0].Priority
	for i := range waiting {
		floor = min(floor, waiting[i].Priority)
	}
	urgency := func(w *Waiting) int {
		if without&Aging != 0 {
			return w.Priority
		}
		return max(floor, w.Priority-int(w.Waited/aging))
	}
	best := 0
	for i := range waiting[1:] {
		w, b := &waiting[i+1], &waiting[best]
		uw, ub := urgency(w), urgency(b)
		if uw < ub || uw == ub && w.ClientLoad < b.ClientLoad && without&ClientFairness == 0 {
			best = i + 1
		}
	}
	if w := waiting[best]; !idle && (w.Sequences > sequences || w.Pages > pages) {
		return -1
	}
	return best
}

// Where nothing runs, a first request waits for others of its burst until none
// has come for a moment, or as many are there as can run, and no longer than
// maxWindow: they are prefilled together, and while steps run their threads keep
// the others from arriving. The moment is longer while fewer are there than were
// live at once before, without which one burst in five of 16 clients on two
// processors began with those of them that were first, and short when all are.
const (
	window      = 2 * time.Millisecond
	windowFewer = 5 * time.Millisecond
	windowAll   = 1 * time.Millisecond
	maxWindow   = 4 * windowFewer
)

// Window is how long an idle service waits for one more request of a burst (a
// batching window), where expected requests were live at once before it was
// idle, 0: that is not known; sequences can run, and elapsed has passed since
// the first came. 0: it begins.
func Window(waiting, expected, sequences int, elapsed time.Duration, without Rule) time.Duration {
	wait := window
	switch {
	case waiting >= sequences || without&BatchingWindow != 0:
		return 0
	case waiting < expected:
		wait = windowFewer
	case expected > 0:
		wait = windowAll
	}
	return max(0, min(wait, maxWindow-elapsed))
}
