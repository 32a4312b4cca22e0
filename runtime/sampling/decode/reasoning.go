package decode

import "errors"

// Reasoning describes the reasoning that a model writes before its answer.
type Reasoning struct {
	Inside bool // the prompt has begun the reasoning
	Budget int  // maximum number of tokens of the reasoning; negative: no limit

	// Push adds a token and reports whether the text is now inside the reasoning, and
	// whether reasoning may follow.
	Push func(token int32) (inside, more bool)
	// Close returns the tokens that end the reasoning; again: it was ended before, and
	// the model has begun another one.
	Close func(again bool) []int32
	// Inner has the tokens that reasoning may consist of, as bits. It is used if the
	// answer has a mask; nil: all.
	Inner []uint64
}

// Then returns a mask that leaves the reasoning free until it exceeds its budget, and then
// closes it. After the reasoning, answer applies; nil: every token is allowed.
func (r Reasoning) Then(answer Mask) Mask {
	m := &reasonedMask{Reasoning: r, answer: answer}
	m.limit()
	return m
}

// A reasonedMask is the mask of an answer with reasoning.
type reasonedMask struct {
	Reasoning
	answer Mask    // nil: none
	over   bool    // no reasoning follows
	used   int     // tokens of reasoning
	forced []int32 // tokens that must follow
	closed int     // how often the reasoning was closed
}

// limit closes the reasoning if its budget is used up.
func (m *reasonedMask) limit() {
	if m.Inside && m.Budget >= 0 && m.used >= m.Budget {
		m.forced = m.Close(m.closed > 0)
		m.closed++
	}
}

// Mask returns the tokens that may come next.
func (m *reasonedMask) Mask() ([]uint64, error) {
	switch {
	case m.answer == nil:
		return nil, nil
	case !m.over:
		return m.Inner, nil
	}
	return m.answer.Mask()
}

// Forced returns the token that must come next, if there is only one.
func (m *reasonedMask) Forced() (token int32, ok bool) {
	if len(m.forced) == 0 {
		return 0, false
	}
	return m.forced[0], true
}

// Ready reports whether Mask would return without blocking.
func (m *reasonedMask) Ready(notify func()) bool {
	return !m.over || m.answer == nil || m.answer.Ready(notify)
}

// Accept adds the chosen token.
func (m *reasonedMask) Accept(token int32) error {
	if m.over {
		if m.answer == nil {
			return nil
		}
		return m.answer.Accept(token)
	}
	closing := len(m.forced) > 0
	if closing {
		if token != m.forced[0] {
			return errors.New("a token that closes the reasoning was not chosen")
		}
		m.forced = m.forced[1:]
	}
	was, more := m.Inside, false
	m.Inside, more = m.Push(token)
	if was && m.Inside {
		m.used++
	}
	switch {
	case len(m.forced) > 0:
	case m.Inside && !closing:
		m.limit()
	case m.Inside: // the tokens did not close it: do not try again
		m.Budget = -1
	default:
		m.over = m.answer != nil || !more
	}
	return nil
}

// Done reports whether only the end may follow.
func (m *reasonedMask) Done() bool { return m.over && m.answer != nil && m.answer.Done() }
