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
