package chat

import (
	"crypto/rand"
	"encoding/json"
	"errors"
	"io"
	"slices"
	"strings"
	"unicode"
)

// An answerParser parses a generated answer incrementally. It holds back text that may
// turn out to be a marker. It streams tool calls that write the name before the
// arguments (callstream.go, callbody.go), and emits other calls when they are complete.
type answerParser struct {
	format   *callFormat // nil: plain text only
	opts     ReaderOptions
	pending  string
	started  bool // a non-space character was seen
	thinking bool
	inCall   bool
	trim     bool // drop white space after the last marker
	calls    int
	stream   callStream
	asJSON   bool            // the calls between the markers are JSON, whatever the format
	bare     bool            // the marker before the calls is missing
	body     callBody        // reads the calls between the markers; nil: JSON
	message  messagePart     // with channels
	ids      map[string]bool // ids that the model has chosen
}

func newAnswerParser(f *callFormat, opts ReaderOptions) answerParser {
	return answerParser{format: f, opts: opts}
}

// push parses more text; last marks the end of the answer.
func (p *answerParser) push(text string, last bool) (d Delta) {
	step := p.step
	switch {
	case p.format == nil || !p.opts.Tools && !p.opts.Reasoning:
		return Delta{Content: text}
	case p.format.channels:
		step = p.channel
	}
	p.pending += text
	for step(&d, last) {
	}
	if p.opts.Forced {
		d.Content = ""
	}
	return d
}

// step parses one part of the pending text. It returns false if it needs more text.
func (p *answerParser) step(d *Delta, last bool) bool {
	if p.trim {
		if p.pending = strings.TrimLeftFunc(p.pending, unicode.IsSpace); p.pending == "" {
			return false
		}
		p.trim = false
	}
	switch {
	case p.inCall:
		return p.call(d, last)
	case p.thinking:
		return p.think(d, last)
	}
	if !p.started {
		rest := strings.TrimLeftFunc(p.pending, unicode.IsSpace)
		if rest == "" && !last {
			return false
		}
		if p.opts.Tools && (p.format.open == "" || p.format.alone) && strings.HasPrefix(rest, "{") {
			p.started, p.inCall, p.bare = true, true, true
			return true
		}
		if think := p.format.think[0]; p.opts.Reasoning && strings.HasPrefix(think, rest[:min(len(rest), len(think))]) && rest != "" {
			if len(rest) < len(think) && !last {
				return false
			}
			if strings.HasPrefix(rest, think) {
				p.pending = rest[len(think):]
				p.started, p.thinking, p.trim = true, true, true
				return true
			}
		}
		p.started = true
	}
	if !p.opts.Tools {
		return p.until("", &d.Content, last, nil)
	}
	bare := p.format.begin // models forget the marker around their calls
	return p.until(p.format.open, &d.Content, last, func(mark string) {
		p.inCall, p.bare = true, mark == bare
		if p.bare {
			p.pending = bare + p.pending
		}
	}, bare)
}

// think parses reasoning.
func (p *answerParser) think(d *Delta, last bool) bool {
	call := ""
	if p.opts.Tools && p.format.unended {
		call = p.format.open
	}
	return p.until(p.format.think[1], &d.Reasoning, last, func(mark string) {
		p.thinking, p.trim, p.inCall = false, mark != call, mark == call
	}, call)
}

// until moves text before the first of the markers to *to and calls found at it. It
// keeps a suffix that may be the start of a marker.
func (p *answerParser) until(mark string, to *string, last bool, found func(mark string), others ...string) bool {
	if p.pending == "" {
		return false
	}
	keep, at, first := 0, -1, ""
	for _, mark := range append(others, mark) {
		if mark == "" {
			continue
		}
		if i := strings.Index(p.pending, mark); i >= 0 && (at < 0 || i < at) {
			at, first = i, mark
		}
		keep = max(keep, partialMark(p.pending, mark))
	}
	if at >= 0 {
		*to += p.pending[:at]
		p.pending = p.pending[at+len(first):]
		found(first)
		return true
	}
	if last {
		if p.opts.Tools && keep >= cutMark && partialMark(p.pending, p.format.open) == keep {
			p.pending = p.pending[:len(p.pending)-keep]
		}
		keep = 0
	}
	*to += p.pending[:len(p.pending)-keep]
	p.pending = p.pending[len(p.pending)-keep:]
	return false
}

// cutMark is the length from which the beginning of a call's marker at the end of an answer
// is one that was cut off, and no text.
const cutMark = 4

// partialMark returns the length of the longest suffix of text that is a proper prefix of
// mark.
func partialMark(text, mark string) int {
	for n := min(len(mark)-1, len(text)); n > 0; n-- {
		if strings.HasSuffix(text, mark[:n]) {
			return n
		}
	}
	return 0
}

// call parses the tool calls in the pending text.
func (p *answerParser) call(d *Delta, last bool) bool {
	if p.body == nil && !p.asJSON {
		known := p.format.json() || last
		if p.asJSON = known && p.format.json(); !known {
			p.asJSON, known = startsJSON(p.pending)
		}
		if !known {
			return false
		}
		if !p.asJSON {
			p.body = p.format.body()
		}
	}
	if p.body != nil {
		return p.read(d, last)
	}
	return p.jsonCalls(d, last)
}

