//go:build unix

package scheduler

import "github.com/iflowc/iflowc/runtime/engine"

// A progress is how much of a job's prompt was computed.
type progress struct {
	id     engine.ID // sequence that computes the prompt
	length int       // tokens of the prompt
	source int       // tokens of an encoder's source that are not counted yet
	done   int       // tokens of the prompt that are counted, or were found in the prefix cache
}

// advance returns the number of tokens of the prompt and its source that a step computed
// for the first time. Tokens found in the prefix cache are not computed, and tokens that
// are computed again after a preemption were counted before.
func (p *progress) advance(r engine.Result) int {
	if r.ID != p.id {
		return 0
	}
	from := max(p.done, r.Cached)
	p.done = max(from, min(p.length, r.First+r.Rows))
	n := p.done - from + p.source
	p.source = 0
	return n
}

// count counts tokens that a step computed for a job, in the metrics and for its client.
func (s *Scheduler) count(e *entry, prompt, generated int) {
	if n := prompt + generated; n > 0 {
		s.opt.Metrics.observeTokens(prompt, generated)
		if e.Charge != nil {
			e.Charge(n)
		}
	}
}
