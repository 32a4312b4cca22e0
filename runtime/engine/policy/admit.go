package policy

import (
	"cmp"
	"time"
)

// A Waiting is the state of a request in the queue.
type Waiting struct {
	Priority    int           // smaller is more urgent
	Waited      time.Duration // since it arrived, or was suspended
	ClientLoad  int           // live sequences of its client
	UserLoad    int           // live sequences of its user, a part of ClientLoad
	ClientSince time.Duration // since a request of its client was last admitted
	UserSince   time.Duration // since a request of its user was last admitted
	Sequences   int           // sequences that it needs
	Pages       int           // KV cache pages that it needs
}

// Admit returns the index of the request to admit next, or -1. It is the one that
// NextWaiting selects; smaller requests do not overtake it if it does not fit. If
// nothing is live, Admit ignores the limits.
func Admit(waiting []Waiting, sequences, pages int, idle bool, without Rule) int {
	best := NextWaiting(waiting, without)
	if best >= 0 && !Fits(&waiting[best], sequences, pages, idle) {
		return -1
	}
	return best
}

// Fits reports whether a request fits into the free sequences and pages; idle means
// that nothing is live.
func Fits(w *Waiting, sequences, pages int, idle bool) bool {
	return idle || w.Sequences <= sequences && w.Pages <= pages
}

// NextWaiting returns the index of the first request in the order of admission, or -1
// if waiting is empty. waiting is in order of arrival. The order is: the most urgent;
// of the client with the fewest live sequences; of the client's user with the fewest;
// of the client, then the user, admitted longest ago; the first to arrive.
func NextWaiting(waiting []Waiting, without Rule) int {
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
			c = cmp.Or(c, cmp.Compare(w.ClientLoad, b.ClientLoad), cmp.Compare(w.UserLoad, b.UserLoad), cmp.Compare(b.ClientSince, w.ClientSince), cmp.Compare(b.UserSince, w.UserSince))
		}
		if c < 0 {
			best = i + 1
		}
	}
	return best
}

// A Live is the state of a live request, relative to a waiting one.
type Live struct {
	Priority    int
	Load        int  // sequences of its client; of its user, if the waiting request has the same client
	WaitingLoad int  // sequences of the waiting request's client, or user
	Fixed       bool // it cannot be suspended
}

// SuspendFor returns the index of the live request to suspend for a waiting one, or -1
// if there is none. live is in order of admission. The request is the last of the
// client with the most sequences, provided that it is not more urgent and that its
// client has more sequences than the waiting request's client will have. A suspended
// request later continues where it stopped, and keeps its pages until others need them.
func SuspendFor(live []Live, w *Waiting) int {
	victim := -1
	for i := range live {
		l := &live[i]
		if l.Fixed || l.Priority < w.Priority || l.Load <= l.WaitingLoad+w.Sequences {
			continue
		}
		if victim < 0 || l.Load >= live[victim].Load {
			victim = i
		}
	}
	return victim
}
