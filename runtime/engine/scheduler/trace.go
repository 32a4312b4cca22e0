//go:build unix

package scheduler

import "time"

// decided reports a scheduling decision about a job to Options.Decided.
func (s *Scheduler) decided(what string, e *entry, err error) {
	if s.opt.Decided == nil {
		return
	}
	args := map[string]any{
		"client": e.Client, "priority": e.Priority, "prompt tokens": e.tokens(), "sequences": e.slots(),
		"ms since arrival": float64(time.Since(e.arrived).Microseconds()) / 1e3,
	}
	if err != nil {
		args["error"] = err.Error()
	}
	s.opt.Decided(what, args)
}

// preempted reports the number of sequences that were preempted in a step.
func (s *Scheduler) preempted() {
	if s.opt.Decided == nil {
		return
	}
	if n := s.eng.Stats().Preempted; n > s.lost {
		s.opt.Decided("preempted", map[string]any{"sequences": n - s.lost})
		s.lost = n
	}
}
