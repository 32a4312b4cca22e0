//go:build unix

package server

import (
	"cmp"
	"net/http"
	"time"
)

// ollamaEmbedRequest is the body of /api/embed.
type ollamaEmbedRequest struct {
	Model      string  `json:"model"`      // name of the served model or of an adapter; may be left out
	Input      prompts `json:"input"`      // a text, or an array of texts
	Dimensions *int    `json:"dimensions"` // length of the vectors; default: the model's
	Truncate   *bool   `json:"truncate"`   // accepted without effect: a text that is longer than the context is refused
	Options    any     `json:"options"`    // accepted without effect
	KeepAlive  any     `json:"keep_alive"` // accepted without effect: the model stays loaded
}

// ollamaEmbed answers POST /api/embed.
func (s *Server) ollamaEmbed(w http.ResponseWriter, r *http.Request) error {
	begun := time.Now()
	var req ollamaEmbedRequest
	if err := s.readJSON(r, &req); err != nil {
		return renamed(err, inputKeys)
	}
	vectors, total, err := s.vectors(r, &embeddingRequest{Model: req.Model, Input: req.Input, Dimensions: req.Dimensions})
	if err != nil {
		return err
	}
	writeJSON(w, http.StatusOK, map[string]any{"model": cmp.Or(req.Model, tagged(s.modelName(r))), "embeddings": vectors, "total_duration": time.Since(begun), "load_duration": 0, "prompt_eval_count": total})
	return nil
}

// ollamaEmbeddingsRequest is the body of /api/embeddings, the older form of /api/embed.
type ollamaEmbeddingsRequest struct {
	Model     string `json:"model"`      // name of the served model or of an adapter; may be left out
	Prompt    string `json:"prompt"`     // the text; none: load the model, without effect
	Options   any    `json:"options"`    // accepted without effect
	KeepAlive any    `json:"keep_alive"` // accepted without effect: the model stays loaded
}

// ollamaEmbeddings answers POST /api/embeddings.
func (s *Server) ollamaEmbeddings(w http.ResponseWriter, r *http.Request) error {
	var req ollamaEmbeddingsRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	vector := []float32{}
	if req.Prompt == "" {
		if err := s.selectModel(r, req.Model); err != nil {
			return err
		}
	} else {
		vectors, _, err := s.vectors(r, &embeddingRequest{Model: req.Model, Input: prompts{{text: req.Prompt}}})
		if err != nil {
			return renamed(err, map[string]string{"input": "prompt"})
		}
		vector = vectors[0]
	}
	writeJSON(w, http.StatusOK, map[string]any{"embedding": vector})
	return nil
}
