//go:build unix

package scheduler

import "time"

// decided tells the trace what happens to a job.
func (s *Scheduler) decided(what string, e *entry, err error) {
	if s.opt.Decided == nil {
		return
	}
	args := map[string]any{
		"client": e.Client, "priority": e.Priority, "prompt tokens": e.tokens(), "sequences": e.slots(),
		"ms since it came": float64(time.Since(e.arrived).Microseconds()) / 1e3,
	}
	if err != nil {
		args["error"] = err.Error()
	}
	s.opt.Decided(what, args)
}

// preempted tells the trace how many sequences lost their pages in a step.
func (s *Scheduler) preempted() {
	if s.opt.Decided == nil {
		return
	}
	if n := s.eng.Stats().Preempted; n > s.lost {
		s.opt.Decided("preempted", map[string]any{"sequences": n - s.lost})
		s.lost = n
	}
}
