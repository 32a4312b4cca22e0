package chat

import (
	"slices"
	"strings"
)

// A callBody reads the calls between the markers of an answer, if they are not JSON
// objects.
type callBody interface {
	// step reads a part of p.pending. With last, no more text follows, and the result is
	// not bodyWaiting.
	step(p *answerParser, d *Delta, last bool) bodyState
}

// A bodyState is the result of a step.
type bodyState int

const (
	bodyWaiting bodyState = iota // more text is needed
	bodyMoved                    // a part was read
	bodyEnded                    // the calls have ended
	bodyRefused                  // the text is not a call; nothing was read
)

// Limits of what a model may write as a name, and as an id.
const (
	maxName = 256
	maxID   = 64
)

const spaces = " \t\r\n"

// skipSpace skips white space. Models write little of it within a call: after maxName
// bytes of it, ok is false.
func skipSpace(text string) (rest string, ok bool) {
	rest = strings.TrimLeft(text[:min(len(text), maxName+1)], spaces)
	skipped := min(len(text), maxName+1) - len(rest)
	return text[skipped:], skipped <= maxName
}

// body returns the reader of the format's calls.
func (f *callFormat) body() callBody {
	switch {
	case f.argument[0] != "":
		return &taggedCalls{}
	case f.python:
		return &pythonCalls{}
	}
	return &namedCalls{}
}

// read parses calls with p.body.
func (p *answerParser) read(d *Delta, last bool) bool {
	state := p.body.step(p, d, false)
	if last && state == bodyWaiting {
		state = p.body.step(p, d, true)
		if state == bodyEnded || state == bodyRefused && p.format.begins(p.pending) { // cut off
			p.inCall, p.body, p.pending = false, nil, ""
			return false
		}
	}
	switch state {
	case bodyWaiting:
		return false
	case bodyEnded:
		p.inCall, p.body, p.trim = false, nil, true
	case bodyRefused:
		shown := p.format.open // not a call: show the text that the model wrote
		if p.bare {
			shown = p.format.begin
			p.pending = p.pending[len(shown):]
		}
		p.inCall, p.body = false, nil
		d.Content += shown
	}
	return true
}

// begins reports whether a text that may go on to be a call has no space in its name.
func (f *callFormat) begins(text string) bool {
	text, begun := strings.CutPrefix(strings.TrimLeft(text, spaces), f.begin)
	space := strings.IndexAny(text, spaces)
	if !begun || f.python || space < 0 {
		return true
	}
	behind := text[space:]
	return strings.HasPrefix(f.between, behind) || f.between != "" && strings.HasPrefix(behind, f.between)
}

// next starts a call whose head was read, and counts it. It returns bodyEnded if no
// call follows the ones before.
func (p *answerParser) next(d *Delta, name, id string, head bodyState, calls *int) bodyState {
	switch {
	case head == bodyMoved:
		p.begin(d, name, id)
		*calls++
	case head == bodyRefused && *calls > 0:
		return bodyEnded
	}
	return head
}

// begin starts a call.
func (p *answerParser) begin(d *Delta, name, id string) {
	if id == "" || p.ids[id] {
		id = callID()
	} else {
		if p.ids == nil {
			p.ids = map[string]bool{}
		}
		p.ids[id] = true
	}
	d.Calls = append(d.Calls, CallDelta{Index: p.calls, ID: id, Name: name})
	p.calls++
}

// starts reports whether text starts with mark: bodyMoved if it does, bodyWaiting if it
// may with more text, else bodyRefused.
func starts(text, mark string, last bool) bodyState {
	switch {
	case strings.HasPrefix(text, mark):
		return bodyMoved
	case !last && strings.HasPrefix(mark, text):
		return bodyWaiting
	}
	return bodyRefused
}

// cutName cuts a name off a text, up to the first of the markers.
func cutName(text string, last bool, marks ...string) (name, rest string, s bodyState) {
	at, longest := -1, 0
	for _, mark := range marks {
		if i := strings.Index(text, mark); i >= 0 && (at < 0 || i < at) {
			at = i
		}
		longest = max(longest, len(mark))
	}
	switch {
	case at < 0 && !last && len(text) < maxName+longest:
		return "", text, bodyWaiting
	case at < 0 || at > maxName:
		return "", text, bodyRefused
	}
	name = strings.TrimSpace(text[:at])
	if name == "" || strings.ContainsAny(name, "\r\n<>\"") { // the key of an argument may have a space
		return "", text, bodyRefused
	}
	return name, text[at:], bodyMoved
}

// head reads the start of a call, up to its arguments. id is "" unless the model chose
// a sound one.
func (f *callFormat) head(text string, last bool) (name, id, rest string, s bodyState) {
	text, ok := skipSpace(text)
	if s = starts(text, f.begin, last); !ok {
		s = bodyRefused
	}
	if s != bodyMoved {
		return "", "", text, s
	}
	text = text[len(f.begin):]
	if f.between != "" {
		name, rest, s = cutName(text, last, f.between)
		rest = strings.TrimPrefix(rest, f.between)
	} else {
		name, rest, s = cutName(text, last, f.argument[0], f.close)
	}
	if strings.ContainsAny(name, spaces) {
		return "", "", text, bodyRefused
	}
	if f.id != "" {
		name, id, _ = strings.Cut(name, f.id)
		if !soundID(id) {
			id = ""
		}
	}
	if s != bodyMoved || !f.numbered {
		return name, id, rest, s
	}
	plain, prefixed := strings.CutPrefix(name, f.prefix)
	at := strings.LastIndexByte(plain, ':')
	if at <= 0 || strings.Trim(plain[at+1:], "0123456789") != "" {
		return plain, "", rest, s
	}
	if prefixed && len(name) <= maxID && soundID(plain[:at]) {
		id = name
	}
	return plain[:at], id, rest, s
}

// soundID reports whether an id of the model's can be passed on.
func soundID(id string) bool {
	return id != "" && len(id) <= maxID && !strings.ContainsFunc(id, func(r rune) bool { return !isNameRune(r) })
}

// isNameRune reports whether a character may be in the name of a function.
func isNameRune(r rune) bool {
	return r >= 'a' && r <= 'z' || r >= 'A' && r <= 'Z' || r >= '0' && r <= '9' || r == '_' || r == '-' || r == '.'
}

// behind reads what follows a call: the closing marker, which ends the calls, or the
// start of another call, which it leaves (bodyMoved). Other text ends the calls too.
func (p *answerParser) behind(last bool) bodyState {
	text := strings.TrimLeft(p.pending, spaces)
	p.pending = text
	var states []bodyState
	if p.format.close != "" {
		s := starts(text, p.format.close, last)
		if s == bodyMoved {
			p.pending = text[len(p.format.close):]
			return bodyEnded
		}
		states = append(states, s)
	}
	if p.format.begin != "" {
		s := starts(text, p.format.begin, last)
		if s == bodyMoved {
			return s
		}
		states = append(states, s)
	}
	if slices.Contains(states, bodyWaiting) {
		return bodyWaiting
	}
	return bodyEnded
}
