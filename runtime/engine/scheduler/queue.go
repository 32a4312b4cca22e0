//go:build unix

package scheduler

import (
	"maps"
	"slices"
	"time"

	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine/policy"
)

// admit starts waiting jobs as long as sequences and pages suffice, in the
// policy's order.
func (s *Scheduler) admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots, pages := s.eng.Options().MaxSeqs, s.eng.Unused()
	for _, e := range s.live {
		slots -= e.slots()
		pages -= e.slots() // each may need one more any moment
	}
	for {
		queued := s.queued()
		at := policy.Turn(queued, 0)
		if at < 0 {
			return
		}
		for !policy.Fits(&queued[at], slots, pages, len(s.live) == 0) {
			n := s.makeWay(s.waiting[at], &queued[at])
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

// begin starts a job, or lets one go on that made way.
func (s *Scheduler) begin(e *entry) error {
	e.since = time.Now()
	s.tookTurn(e)
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

// queued is what the policy knows of the waiting jobs.
func (s *Scheduler) queued() (list []policy.Waiting) {
	if len(s.waiting) == 0 {
		return nil
	}
	load := s.load()
	now := time.Now()
	for _, e := range s.waiting {
		list = append(list, policy.Waiting{
			Priority: e.Priority, Waited: now.Sub(e.since), ClientLoad: load[e.client()], UserLoad: load[e.user()],
			ClientRest: now.Sub(s.turns[e.client()]), UserRest: now.Sub(s.turns[e.user()]), Sequences: e.slots(), Pages: e.pages(),
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

// mostTurns is how many clients and users are remembered before those are
// forgotten whose last turn is long ago: they have none waiting, or all turns of
// others come first.
const mostTurns = 4096

// tookTurn notes that a client and its user had a turn.
func (s *Scheduler) tookTurn(e *entry) {
	if len(s.turns) > mostTurns {
		maps.DeleteFunc(s.turns, func(_ owner, at time.Time) bool { return e.since.Sub(at) > time.Second })
	}
	s.turns[e.client()], s.turns[e.user()] = e.since, e.since
}

// load is how many sequences each client has, and each of its users.
func (s *Scheduler) load() map[owner]int {
	load := map[owner]int{}
	for _, e := range s.live {
		load[e.client()] += e.slots()
		load[e.user()] += e.slots()
	}
	return load
}

// makeWay lets a live job wait for the one whose turn it is, as the policy says,
// and is how many sequences that frees; 0: none makes way.
func (s *Scheduler) makeWay(next *entry, w *policy.Waiting) int {
	load, now := s.load(), time.Now()
	list := make([]policy.Live, len(s.live))
	for i, e := range s.live {
		a, b := e.client(), next.client()
		if a == b {
			a, b = e.user(), next.user()
		}
		list[i] = policy.Live{Priority: e.Priority, Load: load[a], Own: load[b], Fixed: a == b || now.Sub(e.since) < s.opt.Turn || e.resumed}
	}
	at := policy.MakeWay(list, w)
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
	s.decided("made way", e, nil)
	return e.slots()
}

// room says whether the queue takes another job of a client. Where it is full, a
// client with at least two jobs more than this one loses its last: a client that
// fills the queue is refused, others are not. s.mu is held.
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

// pages is how many KV-cache pages a job takes at its start, and one more for
// each of its sequences.
func (e *entry) pages() int {
	return (e.tokens()+device.PageRows-1)/device.PageRows + e.slots()
}
