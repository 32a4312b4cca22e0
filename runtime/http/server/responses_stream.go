//go:build unix

package server

import (
	"net/http"
	"slices"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// A responseEvent is an event of a response's stream. Which fields it has depends on its
// type.
type responseEvent struct {
	Type      string          `json:"type"`
	Sequence  int             `json:"sequence_number"`
	Response  *responseObject `json:"response,omitempty"`
	Index     *int            `json:"output_index,omitempty"`
	ItemID    string          `json:"item_id,omitempty"`
	Item      *responseItem   `json:"item,omitempty"`
	Content   *int            `json:"content_index,omitempty"`
	Summary   *int            `json:"summary_index,omitempty"`
	Part      *responsePart   `json:"part,omitempty"`
	Delta     *string         `json:"delta,omitempty"`
	Text      *string         `json:"text,omitempty"`
	Name      string          `json:"name,omitempty"`
	Arguments *string         `json:"arguments,omitempty"`
	Input     *string         `json:"input,omitempty"`
	Logprobs  *[]topped       `json:"logprobs,omitempty"`
}

// A responseStream sends a response as server-sent events.
type responseStream struct {
	*responseRun
	sender *sender
	sent   int
}

// stream sends the response as server-sent events.
func (c *responseRun) stream(r *http.Request, out *sender) error {
	s := &responseStream{responseRun: c, sender: out}
	out.setFailed(s.failed)
	for _, kind := range []string{"response.created", "response.in_progress"} {
		if err := s.send(responseEvent{Type: kind, Response: c.out}); err != nil {
			return err
		}
	}
	out.admitted()
	list, finish, err := c.blocks(r.Context(), s, out.flush)
	if err != nil {
		return err
	}
	if len(list) == 0 { // a response has at least one item
		empty := &block{kind: textBlock}
		if err := s.begin(empty); err != nil {
			return err
		}
		if err := s.end(empty); err != nil {
			return err
		}
	}
	c.end(r, finish)
	if err := s.send(responseEvent{Type: "response." + c.out.Status, Response: c.out}); err != nil {
		return err
	}
	return out.flush()
}

// send queues an event.
func (s *responseStream) send(e responseEvent) error {
	e.Sequence = s.sent
	s.sent++
	return s.sender.event(e.Type, e)
}

// begin sends the events for a new item.
func (s *responseStream) begin(b *block) error {
	item := s.item(b, "in_progress")
	if err := s.send(responseEvent{Type: "response.output_item.added", Index: &b.index, Item: item}); err != nil || b.kind == callBlock {
		return err
	}
	part := s.parts(b)[0]
	return s.send(s.place(b, responseEvent{Type: s.partEvent(b, "added"), Part: &part}))
}

// add sends more text of an item. The input of a custom tool is known at its end.
func (s *responseStream) add(b *block, text string, events []scheduler.Event) error {
	if b.kind == callBlock && s.tools.find(b.name).custom {
		return nil
	}
	e := s.place(b, responseEvent{Type: s.textEvent(b, "delta"), Delta: &text})
	if b.kind == textBlock {
		e.Logprobs = s.logprobs(events)
	}
	return s.send(e)
}

// end sends the events for a complete item.
func (s *responseStream) end(b *block) error {
	text := b.text.String()
	done := s.place(b, responseEvent{Type: s.textEvent(b, "done")})
	switch {
	case b.kind != callBlock:
		done.Text = &text
		if b.kind == textBlock {
			done.Logprobs = s.logprobs(b.events)
		}
	case s.tools.find(b.name).custom:
		input := customText(text)
		if err := s.send(s.place(b, responseEvent{Type: s.textEvent(b, "delta"), Delta: &input})); err != nil {
			return err
		}
		done.Input = &input
	default:
		done.Name, done.Arguments = s.tools.find(b.name).name, &text
	}
	if err := s.send(done); err != nil {
		return err
	}
	if b.kind != callBlock {
		part := s.parts(b)[0]
		if err := s.send(s.place(b, responseEvent{Type: s.partEvent(b, "done"), Part: &part})); err != nil {
			return err
		}
	}
	status := "completed"
	if b.cut {
		status = "incomplete"
	}
	item := s.item(b, status)
	s.out.Output = append(s.out.Output, item)
	return s.send(responseEvent{Type: "response.output_item.done", Index: &b.index, Item: item})
}

// place sets the keys of an event that say which part of the output it belongs to.
func (s *responseStream) place(b *block, e responseEvent) responseEvent {
	zero := 0
	e.Index, e.ItemID = &b.index, b.item
	switch {
	case b.kind == reasoningBlock && s.req.summary() != "":
		e.Summary = &zero
	case b.kind != callBlock:
		e.Content = &zero
	}
	return e
}

// partEvent returns the type of an event for a part of an item.
func (s *responseStream) partEvent(b *block, what string) string {
	if b.kind == reasoningBlock && s.req.summary() != "" {
		return "response.reasoning_summary_part." + what
	}
	return "response.content_part." + what
}

// textEvent returns the type of an event for the text of an item.
func (s *responseStream) textEvent(b *block, what string) string {
	switch {
	case b.kind == textBlock:
		return "response.output_text." + what
	case b.kind == reasoningBlock && s.req.summary() != "":
		return "response.reasoning_summary_text." + what
	case b.kind == reasoningBlock:
		return "response.reasoning_text." + what
	case s.tools.find(b.name).custom:
		return "response.custom_tool_call_input." + what
	}
	return "response.function_call_arguments." + what
}

// logprobs returns the log-probabilities of tokens, if the request asks for them.
func (s *responseStream) logprobs(events []scheduler.Event) *[]topped {
	list := []topped{}
	if slices.Contains(s.req.Include, includeLogprobs) {
		list = s.s.chatLogprobs(events).Content
	}
	return &list
}

// failed is an error as the last event of a response.
func (s *responseStream) failed(e *apiError) (event string, body any) {
	s.out.Status, s.out.Error = "failed", &responseError{or(e.Code, e.Type), e.Message}
	last := responseEvent{Type: "response.failed", Response: s.out, Sequence: s.sent}
	return last.Type, last
}

// responseFailure is an error as an event in front of a response.
func responseFailure(e *apiError) (event string, body any) {
	return "error", struct {
		Type     string `json:"type"`
		Sequence int    `json:"sequence_number"`
		responseError
		Param *string `json:"param"`
	}{"error", 0, responseError{or(e.Code, e.Type), e.Message}, e.Param}
}
