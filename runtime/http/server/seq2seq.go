//go:build unix

package server

import (
	"net/http"
)

// A Translation is a request to an encoder-decoder: texts, or sources as token ids.
type Translation struct {
	Texts     []string
	IDs       [][]int32
	Src, Tgt  string
	Beams     int // 0: the value of generation_config.json; also below
	Best      int
	MaxTokens int
	ForcedBOS *int32
}

// A Translated is one hypothesis of a source.
type Translated struct {
	Tokens []int32 `json:"tokens"`
	Text   string  `json:"text"`
	Score  float32 `json:"score"`
}

// translateRequest is the body of /translate.
type translateRequest struct {
	Model     string    `json:"model"`       // name of the served model or of an adapter; may be left out
	Text      stops     `json:"text"`        // a text or an array of texts
	IDs       [][]int32 `json:"encoder_ids"` // source texts as token ids
	Src       string    `json:"src"`         // source language, where the model has several
	Tgt       string    `json:"tgt"`         // target language, where the model has several
	Beams     int       `json:"beams"`       // beam width; default: that of generation_config.json
	Best      int       `json:"best"`        // number of hypotheses to return for each text; default 1
	MaxTokens int       `json:"max_tokens"`  // maximum number of generated tokens
	ForcedBOS *int32    `json:"forced_bos"`  // id of the first generated token
	shared
}

// checkTranslate validates a request.
func (s *Server) checkTranslate(req *translateRequest) error {
	switch n := len(req.Text) + len(req.IDs); {
	case n == 0 || n > maxPrompts:
		return invalid("text", "text: expected between 1 and %d texts", maxPrompts)
	case req.Beams < 0 || req.Beams > s.cfg.Sequences:
		return invalid("beams", "beams: this service runs at most %d concurrent sequences", s.cfg.Sequences)
	case req.Best < 0 || req.Best > max(req.Beams, s.cfg.Sequences):
		return invalid("best", "best: expected a number between 0 and the number of beams")
	case req.MaxTokens < 0 || req.MaxTokens > maxTokens:
		return invalid("max_tokens", "max_tokens: expected a number between 1 and %d, or 0 for the model's own", maxTokens)
	case len(req.Src) > maxRole:
		return invalid("src", "src: expected at most %d bytes", maxRole)
	case len(req.Tgt) > maxRole:
		return invalid("tgt", "tgt: expected at most %d bytes", maxRole)
	}
	for _, ids := range req.IDs {
		if err := s.checkIDs("encoder_ids", ids); err != nil {
			return err
		}
	}
	if req.ForcedBOS != nil {
		return s.checkIDs("forced_bos", []int32{*req.ForcedBOS})
	}
	return nil
}

// translate answers /translate.
func (s *Server) translate(w http.ResponseWriter, r *http.Request) error {
	var req translateRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if s.cfg.Translate == nil {
		return invalid("", "%s is not an encoder-decoder; it does not translate", s.cfg.Model)
	}
	if err := s.checkTranslate(&req); err != nil {
		return err
	}
	if err := s.selectModel(r, req.Model); err != nil {
		return err
	}
	job, err := s.job(r, req.shared)
	if err != nil {
		return err
	}
	for _, text := range req.Text {
		if err := s.checkText("text", len(text)); err != nil {
			return err
		}
	}
	found, err := s.cfg.Translate(r.Context(), job, Translation{
		req.Text, req.IDs, req.Src, req.Tgt, req.Beams, req.Best, req.MaxTokens, req.ForcedBOS,
	})
	if err != nil {
		return callersFault(err)
	}
	var flat []Translated // in the order of the sources, as the subcommand translate prints them
	for _, list := range found {
		flat = append(flat, list...)
	}
	writeJSON(w, http.StatusOK, map[string]any{"outputs": flat, "model": s.modelName(r)})
	return nil
}

// A Mask lists the candidates for one mask token of a text.
type Mask struct {
	Position   int         `json:"position"`
	Candidates []Candidate `json:"candidates"`
}

// A Candidate is a token with its probability.
type Candidate struct {
	ID          int32   `json:"id"`
	Token       string  `json:"token"`
	Text        string  `json:"text"`
	Probability float64 `json:"probability"`
}

// fillRequest is the body of /fill.
type fillRequest struct {
	Model string `json:"model"` // name of the served model or of an adapter; may be left out
	Text  string `json:"text"`  // text with mask tokens
	TopK  int    `json:"top_k"` // number of candidates for each mask; default 5
	shared
}

// fill answers /fill.
func (s *Server) fill(w http.ResponseWriter, r *http.Request) error {
	req := fillRequest{TopK: 5}
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	if s.cfg.Fill == nil {
		return invalid("", "%s has no masked-LM head; it does not fill masks", s.cfg.Model)
	}
	if req.TopK < 1 || req.TopK > 1000 {
		return invalid("top_k", "top_k: expected a number between 1 and 1000")
	}
	if err := s.selectModel(r, req.Model); err != nil {
		return err
	}
	job, err := s.job(r, req.shared)
	if err != nil {
		return err
	}
	if err := s.checkText("text", len(req.Text)); err != nil {
		return err
	}
	masks, err := s.cfg.Fill(r.Context(), job, req.Text, req.TopK)
	if err != nil {
		return callersFault(err)
	}
	writeJSON(w, http.StatusOK, map[string]any{"masks": masks, "model": s.modelName(r)})
	return nil
}

// A RequestError is an error in the request that was found outside this package.
type RequestError struct{ Err error }

func (e RequestError) Error() string { return e.Err.Error() }
func (e RequestError) Unwrap() error { return e.Err }

// callersFault converts a RequestError to a response with status 400.
func callersFault(err error) error {
	if e, ok := err.(RequestError); ok {
		return invalid("", "%v", e.Err)
	}
	return err
}
