package chat

import (
	"encoding/json"
	"regexp"
)

// A callStream streams tool calls: first the name, then pieces of the arguments. It
// supports calls that write the name before a JSON object of arguments, as the
// templates of all families do.
type callStream struct {
	emitted int // calls emitted since the opening marker
	part    int // state of the current call
	json    nesting
}

// States of a call. callStream has no afterCall.
const (
	beforeCall = iota
	inArguments
	afterArguments // other keys and the end of the object, or the text after the arguments
	afterCall
)

// callHead matches the text before the arguments.
var callHead = regexp.MustCompile(`^[\s,;]*\[?\s*\{\s*"(?:name|tool_name|function)"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*\{`)

// take parses the pending text of p up to the closing marker at end (-1: not found
// yet). taken reports whether the text was a call; more reports whether take must be
// called again.
func (s *callStream) take(p *answerParser, d *Delta, end int, last bool) (more, taken bool) {
	switch s.part {
	case beforeCall:
		m := callHead.FindStringSubmatchIndex(p.pending)
		var name string
		if m == nil || end >= 0 && end < m[1] || json.Unmarshal([]byte(p.pending[m[2]:m[3]]), &name) != nil || name == "" || p.answers(name) {
			return false, false
		}
		d.Calls = append(d.Calls, CallDelta{Index: p.calls, ID: callID(), Name: name})
		p.calls++
		s.emitted++
		s.part, s.json, p.pending = inArguments, nesting{}, p.pending[m[1]-1:]
		return true, true
	case inArguments:
		n, whole := s.json.skip(p.pending)
		if n > 0 {
			d.addArguments(p.calls-1, p.pending[:n])
			p.pending = p.pending[n:]
		}
		if whole {
			s.part, s.json = afterArguments, nesting{depth: 1}
		}
		return whole, true
	}
	text := p.pending
	if end >= 0 {
		text = text[:end]
	} else if !last {
		text = text[:len(text)-partialMark(text, p.format.close)] // the marker ends a call wherever it occurs
	}
	n, whole := s.json.skip(text)
	p.pending = p.pending[n:]
	if whole || end >= 0 || last {
		s.part = beforeCall
		return true, true
	}
	return false, true
}

// addArguments appends to the arguments of a call.
func (d *Delta) addArguments(index int, text string) {
	if n := len(d.Calls); n > 0 && d.Calls[n-1].Index == index {
		d.Calls[n-1].Arguments += text
		return
	}
	d.Calls = append(d.Calls, CallDelta{Index: index, Arguments: text})
}

// A nesting tracks brackets and strings of JSON.
type nesting struct {
	depth             int
	inString, escaped bool
}

// skip consumes text up to the end of the current JSON value; whole reports whether the
// value ends at n.
func (j *nesting) skip(text string) (n int, whole bool) {
	for i := range len(text) {
		c := text[i]
		switch {
		case j.escaped:
			j.escaped = false
		case j.inString && c == '\\':
			j.escaped = true
		case c == '"':
			j.inString = !j.inString
		case j.inString:
		case c == '{' || c == '[':
			j.depth++
		case c == '}' || c == ']':
			if j.depth--; j.depth <= 0 {
				return i + 1, true
			}
		}
	}
	return len(text), false
}
