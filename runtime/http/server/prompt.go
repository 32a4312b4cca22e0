//go:build unix

package server

import (
	"context"
	"errors"
	"net/http"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// bytesOfText is the memory per byte of text during tokenization: pieces, ids, and the
// rendered prompt.
const bytesOfText = 64

// maxTokenized bounds the bytes of text in a request to /tokenize.
const maxTokenized = 256 << 10

// maxText returns the maximum bytes of text that can fit into the context.
func (s *Server) maxText() int { return s.cfg.Context * max(1, s.longest()) }

// checkText returns an error for a text that cannot fit into the context, before any
// work on it.
func (s *Server) checkText(param string, bytes int) error {
	if s.longest() > 0 && bytes > s.maxText() {
		return invalid(param, "this model's maximum context length is %d tokens, too few for a text of %d bytes; shorten it", s.cfg.Context, bytes).withCode("context_length_exceeded")
	}
	return nil
}

// tokenizing runs f, which tokenizes text of a request, with reserved memory and within
// the client's CPU time. Texts of any length are tokenized as a whole, so that an error
// can say how many tokens they have.
func (s *Server) tokenizing(r *http.Request, param string, bytes int, f func(within tokenizer.Limit) error) error {
	n := int64(bytesOfText * bytes)
	if err := s.take(r, param, n); err != nil {
		return err
	}
	defer s.giveBack(r, n)
	err := s.work(r, func(tick func() error) error {
		return f(tokenizer.Limit{Tick: tick})
	})
	var e *apiError
	switch {
	case err == nil, errors.As(err, &e), errors.Is(err, context.Canceled), errors.Is(err, context.DeadlineExceeded), errors.Is(err, scheduler.ErrClosed):
		return err
	case errors.Is(err, tokenizer.ErrLong):
		return invalid(param, "this model's maximum context length is %d tokens; the text has more; shorten it", s.cfg.Context).withCode("context_length_exceeded")
	}
	return invalid(param, "%v", err)
}

// promptIDs returns the tokens of a prompt, with the BOS token if the model needs one.
func (s *Server) promptIDs(r *http.Request, param string, p promptInput) (ids []int32, err error) {
	m := s.cfg.Manifest
	if p.ids != nil {
		return p.ids, s.checkIDs(param, p.ids)
	}
	if s.cfg.Tokenizer == nil {
		return nil, invalid(param, "%s has no tokenizer; send token ids", s.cfg.Model)
	}
	err = s.tokenizing(r, param, len(p.text), func(within tokenizer.Limit) error {
		ids, err = s.cfg.Tokenizer.EncodeWithin(p.text, true, within)
		return err
	})
	if bos := int32(m.BOS); err == nil && m.AddBOS && bos >= 0 && (len(ids) == 0 || ids[0] != bos) {
		ids = append([]int32{bos}, ids...)
	}
	if n := len(ids); err == nil && n > s.cfg.Context {
		err = s.tooLong(param, n, s.cfg.Context)
	}
	return ids, err
}
