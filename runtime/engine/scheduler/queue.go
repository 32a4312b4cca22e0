//go:build unix

package scheduler

import (
	"time"

	"github.com/iflowc/iflowc/runtime/device"
)

// patience is after how long a waiting job counts as one step more urgent, so
// that no flow of urgent jobs keeps another waiting for ever.
const patience = 5 * time.Second

// admit starts waiting jobs as long as sequences and pages suffice. The next
// one is always the one that should have its turn: a large job at the front is
// not overtaken by smaller ones behind it until it never fits.
func (s *Scheduler) admit() {
	s.mu.Lock()
	defer s.mu.Unlock()
	slots, pages := s.eng.Options().MaxSeqs, s.eng.Unused()
	for _, e := range s.live {
		slots -= e.slots()
		pages -= e.slots() // each may need one more any moment
	}
	for len(s.waiting) > 0 {
		at := s.next()
		e := s.waiting[at]
		need := (e.tokens()+device.PageRows-1)/device.PageRows + e.slots()
		if len(s.live) > 0 && (e.slots() > slots || need > pages) {
			return
		}
		s.waiting = append(s.waiting[:at], s.waiting[at+1:]...)
		s.opt.Metrics.observeQueue(time.Since(e.arrived))
		if err := e.start(&access{s, e}); err != nil {
			s.release(e)
			e.end(err)
			continue
		}
		s.decided("admitted", e, nil)
		slots -= e.slots()
		pages -= need
		s.live = append(s.live, e)
		s.running = len(s.live)
	}
}

// next is the index of the waiting job whose turn it is: the most urgent, then
// one of the client with the fewest sequences at work, then the oldest.
func (s *Scheduler) next() int {
	busy := map[string]int{}
	for _, e := range s.live {
		busy[e.Client] += e.slots()
	}
	now := time.Now()
	urgency := func(e *entry) int { return e.Priority - int(now.Sub(e.arrived)/patience) }
	best := 0
	for i, e := range s.waiting[1:] {
		b := s.waiting[best]
		ue, ub := urgency(e), urgency(b)
		if ue < ub || ue == ub && busy[e.Client] < busy[b.Client] {
			best = i + 1
		}
	}
	return best
}
