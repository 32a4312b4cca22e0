package chat

import (
	"regexp"
	"strings"
)

// Answers of gpt-oss are messages with headers (OpenAI's Harmony format):
//
//	<|channel|>analysis<|message|>They ask.<|end|><|start|>assistant<|channel|>final<|message|>Fine.<|return|>
//
// The channel analysis is reasoning, commentary and final are the answer. A message to
// functions.NAME is a call.

// A messagePart is a state of an answer in messages.
type messagePart int

const (
	inHeader messagePart = iota
	inReasoning
	inContent
	inCallTo
	behindCallTo
)

const (
	messageStart = "<|start|>"
	messageBody  = "<|message|>"
	messageEnd   = "<|end|>"
)

var (
	recipient = regexp.MustCompile(`to=functions\.([A-Za-z0-9_.-]+)`)
	channel   = regexp.MustCompile(`<\|channel\|>\s*([a-z]+)`)
)

// channel parses a part of an answer in messages. It returns false if it needs more text.
func (p *answerParser) channel(d *Delta, last bool) bool {
	ended := func(string) { p.message = inHeader }
	switch p.message {
	case inHeader:
		return p.header(d, last)
	case inReasoning:
		return p.until(messageEnd, &d.Reasoning, last, ended, p.format.stops...)
	case inContent:
		return p.until(messageEnd, &d.Content, last, ended, p.format.stops...)
	case inCallTo:
		n, whole := p.stream.json.skip(p.pending)
		if n > 0 {
			d.addArguments(p.calls-1, p.pending[:n])
			p.pending = p.pending[n:]
		}
		if whole {
			p.message = behindCallTo
		}
		return whole
	}
	var ignored string
	return p.until(messageEnd, &ignored, last, ended, p.format.stops...)
}

// header reads the header of a message. Text without a header is content.
func (p *answerParser) header(d *Delta, last bool) bool {
	text, short := skipSpace(p.pending)
	if text == "" && short {
		return false
	}
	head, body, found := strings.Cut(text, messageBody)
	if !found {
		head = head[:len(head)-partialMark(head, messageBody)]
	}
	s := startsHeader(text, last)
	switch {
	case s == bodyRefused && len(text) >= cutMark && text[0] == '<' && startsHeader(text, false) == bodyWaiting: // cut off
		p.pending = ""
		return false
	case s == bodyRefused || !short || len(head) > 2*maxName:
		p.message = inContent
		return true
	case s == bodyWaiting || !found && !last:
		return false
	case !found:
		p.pending = ""
		return false
	}
	to := recipient.FindStringSubmatch(head)
	if to == nil || !p.opts.Tools || len(to[1]) > maxName {
		p.message, p.pending = inContent, body
		if c := channel.FindStringSubmatch(head); p.opts.Reasoning && c != nil && c[1] == "analysis" {
			p.message = inReasoning
		}
		return true
	}
	body, short = skipSpace(body)
	switch s := starts(body, "{", last); {
	case s == bodyWaiting && short:
		return false
	case s == bodyMoved && short:
		p.begin(d, to[1], "")
		p.message, p.pending, p.stream.json = inCallTo, body, nesting{}
	case body == "":
		p.begin(d, to[1], "")
		d.addArguments(p.calls-1, "{}")
		p.message, p.pending = behindCallTo, ""
	default:
		p.message, p.pending = inContent, body
	}
	return true
}

// startsHeader reports whether a text starts with a header. The prompt may end in parts of
// the first one.
func startsHeader(text string, last bool) bodyState {
	state := bodyRefused
	for _, mark := range []string{messageStart, "assistant", "<|channel|>", "to=functions.", messageBody} {
		switch starts(text, mark, last) {
		case bodyMoved:
			return bodyMoved
		case bodyWaiting:
			state = bodyWaiting
		}
	}
	return state
}