// startsJSON reports whether a text starts with an object or a list of objects. Models
// with other formats may write these too.
func startsJSON(text string) (is, known bool) {
	text, ok := skipSpace(text)
	if list, isList := strings.CutPrefix(text, "["); ok && isList {
		text, ok = skipSpace(list)
	}
	return ok && strings.HasPrefix(text, "{"), !ok || text != ""
}

// jsonCalls parses calls in JSON.
func (p *answerParser) jsonCalls(d *Delta, last bool) bool {
	end := -1
	if p.format.close != "" {
		end = strings.Index(p.pending, p.format.close)
	}
	if more, taken := p.stream.take(p, d, end, last); taken {
		return more
	}
	body, rest, mark, ended := p.pending, "", "", last
	if end >= 0 {
		body, rest, mark, ended = p.pending[:end], p.pending[end+len(p.format.close):], p.format.close, true
	}
	if !ended {
		return false
	}
	emitted := p.stream.emitted > 0
	if emitted {
		body = strings.Trim(body, " \t\r\n,;]")
	}
	list, ok := readCalls(body, p.format.keys)
	ok = ok && !slices.ContainsFunc(list, func(c CallDelta) bool { return p.answers(c.Name) })
	switch p.trim = ok || emitted; {
	case ok:
		for _, c := range list {
			c.Index, c.ID = p.calls, callID()
			d.Calls = append(d.Calls, c)
			p.calls++
		}
	case !emitted && end < 0 && p.begins(body): // cut off
	case !emitted:
		if !p.bare {
			d.Content += p.format.open
		}
		d.Content += body + mark // not a valid call: show the text that the model wrote
	}
	p.inCall, p.asJSON, p.pending, p.stream = false, false, rest, callStream{}
	return rest != ""
}

// begins reports whether JSON is the beginning of a call. Without a marker it must be that
// of a known tool.
func (p *answerParser) begins(text string) bool {
	text = strings.TrimLeft(text, spaces+"[")
	if text != "" && !isCut(text) {
		return false
	}
	if !p.bare {
		return true
	}
	text = strings.Join(strings.Fields(text), "")
	for _, key := range []string{p.format.keys[0], "name", "tool_name", "function"} {
		head := "{" + jsonString(key) + ":"
		if strings.HasPrefix(head, text) {
			return true
		}
		rest, ok := strings.CutPrefix(text, head)
		if ok && p.opts.some(func(name string) bool {
			return strings.HasPrefix(jsonString(name), rest) || strings.HasPrefix(rest, jsonString(name))
		}) {
			return true
		}
	}
	return false
}

// isCut reports whether a text is the beginning of a JSON value, but not the whole.
func isCut(text string) bool {
	return errors.Is(json.NewDecoder(strings.NewReader(text)).Decode(new(json.RawMessage)), io.ErrUnexpectedEOF)
}

// answers reports whether JSON without a marker is an answer of its own, such as of
// structured output with a key name: no tool has the name.
func (p *answerParser) answers(name string) bool {
	return p.bare && len(p.opts.Schemas) > 0 && !p.opts.has(name)
}

// callID returns a random id for a call: nine letters and digits, a format that every
// template accepts.
func callID() string { return strings.ToLower(rand.Text()[:9]) }

// readCalls parses one or more JSON objects of calls, or a list of them.
func readCalls(text string, keys [2]string) (out []CallDelta, ok bool) {
	text = strings.TrimSpace(text)
	d := json.NewDecoder(strings.NewReader(text))
	for {
		var raw json.RawMessage
		if err := d.Decode(&raw); err != nil {
			return out, len(out) > 0 && strings.TrimSpace(text[d.InputOffset():]) == ""
		}
		list := []json.RawMessage{raw}
		if raw[0] == '[' && json.Unmarshal(raw, &list) != nil {
			return nil, false
		}
		for _, item := range list {
			c, ok := readCall(item, keys)
			if !ok {
				return nil, false
			}
			out = append(out, c)
		}
		if at := d.InputOffset(); at < int64(len(text)) && text[at] == ';' { // the separator of calls in Llama 3
			text = text[at+1:]
			d = json.NewDecoder(strings.NewReader(text))
		}
	}
}

// readCall parses one call. The names of its keys differ between model families, and
// models mix them up.
func readCall(data json.RawMessage, keys [2]string) (c CallDelta, ok bool) {
	var call map[string]json.RawMessage
	if json.Unmarshal(data, &call) != nil {
		return c, false
	}
	if inner, ok := call["function"]; ok && inner[0] == '{' {
		return readCall(inner, keys)
	}
	for _, key := range []string{keys[0], "name", "tool_name", "function"} {
		if c.Name == "" {
			_ = json.Unmarshal(call[key], &c.Name) // ignore a value of another type: the name may be under another key
		}
	}
	for _, key := range []string{keys[1], "arguments", "parameters"} {
		if v, ok := call[key]; ok && c.Arguments == "" {
			c.Arguments = string(v)
		}
	}
	if strings.HasPrefix(c.Arguments, `"`) {
		var text string
		if json.Unmarshal([]byte(c.Arguments), &text) == nil && json.Valid([]byte(text)) {
			c.Arguments = text
		}
	}
	if c.Arguments == "" || c.Arguments == "null" {
		c.Arguments = "{}"
	}
	return c, c.Name != "" && c.Arguments[0] == '{'
}
