//go:build unix

package server

import (
	"github.com/iflowc/iflowc/runtime/sampling/decode"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A reasonedMask lets a model end the reasoning that its prompt has begun. Then the mask
// of the answer begins.
type reasonedMask struct {
	answer decode.Mask
	reader *chat.Reader // nil: the reasoning has ended
	all    []uint64     // all tokens but those that end an answer
}

// afterReasoning returns a mask that begins after the reasoning that reader reads.
func (s *Server) afterReasoning(answer decode.Mask, reader *chat.Reader, eos []int32) decode.Mask {
	all := make([]uint64, (s.cfg.Manifest.Vocab+63)/64)
	for i := range all {
		all[i] = ^uint64(0)
	}
	for _, id := range eos {
		if int(id) < s.cfg.Manifest.Vocab {
			all[id/64] &^= 1 << (id % 64)
		}
	}
	return &reasonedMask{answer, reader, all}
}

// Mask returns the tokens that may come next.
func (m *reasonedMask) Mask() ([]uint64, error) {
	if m.reader != nil {
		return m.all, nil
	}
	return m.answer.Mask()
}

// Ready reports whether Mask would return without blocking.
func (m *reasonedMask) Ready(notify func()) bool { return m.reader != nil || m.answer.Ready(notify) }

// Accept adds the chosen token.
func (m *reasonedMask) Accept(token int32) error {
	if m.reader == nil {
		return m.answer.Accept(token)
	}
	if m.reader.Push(token); !m.reader.Reasoning() {
		m.reader = nil
	}
	return nil
}

// Done reports whether only the end may follow.
func (m *reasonedMask) Done() bool { return m.reader == nil && m.answer.Done() }
