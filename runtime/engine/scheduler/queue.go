//go:build unix

package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// admit starts waiting jobs in the policy's order, as long as there are sequences and
// pages for them.
func (s *Scheduler) admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots, pages := s.eng.Options().MaxSeqs, s.eng.Unused()
	for _, e := range s.live {
		slots -= e.slots()
		pages -= e.slots() // each may need another page at any time
	}
	for {
		queued := s.queued()
		at := policy.NextWaiting(queued, 0)
		if at < 0 {
			return
		}
		for !policy.Fits(&queued[at], slots, pages, len(s.live) == 0) {
			n := s.suspendFor(s.waiting[at], &queued[at])
			if n == 0 {
				return
			}
			slots += n
			pages = s.eng.Unused() - (s.eng.Options().MaxSeqs - slots)
		}
		e := s.waiting[at]
		s.waiting = append(s.waiting[:at], s.waiting[at+1:]...)
		if err := s.begin(e); err != nil {
			s.release(e)
			e.end(err)
			continue
		}
		s.decided("admitted", e, nil)
		slots -= e.slots()
		pages -= e.pages()
		s.live = append(s.live, e)
		s.running = len(s.live)
	}
}

// begin starts a job, or resumes a suspended one.
func (s *Scheduler) begin(e *entry) error {
	e.since = time.Now()
	s.recordAdmission(e)
	if !e.begun {
		e.begun = true
		s.opt.Metrics.observeQueue(e.since.Sub(e.arrived))
		return e.start(&access{s, e})
	}
	e.resumed = true
	for _, id := range e.ids {
		if err := s.eng.Resume(id); err != nil {
			return err
		}
	}
	return nil
}

// queued returns the waiting jobs in the policy's terms.
func (s *Scheduler) queued() (list []policy.Waiting) {
	if len(s.waiting) == 0 {
		return nil
	}
	load := s.load()
	now := time.Now()
	for _, e := range s.waiting {
		list = append(list, policy.Waiting{
			Priority: e.Priority, Waited: now.Sub(e.since), ClientLoad: load[e.client()], UserLoad: load[e.user()],
			ClientSince: now.Sub(s.admitted[e.client()]), UserSince: now.Sub(s.admitted[e.user()]), Sequences: e.slots(), Pages: e.pages(),
		})
	}
	return list
}

// An owner is a client as a whole, or one of its users.
type owner struct {
	client, user string
	whole        bool
}

func (e *entry) client() owner { return owner{client: e.Client, whole: true} }
func (e *entry) user() owner   { return owner{client: e.Client, user: e.User} }

// maxAdmitted bounds the number of clients and users with a recorded admission. Beyond
// it, admissions more than a second ago are dropped; owners without one are admitted
// first.
const maxAdmitted = 4096

// recordAdmission records the time at which a client and its user were last admitted.
func (s *Scheduler) recordAdmission(e *entry) {
	if len(s.admitted) > maxAdmitted {
		maps.DeleteFunc(s.admitted, func(_ owner, at time.Time) bool { return e.since.Sub(at) > time.Second })
	}
	s.admitted[e.client()], s.admitted[e.user()] = e.since, e.since
}

// load returns the number of live sequences of each client and user.
func (s *Scheduler) load() map[owner]int {
	load := map[owner]int{}
	for _, e := range s.live {
		load[e.client()] += e.slots()
		load[e.user()] += e.slots()
	}
	return load
}

// suspendFor suspends the live job that the policy selects for a waiting one and
// returns the number of sequences that this frees; 0: none is suspended.
func (s *Scheduler) suspendFor(next *entry, w *policy.Waiting) int {
	load, now := s.load(), time.Now()
	list := make([]policy.Live, len(s.live))
	for i, e := range s.live {
		a, b := e.client(), next.client()
		if a == b {
			a, b = e.user(), next.user()
		}
		list[i] = policy.Live{Priority: e.Priority, Load: load[a], WaitingLoad: load[b], Fixed: a == b || now.Sub(e.since) < s.opt.MinRun || e.resumed}
	}
	at := policy.SuspendFor(list, w)
	if at < 0 {
		return 0
	}
	e := s.live[at]
	for _, id := range e.ids {
		s.eng.Suspend(id)
	}
	e.since = now
	s.live = slices.Delete(s.live, at, at+1)
	s.running = len(s.live)
	s.waiting = append(s.waiting, e)
	s.decided("suspended", e, nil)
	return e.slots()
}

// room reports whether the queue accepts another job of a client. If the queue is full,
// a client with at least two more waiting jobs than this one loses its last job, so
// that only the client that fills the queue is refused. s.mu is held.
func (s *Scheduler) room(client string) bool {
	count := map[string]int{}
	waiting := 0
	for _, e := range s.waiting {
		if !e.begun {
			count[e.Client]++
			waiting++
		}
	}
	if waiting < s.opt.Queue {
		return true
	}
	last := -1
	for i, e := range s.waiting {
		if !e.begun && count[e.Client] > count[client]+1 && (last < 0 || count[e.Client] >= count[s.waiting[last].Client]) {
			last = i
		}
	}
	if last < 0 {
		return false
	}
	s.waiting[last].end(ErrFull)
	s.waiting = slices.Delete(s.waiting, last, last+1)
	return true
}

// pages returns the number of KV cache pages that a job needs to start, plus one for
// each of its sequences.
func (e *entry) pages() int {
	return (e.tokens()+device.PageRows-1)/device.PageRows + e.slots()
}
