//go:build unix

package scheduler

import (
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
		at := policy.Admit(s.queued(), slots, pages, len(s.live) == 0, 0)
		if at < 0 {
			return
		}
		e := s.waiting[at]
		s.waiting = append(s.waiting[:at], s.waiting[at+1:]...)
		s.opt.Metrics.observeQueue(time.Since(e.arrived))
		if err := e.start(&access{s, e}); err != nil {
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

// queued is what the policy knows of the waiting jobs.
func (s *Scheduler) queued() (list []policy.Waiting) {
	if len(s.waiting) == 0 {
		return nil
	}
	load := map[string]int{}
	for _, e := range s.live {
		load[e.Client] += e.slots()
	}
	now := time.Now()
	for _, e := range s.waiting {
		list = append(list, policy.Waiting{Priority: e.Priority, Waited: now.Sub(e.arrived), ClientLoad: load[e.Client], Sequences: e.slots(), Pages: e.pages()})
	}
	return list
}

// pages is how many KV-cache pages a job takes at its start, and one more for
// each of its sequences.
func (e *entry) pages() int {
	return (e.tokens()+device.PageRows-1)/device.PageRows + e.slots()
}
