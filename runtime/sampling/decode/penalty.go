package decode

import "slices"

// fromPenalized samples after the repetition penalty (CTRL; Keskar et al. 2019, section
// 4.1). Negative logits are multiplied, as in transformers. The penalty applies once to
// each token in history.
func (s *StandardSampler) fromPenalized(logits []float32, history []int32) (int32, error) {
	s.row = append(s.row[:0], logits...)
	clear(s.seen)
	for _, id := range recent(history, s.opt.PenaltyWindow) {
		if _, again := s.seen[id]; !again && id >= 0 && int(id) < len(logits) {
			s.seen[id] = struct{}{}
			s.row[id] = penalize(logits[id], float32(s.opt.Penalty))
		}
	}
	top, ok := argmax(s.row)
	switch {
	case !ok:
		return 0, ErrNaN
	case s.opt.Temperature == 0:
		return int32(top), nil
	}
	return s.pick(s.row, s.row[top]), nil
}

// fromLargest samples after a repetition penalty above 1 of some tokens, as fromPenalized
// does, without a copy of the row: a penalty lowers logits, so the TopK largest after it are
// among as many more of the largest before it as there are tokens.
func (s *StandardSampler) fromLargest(logits []float32, tokens []int32, penalty float32) (int32, error) {
	before, ok := argmax(logits)
	if !ok {
		return 0, ErrNaN
	}
	clear(s.seen)
	for _, id := range tokens {
		s.seen[id] = struct{}{}
	}
	floor := s.floor(penalize(logits[before], penalty))
	c := s.largest(logits, min(s.opt.TopK+len(s.seen), len(logits)), float32(floor))
	top := never
	for i := range c {
		if _, ok := s.seen[c[i].id]; ok {
			c[i].logit = penalize(c[i].logit, penalty)
		}
		top = max(top, c[i].logit)
	}
	floor = s.floor(top)
	return s.draw(slices.DeleteFunc(c, func(x candidate) bool { return float64(x.logit) < floor })), nil
}

// penalize returns a logit after the repetition penalty.
func penalize(l, penalty float32) float32 {
	if l > 0 {
		return l / penalty
	}
	return l * penalty
}
