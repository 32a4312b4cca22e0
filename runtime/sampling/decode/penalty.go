package decode

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

// penalize returns a logit after the repetition penalty.
func penalize(l, penalty float32) float32 {
	if l > 0 {
		return l / penalty
	}
	return l * penalty
}
