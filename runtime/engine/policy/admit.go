package policy

import (
	"cmp"
	"time"
)

// A Waiting is the state of a request in the queue.
type Waiting struct {
	Priority   int           // smaller is more urgent
	Waited     time.Duration // since it came, or made way for another
	ClientLoad int           // sequences of its client that are live
	UserLoad   int           // of these, its user's
	ClientRest time.Duration // since a request of its client became live last
	UserRest   time.Duration // the same of its user
	Sequences  int           // that it takes
	Pages      int           // KV-cache pages that it takes
}

// Admit is the index of the request that is to become live next, in the order of
// Turn; -1: none. A large request whose turn it is is not overtaken by smaller
// ones until it never fits. Where nothing is live whatever comes is admitted,
// however large.
func Admit(waiting []Waiting, sequences, pages int, idle bool, without Rule) int {
	best := Turn(waiting, without)
	if best >= 0 && !Fits(&waiting[best], sequences, pages, idle) {
		return -1
	}
	return best
}

// Fits says whether a request can become live where so many sequences and pages
// are free; idle: nothing is live.
func Fits(w *Waiting, sequences, pages int, idle bool) bool {
	return idle || w.Sequences <= sequences && w.Pages <= pages
}

// Turn is the index of the request whose turn it is, the first to come first in
// waiting; -1: nothing waits. It is the most urgent, then one of the client with
// the fewest live sequences, then of the client's user with the fewest; among equals
// one of the client, and of the user, that had its turn longest ago, then the first.
func Turn(waiting []Waiting, without Rule) int {
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
		c := cmp.Compare(urgency(w), urgency(b))
		if without&ClientFairness == 0 {
			c = cmp.Or(c, cmp.Compare(w.ClientLoad, b.ClientLoad), cmp.Compare(w.UserLoad, b.UserLoad), cmp.Compare(b.ClientRest, w.ClientRest), cmp.Compare(b.UserRest, w.UserRest))
		}
		if c < 0 {
			best = i + 1
		}
	}
	return best
}

// A Live is the state of a request that has sequences, as one that waits for
// some sees it.
type Live struct {
	Priority int
	Load     int  // sequences of its client; of its user, if the waiting one is of the same client
	Own      int  // the same of the client, or the user, of the one that waits
	Fixed    bool // it cannot make way
}

// MakeWay is the index of the live request that makes way for a waiting one, the
// first to become live first in live; -1: none. It is the last of the client
// with the most sequences, if that still has more than the other one's client
// then gets, and if it is not more urgent. It waits, and goes on from where it
// was: it keeps its pages unless others need them.
func MakeWay(live []Live, w *Waiting) int {
	victim := -1
	for i := range live {
		l := &live[i]
		if l.Fixed || l.Priority < w.Priority || l.Load <= l.Own+w.Sequences {
			continue
		}
		if victim < 0 || l.Load >= live[victim].Load {
			victim = i
		}
	}
	return victim
}
