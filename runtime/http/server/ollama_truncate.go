//go:build unix

package server

import (
	"errors"
	"fmt"
	"net/http"
	"slices"
	"sort"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// answerRoom is the number of tokens that a shortened conversation leaves for its answer,
// or a quarter of the context if that is less.
const answerRoom = 256

// startShortened starts the generation of a conversation that does not fit into the
// context without its oldest messages, as Ollama does: turns from one user message to the
// next, but no system messages, and not the last turn. The response has a warning.
func (s *Server) startShortened(r *http.Request, c *chatRequest) (*chatRun, error) {
	all, turns := c.Messages, turnsOf(c.Messages)
	room := min(s.cfg.Context/4, answerRoom)
	if limit := c.limit(); limit != nil {
		room = min(room, *limit)
	}
	var failed error
	fits := func(turn int) bool {
		c.Messages = without(all, turns[turn])
		_, prompt, err := s.chatPrompt(r, c)
		if err != nil {
			failed = err
		}
		return err != nil || len(prompt.IDs) <= s.cfg.Context-room
	}
	last := len(turns) - 1 // it may be too long as well
	turn := min(1+sort.Search(last, func(i int) bool { return failed != nil || fits(1+i) }), last)
	if failed != nil {
		return nil, failed
	}
	c.Messages = without(all, turns[turn])
	run, err := s.startChat(r, c)
	if n := len(all) - len(c.Messages); err == nil && n > 0 {
		warn(r, fmt.Sprintf("the conversation exceeds the context of %d tokens: its oldest %d messages were dropped; \"truncate\": false refuses it instead", s.cfg.Context, n))
	}
	return run, err
}

// isTooLong reports whether an error is about a prompt that does not fit into the
// context.
func isTooLong(err error) bool {
	var e *apiError
	return errors.As(err, &e) && e.prompt > 0
}

// turnsOf returns where a conversation may begin: at its start, and at the user's later
// messages.
func turnsOf(messages []chat.Message) []int {
	turns := []int{0}
	for i, m := range messages {
		if i > 0 && m.Role == "user" && slices.ContainsFunc(messages[:i], func(m chat.Message) bool { return !isSystem(m) }) {
			turns = append(turns, i)
		}
	}
	return turns
}

// without returns the messages from a turn on, behind the system messages before it.
func without(messages []chat.Message, turn int) []chat.Message {
	var kept []chat.Message
	for _, m := range messages[:turn] {
		if isSystem(m) {
			kept = append(kept, m)
		}
	}
	return append(kept, messages[turn:]...)
}

func isSystem(m chat.Message) bool { return m.Role == "system" || m.Role == "developer" }
