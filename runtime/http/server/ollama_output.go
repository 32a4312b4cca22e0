//go:build unix

package server

import (
	"cmp"
	"net/http"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// An ollamaAnswer is an answer of Ollama's API, or a line of a stream.
type ollamaAnswer struct {
	Model    string               `json:"model"`
	Created  time.Time            `json:"created_at"`
	Message  *ollamaAnswerMessage `json:"message,omitempty"`  // of a chat
	Response *string              `json:"response,omitempty"` // of generate
	Thinking string               `json:"thinking,omitempty"` // of generate
	Logprobs []topped             `json:"logprobs,omitempty"`
	Done     bool                 `json:"done"`
	Reason   string               `json:"done_reason,omitempty"`
	*ollamaCounts
}

type ollamaAnswerMessage struct {
	Role     string       `json:"role"`
	Content  string       `json:"content"`
	Thinking string       `json:"thinking,omitempty"`
	Calls    []ollamaCall `json:"tool_calls,omitempty"`
}

// ollamaCounts are the counts of tokens and nanoseconds at the end of an answer.
type ollamaCounts struct {
	Total        time.Duration `json:"total_duration"`
	Load         time.Duration `json:"load_duration"`
	Prompt       int           `json:"prompt_eval_count"`
	PromptTime   time.Duration `json:"prompt_eval_duration"`
	Generated    int           `json:"eval_count"`
	GenerateTime time.Duration `json:"eval_duration"`
}

// An ollamaSet puts text, reasoning and calls into an answer of its kind of request.
type ollamaSet func(a *ollamaAnswer, text, reasoning string, calls []ollamaCall)

// An ollamaWriter writes an answer of Ollama's API.
type ollamaWriter struct {
	s        *Server
	req      *ollamaCommon
	set      ollamaSet
	out      *sender
	request  *http.Request
	begun    time.Time
	first    time.Time // the first token
	logprobs []topped
}

// ollamaAnswer answers a conversation.
func (s *Server) ollamaAnswer(w http.ResponseWriter, r *http.Request, q *ollamaCommon, c *chatRequest, truncate bool, set ollamaSet) error {
	o := s.ollamaWriter(w, r, q, set)
	if err := q.fill(s, r, c); err != nil {
		return renamed(err, ollamaKeys)
	}
	run, err := s.startChat(r, c)
	if isTooLong(err) && truncate {
		run, err = s.startShortened(r, c)
	}
	if err != nil {
		return renamed(err, ollamaKeys)
	}
	if !q.streams() {
		list, finish, err := run.blocks(r.Context(), nil, o.flush)
		if err != nil {
			return err
		}
		var text, reasoning string
		var calls []ollamaCall
		for _, b := range list {
			switch b.kind {
			case reasoningBlock:
				reasoning += b.text.String()
			case textBlock:
				text += b.text.String()
				o.note(b.events)
			case callBlock:
				calls = append(calls, ollamaCallOf(b))
			}
		}
		last := o.last(run.answer, run.prompt, finish)
		set(last, text, reasoning, calls)
		writeJSON(w, http.StatusOK, last)
		return nil
	}
	o.out.admitted()
	_, finish, err := run.blocks(r.Context(), o, o.flush)
	if err != nil {
		return err
	}
	last := o.last(run.answer, run.prompt, finish)
	set(last, "", "", nil)
	if err := o.out.add(last); err != nil {
		return err
	}
	return o.flush()
}

// ollamaPath reports whether a request is one of Ollama's API.
func ollamaPath(r *http.Request) bool { return strings.HasPrefix(r.URL.Path, "/api/") }

func (s *Server) ollamaWriter(w http.ResponseWriter, r *http.Request, q *ollamaCommon, set ollamaSet) *ollamaWriter {
	out := s.newSender(w, r, q.streams())
	if q.Model != "" {
		out.setPing(ollamaPing(r, q.Model))
	}
	return &ollamaWriter{s: s, req: q, set: set, out: out, request: r, begun: time.Now()}
}

// ollamaPing returns the function that formats pings as lines without text. Ollama's
// clients read comments and empty lines as errors.
func ollamaPing(r *http.Request, model string) func() (event string, body any) {
	return func() (string, any) {
		a := &ollamaAnswer{Model: model, Created: time.Now().UTC()}
		if strings.HasSuffix(r.URL.Path, "/chat") {
			a.Message = &ollamaAnswerMessage{Role: "assistant"}
		} else {
			a.Response = new(string)
		}
		return "", a
	}
}

// note keeps the log-probabilities of tokens for the next line.
func (o *ollamaWriter) note(events []scheduler.Event) {
	if o.req.Logprobs {
		o.logprobs = append(o.logprobs, o.s.chatLogprobs(events).Content...)
	}
}

func (o *ollamaWriter) answer() *ollamaAnswer {
	a := &ollamaAnswer{Model: cmp.Or(o.req.Model, tagged(o.s.modelName(o.request))), Created: time.Now().UTC(), Logprobs: o.logprobs}
	o.logprobs = nil
	return a
}

func (o *ollamaWriter) send(text, reasoning string, calls []ollamaCall) error {
	a := o.answer()
	o.set(a, text, reasoning, calls)
	return o.out.add(a)
}

func (o *ollamaWriter) begin(*block) error { return nil }

func (o *ollamaWriter) add(b *block, text string, events []scheduler.Event) error {
	switch b.kind {
	case reasoningBlock:
		return o.send("", text, nil)
	case textBlock:
		o.note(events)
		return o.send(text, "", nil)
	}
	return nil
}

// end sends a complete call; Ollama's API sends calls whole.
func (o *ollamaWriter) end(b *block) error {
	if b.kind == callBlock {
		return o.send("", "", []ollamaCall{ollamaCallOf(b)})
	}
	return nil
}

// flush sends the queued lines.
func (o *ollamaWriter) flush() error {
	o.started()
	return o.out.flush()
}

// started notes the time to first token.
func (o *ollamaWriter) started() {
	if o.first.IsZero() {
		o.first = time.Now()
	}
}

// last returns the last line of an answer, with the counts.
func (o *ollamaWriter) last(a *answer, prompt int, finish string) *ollamaAnswer {
	o.started()
	last, now := o.answer(), time.Now()
	last.Done, last.Reason = true, scheduler.FinishStop
	if finish == scheduler.FinishLength {
		last.Reason = finish
	}
	last.ollamaCounts = &ollamaCounts{
		Total: now.Sub(o.begun), Prompt: prompt, PromptTime: o.first.Sub(o.begun), Generated: a.generated(), GenerateTime: now.Sub(o.first),
	}
	return last
}

// ollamaCallOf returns a complete call.
func ollamaCallOf(b *block) (c ollamaCall) {
	c.ID, c.Function.Index, c.Function.Name = b.id, b.call, b.name
	c.Function.Arguments = b.arguments()
	return c
}

// ollamaError is an error in Ollama's format.
func ollamaError(e *apiError) (event string, body any) {
	return "", map[string]string{"error": e.Message}
}
