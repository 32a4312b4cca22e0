package decode

// fromPenalised draws after the repetition penalty (Keskar et al. 2019, CTRL,
// section 4.1; negative logits are multiplied, as transformers does): logits
// of tokens in history are moved down once, however often they stand there.
func (s *Sampler) fromPenalised(logits []float32, history []int32) (int32, error) {
	clear(s.seen)
	for _, id := range history {
		s.seen[id] = struct{}{}
	}
	s.pool = s.pool[:0]
	for i, l := range logits {
		if _, ok := s.seen[int32(i)]; ok {
			l = penalise(l, float32(s.opt.Penalty))
		}
		s.pool = append(s.pool, candidate{id: int32(i), logit: l})
	}
	if s.opt.Temperature > 0 {
		return s.draw(s.pool), nil
	}
	best := s.pool[0]
	for _, c := range s.pool {
		if c.logit > best.logit {
			best = c
		}
	}
	return best.id, nil
}

func penalise(l, penalty float32) float32 {
	if l > 0 {
		return l / penalty
	}
	return l * penalty
}
