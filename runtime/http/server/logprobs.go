//go:build unix

package server

import (
	"strings"
	"unicode/utf8"

	"github.com/iflowc/iflowc/runtime/engine/scheduler"
)

// A rankedToken is an entry of top_logprobs in chat completions.
type rankedToken struct {
	Token   string        `json:"token"`
	Logprob float64       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []rankedToken `json:"top_logprobs,omitempty"`
}

// chatLogprobs is the logprobs object of a chat choice.
type chatLogprobs struct {
	Content []topped `json:"content"`
	Refusal *string  `json:"refusal"`
}

// A topped token is an entry of content; its top_logprobs is present even if empty.
type topped struct {
	Token   string        `json:"token"`
	Logprob float64       `json:"logprob"`
	Bytes   []int         `json:"bytes"`
	Top     []rankedToken `json:"top_logprobs"`
}

// minLogprob replaces minus infinity, which JSON cannot represent.
const minLogprob = -9999.0

func (s *Server) chatLogprobs(events []scheduler.Event) *chatLogprobs {
	out := &chatLogprobs{Content: []topped{}}
	for _, e := range events {
		text, bytes := s.spell(e.Token)
		t := topped{Token: text, Logprob: max(e.Logprob, minLogprob), Bytes: bytes, Top: []rankedToken{}}
		for _, r := range e.Top {
			text, bytes := s.spell(r.ID)
			t.Top = append(t.Top, rankedToken{Token: text, Logprob: max(r.Logprob, minLogprob), Bytes: bytes})
		}
		out.Content = append(out.Content, t)
	}
	return out
}

// spell returns a token's text and its bytes, which may be part of a UTF-8 character.
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

// textLogprobs is the logprobs object of a completion choice.
type textLogprobs struct {
	Tokens        []string              `json:"tokens"`
	TokenLogprobs []*float64            `json:"token_logprobs"`
	TopLogprobs   []*map[string]float64 `json:"top_logprobs"`
	TextOffset    []int                 `json:"text_offset"`
}

// textLogprobs describes tokens; offset is the position of the first one in the text,
// in characters.
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
		logprob := max(e.Logprob, minLogprob)
		out.TokenLogprobs = append(out.TokenLogprobs, &logprob)
		top := map[string]float64{}
		for _, r := range e.Top {
			text, _ := s.spell(r.ID)
			if _, ok := top[text]; !ok { // the most probable comes first
				top[text] = max(r.Logprob, minLogprob)
			}
		}
		out.TopLogprobs = append(out.TopLogprobs, &top)
	}
	return out
}
