//go:build unix

package server

import "net/http"

// applyTemplate answers llama.cpp's /apply-template: it returns the prompt that
// /v1/chat/completions would give to the model.
func (s *Server) applyTemplate(w http.ResponseWriter, r *http.Request) error {
	var req chatRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	_, prompt, err := s.chatPrompt(r, &req)
	if err != nil {
		return err
	}
	if n := len(prompt.IDs); n > s.cfg.Context {
		return s.tooLong("messages", n, s.cfg.Context)
	}
	if err := s.takeText(r, "messages", len(prompt.Text)); err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]string{"prompt": prompt.Text})
	return nil
}

// takeText reserves memory for n bytes of a request's text in the response: a buffer
// that grows by doubling, in which a character may have twice its bytes.
func (s *Server) takeText(r *http.Request, param string, n int) error {
	return s.take(r, param, int64(4*n))
}
