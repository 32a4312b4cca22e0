//go:build unix

package server

import (
	"net/http"

	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// tokenizeRequest is the body of /tokenize.
type tokenizeRequest struct {
	Content    *string `json:"content"`     // text to tokenize
	Prompt     *string `json:"prompt"`      // another name of content
	AddSpecial *bool   `json:"add_special"` // false: add no special tokens
	WithPieces bool    `json:"with_pieces"` // return the text of each token too
}

// bytesOfToken is the memory of a token in the response of /tokenize.
const bytesOfToken = 512

// tokenize answers /tokenize.
func (s *Server) tokenize(w http.ResponseWriter, r *http.Request) error {
	var req tokenizeRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	text := req.Content
	if text == nil {
		text = req.Prompt
	}
	if text == nil {
		return invalid("content", "content: expected a text")
	}
	t := s.cfg.Tokenizer
	if t == nil {
		return invalid("", "%s has no tokenizer", s.cfg.Model)
	}
	if len(*text) > maxTokenized {
		return invalid("content", "content: expected at most %d bytes", maxTokenized)
	}
	if err := s.take(r, "content", int64(bytesOfToken*len(*text))); err != nil {
		return err
	}
	var ids []int32
	if err := s.work(r, func(tick func() error) (err error) {
		ids, err = t.EncodeWithin(*text, or(req.AddSpecial, true), tokenizer.Limit{Tick: tick})
		return err
	}); err != nil {
		return err
	}
	names := make([]string, len(ids))
	for i, id := range ids {
		names[i] = t.Token(id)
	}
	out := map[string]any{"ids": ids, "tokens": ids, "pieces": names, "count": len(ids), "max_model_len": s.cfg.Context}
	if req.WithPieces { // llama.cpp's form
		list := make([]map[string]any, len(ids))
		for i, id := range ids {
			text, _ := s.spell(id)
			list[i] = map[string]any{"id": id, "piece": text}
		}
		out["tokens"] = list
	}
	writeJSON(w, http.StatusOK, out)
	return nil
}

// detokenizeRequest is the body of /detokenize.
type detokenizeRequest struct {
	Tokens      []int32 `json:"tokens"`       // token ids
	IDs         []int32 `json:"ids"`          // another name of tokens
	SkipSpecial bool    `json:"skip_special"` // leave special tokens out of the text
}

// detokenize answers /detokenize.
func (s *Server) detokenize(w http.ResponseWriter, r *http.Request) error {
	var req detokenizeRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if s.cfg.Tokenizer == nil {
		return invalid("", "%s has no tokenizer", s.cfg.Model)
	}
	ids := append(req.Tokens, req.IDs...)
	if err := s.checkIDs("tokens", ids); err != nil {
		return err
	}
	text := s.cfg.Tokenizer.Decode(ids, req.SkipSpecial)
	writeJSON(w, http.StatusOK, map[string]any{"text": text, "content": text, "prompt": text})
	return nil
}
