//go:build unix

package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// bytesOfText is what a byte of a text takes while it is tokenized: pieces, ids,
// and what rendering left.
const bytesOfText = 64

// mostTokenized is how many bytes of text /tokenize takes.
const mostTokenized = 256 << 10

// mostText is how many bytes a text may have that the context is to hold: more
// cannot fit, whatever its tokens are.
func (s *Server) mostText() int { return s.cfg.Context * max(1, s.longest()) }

// checkText refuses a text that the context cannot hold, before anything is done
// with it.
func (s *Server) checkText(param string, bytes int) error {
	if s.longest() > 0 && bytes > s.mostText() {
		return invalid(param, "this model's maximum context length is %d tokens, which is less than the %d bytes of the text; shorten it", s.cfg.Context, bytes).withCode("context_length_exceeded")
	}
	return nil
}

// tokenizing does what turns text of a request into tokens, f, in slices of
// processor time and with memory for it.
func (s *Server) tokenizing(r *http.Request, param string, bytes int, f func(within tokenizer.Limit) error) error {
	if err := s.checkText(param, bytes); err != nil {
		return err
	}
	n := int64(bytesOfText * bytes)
	if err := s.take(r, param, n); err != nil {
		return err
	}
	defer s.giveBack(r, n)
	err := s.work(r, func(tick func() error) error {
		return f(tokenizer.Limit{Bytes: s.mostText(), Tokens: s.cfg.Context, Tick: tick})
	})
	var e *apiError
	switch {
	case err == nil, errors.As(err, &e), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded):
		return err
	case errors.Is(err, tokenizer.ErrLong):
		return invalid(param, "this model's maximum context length is %d tokens, the prompt has more; shorten it", s.cfg.Context).withCode("context_length_exceeded")
	}
	return invalid(param, "%v", err)
}

// promptIDs gives the tokens of a prompt, as the model wants them.
func (s *Server) promptIDs(r *http.Request, param string, p promptInput) (ids []int32, err error) {
	m := s.cfg.Manifest
	if p.ids != nil {
		return p.ids, s.checkIDs(param, p.ids)
	}
	if s.cfg.Tokenizer == nil {
		return nil, invalid(param, "%s has no tokenizer; give token ids", s.cfg.Model)
	}
	err = s.tokenizing(r, param, len(p.text), func(within tokenizer.Limit) error {
		ids, err = s.cfg.Tokenizer.EncodeWithin(p.text, true, within)
		return err
	})
	if bos := int32(m.BOS); err == nil && m.AddBOS && bos >= 0 && (len(ids) == 0 || ids[0] != bos) {
		ids = append([]int32{bos}, ids...)
	}
	return ids, err
}
