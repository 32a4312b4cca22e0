//go:build unix

package server

import (
	"encoding/json"
	"net/http"
)

// ollamaGenerateRequest is the body of /api/generate.
type ollamaGenerateRequest struct {
	ollamaCommon
	Prompt   string          `json:"prompt"`   // text of the user's message, or with raw the prompt; neither it nor suffix: load the model, without effect
	System   string          `json:"system"`   // text of a system message
	Raw      bool            `json:"raw"`      // true: continue the prompt without the chat template
	Suffix   string          `json:"suffix"`   // text after the answer, for models with tokens for infilling
	Images   json.RawMessage `json:"images"`   // refused: models read text only
	Template json.RawMessage `json:"template"` // refused: the model's template is used
	Context  json.RawMessage `json:"context"`  // refused: use /api/chat
}

// ollamaGenerate answers POST /api/generate. Without a chat template, and with raw or
// suffix, the model continues the prompt.
func (s *Server) ollamaGenerate(w http.ResponseWriter, r *http.Request) error {
	var req ollamaGenerateRequest
	if err := s.readJSON(r, &req); err != nil {
		return err
	}
	switch {
	case !isNeutral(req.Images, "[]"):
		return invalid("images", "images: this service reads text only")
	case !isNeutral(req.Template, `""`):
		return invalid("template", "template: the model's chat template is always used; set raw to write the prompt yourself")
	case !isNeutral(req.Context, "[]"):
		return invalid("context", "context is not supported by this service; use /api/chat with the earlier messages")
	}
	set := func(a *ollamaAnswer, text, reasoning string, _ []ollamaCall) {
		a.Response, a.Thinking = &text, reasoning
	}
	if req.Prompt == "" && req.Suffix == "" {
		return s.ollamaLoad(w, r, &req.ollamaCommon, set)
	}
	if req.Raw || req.Suffix != "" || s.cfg.Template == nil {
		return s.ollamaComplete(w, r, &req, set)
	}
	c := conversation{path: "system"}
	c.system(req.System)
	c.path = "prompt"
	c.say("user", req.Prompt)
	list, err := c.list()
	if err != nil {
		return err
	}
	return s.ollamaAnswer(w, r, &req.ollamaCommon, &chatRequest{Messages: list}, false, set)
}

// ollamaComplete continues a prompt.
func (s *Server) ollamaComplete(w http.ResponseWriter, r *http.Request, q *ollamaGenerateRequest, set ollamaSet) error {
	o := s.ollamaWriter(w, r, &q.ollamaCommon, set)
	prompt := q.Prompt
	if q.System != "" {
		prompt = q.System + "\n\n" + prompt
	}
	c := &completionRequest{Prompt: prompts{{text: prompt}}, Model: q.Model, sampling: q.Options.sampling(&s.cfg.Defaults), MaxTokens: q.limit(), Suffix: q.Suffix, Stream: q.streams()}
	if q.Logprobs {
		c.Logprobs = &q.Top
	}
	if c.MaxTokens == nil && s.cfg.Defaults.MaxTokens == 0 {
		all := maxTokens // the rest of the context, not the 16 tokens of OpenAI's API
		c.MaxTokens = &all
	}
	q.check(s, r)
	if err := q.constrain(&c.sampling); err != nil {
		return err
	}
	if err := s.checkCompletion(r, c); err != nil {
		return renamed(err, ollamaKeys)
	}
	run, err := s.completionRun(r, c)
	if err != nil {
		return renamed(err, ollamaKeys)
	}
	run.form = &ollamaCompletion{completionRun: run, o: o}
	return renamed(run.respond(w, r, o.out), ollamaKeys)
}

// An ollamaCompletion is Ollama's form of a completion.
type ollamaCompletion struct {
	*completionRun
	o      *ollamaWriter
	finish string
}

func (c *ollamaCompletion) read(g *generation, _ *choice) reader { return c.s.textReader(g.ids) }

func (c *ollamaCompletion) whole(pieces [][]piece) any {
	p := pieces[0][0]
	c.o.note(p.events)
	last := c.last(p.finish)
	last.Response = &p.delta.Content
	return last
}

func (c *ollamaCompletion) events(_ int, p piece, _ bool) []any {
	c.o.started()
	c.o.note(p.events)
	if c.finish = p.finish; p.delta.Content == "" {
		return nil
	}
	a := c.o.answer()
	a.Response = &p.delta.Content
	return []any{a}
}

func (c *ollamaCompletion) end(out *sender) error {
	last := c.last(c.finish)
	last.Response = new(string)
	if err := out.add(last); err != nil {
		return err
	}
	return out.flush()
}

// last returns the last line of the answer.
func (c *ollamaCompletion) last(finish string) *ollamaAnswer {
	return c.o.last(c.answers[0], len(c.prompts[0].ids), finish)
}
