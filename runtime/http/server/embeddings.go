//go:build unix

package server

import (
	"context"
	"encoding/base64"
	"encoding/binary"
	"fmt"
	"math"
	"net/http"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
	"github.com/iflowc/iflowc/runtime/text/tokenizer"
)

// An Embedder computes embeddings.
type Embedder interface {
	// Tokens returns the tokens of a text behind the prompt of that name, or ids if they
	// are not nil.
	Tokens(prompt, text string, ids []int32) ([]int32, error)
	// Embed returns the embedding of tokens.
	Embed(ctx context.Context, j scheduler.Job, tokens []int32) ([]float32, error)
}

// maxInputs bounds the texts of a request; it is OpenAI's limit.
const maxInputs = 2048

// embeddingRequest is the body of /v1/embeddings.
type embeddingRequest struct {
	shared
	Model      string  `json:"model"`           // name of the served model or of an adapter; may be left out
	Input      prompts `json:"input"`           // a text, an array of texts, token ids, or an array of arrays of token ids
	Encoding   string  `json:"encoding_format"` // "float" (default) or "base64"
	Prompt     string  `json:"prompt_name"`     // use of the texts, such as query or document; its prompt of the model's files is put in front of them
	Dimensions *int    `json:"dimensions"`      // length of the vectors; default: the model's
}

// inputKeys maps the key of prompts to that of texts.
var inputKeys = map[string]string{"prompt": "input"}

type embeddingObject struct {
	Object    string `json:"object"`
	Index     int    `json:"index"`
	Embedding any    `json:"embedding"` // numbers, or base64 of little-endian float32
}

// bytesOfNumber is the memory of a vector element, JSON included.
const bytesOfNumber = 24

// embeddings answers /v1/embeddings.
func (s *Server) embeddings(w http.ResponseWriter, r *http.Request) error {
	var req embeddingRequest
	if err := s.readJSON(r, &req); err != nil {
		return renamed(err, inputKeys)
	}
	vectors, total, err := s.vectors(r, &req)
	if err != nil {
		return err
	}
	data := make([]embeddingObject, len(vectors))
	for i, v := range vectors {
		data[i] = embeddingObject{"embedding", i, v}
		if req.Encoding == "base64" {
			data[i].Embedding = base64.StdEncoding.EncodeToString(littleEndian(v))
		}
	}
	writeJSON(w, http.StatusOK, map[string]any{
		"object": "list", "data": data, "model": s.modelName(r), "usage": map[string]int{"prompt_tokens": total, "total_tokens": total},
	})
	return nil
}

// vectors returns the vectors of a request's texts, and the number of tokens.
func (s *Server) vectors(r *http.Request, req *embeddingRequest) (vectors [][]float32, total int, err error) {
	if err := s.selectModel(r, req.Model); err != nil {
		return nil, 0, err
	}
	switch {
	case s.cfg.Embedder == nil:
		return nil, 0, invalid("model", "%s does not support embeddings", s.cfg.Model)
	case len(req.Input) == 0 || len(req.Input) > maxInputs:
		return nil, 0, invalid("input", "input: expected between 1 and %d texts", maxInputs)
	case req.Dimensions != nil && *req.Dimensions < 1:
		return nil, 0, invalid("dimensions", "dimensions: expected 1 or more")
	case req.Encoding != "" && req.Encoding != "float" && req.Encoding != "base64":
		return nil, 0, invalid("encoding_format", "encoding_format: expected float or base64")
	}
	tokens, total, err := s.embeddingTokens(r, req.Prompt, req.Input)
	if err != nil {
		return nil, 0, err
	}
	job, err := s.job(r, req.shared)
	if err != nil {
		return nil, 0, err
	}
	vectors, err = s.embedAll(r.Context(), job, tokens)
	if err != nil {
		return nil, 0, err
	}
	if err := s.take(r, "input", int64(len(vectors)*len(vectors[0])*bytesOfNumber)); err != nil {
		return nil, 0, err
	}
	for i, v := range vectors {
		if req.Dimensions != nil {
			if vectors[i], err = shorten(v, *req.Dimensions); err != nil {
				return nil, 0, err
			}
		}
	}
	return vectors, total, nil
}

// embeddingTokens returns the tokens of every input and their total number.
func (s *Server) embeddingTokens(r *http.Request, prompt string, input prompts) (all [][]int32, total int, err error) {
	for i, p := range input {
		var ids []int32
		if err := s.checkText("input", len(p.text)); err != nil {
			return nil, 0, err
		}
		if err := s.tokenizing(r, "input", len(p.text), func(tokenizer.Limit) (err error) {
			if ids, err = s.cfg.Embedder.Tokens(prompt, p.text, p.ids); err != nil {
				return fmt.Errorf("input %d: %w", i, err)
			}
			return nil
		}); err != nil {
			return nil, 0, err
		}
		if len(ids) == 0 {
			return nil, 0, invalid("input", "input %d is empty", i)
		}
		if len(ids) > s.cfg.Context {
			return nil, 0, invalid("input", "input %d has %d tokens; this model's maximum context length is %d", i, len(ids), s.cfg.Context).withCode("context_length_exceeded")
		}
		all, total = append(all, ids), total+len(ids)
	}
	return all, total, nil
}

// embedAll computes the vectors of texts.
func (s *Server) embedAll(ctx context.Context, job scheduler.Job, tokens [][]int32) ([][]float32, error) {
	out := make([][]float32, len(tokens))
	err := s.each(ctx, len(tokens), func(ctx context.Context, i int) (err error) {
		out[i], err = s.cfg.Embedder.Embed(ctx, job, tokens[i])
		return err
	})
	return out, err
}

// each calls f with 0 to n−1. As many calls run concurrently as there are sequences, so
// that one request does not fill the queue. An error cancels the others.
func (s *Server) each(ctx context.Context, n int, f func(ctx context.Context, i int) error) error {
	failed := make([]error, n)
	slots := make(chan struct{}, max(1, s.cfg.Sequences))
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	for i := range n {
		slots <- struct{}{}
		go func() {
			defer func() { <-slots }()
			if failed[i] = f(ctx, i); failed[i] != nil {
				cancel()
			}
		}()
	}
	for range cap(slots) {
		slots <- struct{}{}
	}
	return firstError(failed)
}

// firstError returns the first error that is not context.Canceled, which follows from
// the other errors.
func firstError(list []error) (first error) {
	for _, err := range list {
		if err != nil && (first == nil || first == context.Canceled) {
			first = err
		}
	}
	return first
}

// shorten returns the first n dimensions of a vector, scaled to length 1 (Matryoshka
// embeddings; Kusupati et al. 2022).
func shorten(v []float32, n int) ([]float32, error) {
	if n < 1 || n > len(v) {
		return nil, invalid("dimensions", "dimensions: expected a number between 1 and %d", len(v))
	}
	if n == len(v) {
		return v, nil
	}
	square := 0.0
	for _, x := range v[:n] {
		square += float64(x) * float64(x)
	}
	scale := 1 / max(math.Sqrt(square), 1e-12)
	out := make([]float32, n)
	for i, x := range v[:n] {
		out[i] = float32(float64(x) * scale)
	}
	return out, nil
}

func littleEndian(v []float32) []byte {
	out := make([]byte, 0, 4*len(v))
	for _, x := range v {
		out = binary.LittleEndian.AppendUint32(out, math.Float32bits(x))
	}
	return out
}
