//go:build unix

package server

import (
	"strings"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// A rankedToken is a token with its log-probability, in chat's shape.
type rankedToken struct {
	Token   string        `json:"token"`
	Logprob float64       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []rankedToken `json:"top_logprobs,omitempty"`
}

// chatLogprobs are the logprobs of a chat's choice.
type chatLogprobs struct {
	Content []topped `json:"content"`
	Refusal *string  `json:"refusal"`
}

// A topped token always has its list, if an empty one.
type topped struct {
	Token   string        `json:"token"`
	Logprob float64       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []rankedToken `json:"top_logprobs"`
}

// leastLogprob stands for minus infinity, which JSON cannot say.
const leastLogprob = -9999.0

func (s *Server) chatLogprobs(events []scheduler.Event) *chatLogprobs {
	out := &chatLogprobs{Content: []topped{}}
	for _, e := range events {
		text, bytes := s.spell(e.Token)
		t := topped{Token: text, Logprob: max(e.Logprob, leastLogprob), Bytes: bytes, Top: []rankedToken{}}
		for _, r := range e.Top {
			text, bytes := s.spell(r.ID)
			t.Top = append(t.Top, rankedToken{Token: text, Logprob: max(r.Logprob, leastLogprob), Bytes: bytes})
		}
		out.Content = append(out.Content, t)
	}
	return out
}

// spell gives a token's text and its bytes, which may be part of a character.
func (s *Server) spell(id int32) (string, []int) {
	t := s.cfg.Tokenizer
	if t == nil {
		return "", nil
	}
	raw := t.Bytes(id)
	if raw == nil { // a special token
		raw = []byte(t.Token(id))
	}
	bytes := make([]int, len(raw))
	for i, b := range raw {
		bytes[i] = int(b)
	}
	return strings.ToValidUTF8(string(raw), "\ufffd"), bytes
}

// textLogprobs are the logprobs of a completion's choice.
type textLogprobs struct {
	Tokens        []string              `json:"tokens"`
	TokenLogprobs []*float64            `json:"token_logprobs"`
	TopLogprobs   []*map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                 `json:"text_offset"`
}

// textLogprobs describes tokens of a text that begins at an offset, in
// characters, of the whole.
func (s *Server) textLogprobs(events []scheduler.Event, offset int) *textLogprobs {
	out := &textLogprobs{Tokens: []string{}, TokenLogprobs: []*float64{}, TopLogprobs: []*map[string]float64{}, TextOffset: []int{}}
	for _, e := range events {
		text, _ := s.spell(e.Token)
		out.Tokens = append(out.Tokens, text)
		out.TextOffset = append(out.TextOffset, offset)
		offset += utf8.RuneCountInString(text)
		if e.First {
			out.TokenLogprobs = append(out.TokenLogprobs, nil)
			out.TopLogprobs = append(out.TopLogprobs, nil)
			continue
		}
		logprob := max(e.Logprob, leastLogprob)
		out.TokenLogprobs = append(out.TokenLogprobs, &logprob)
		top := map[string]float64{}
		for _, r := range e.Top {
			text, _ := s.spell(r.ID)
			if _, ok := top[text]; !ok { // most probable first
				top[text] = max(r.Logprob, leastLogprob)
			}
		}
		out.TopLogprobs = append(out.TopLogprobs, &top)
	}
	return out
}
