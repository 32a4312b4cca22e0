package chat

import (
	"encoding/json"
	"regexp"
)

// A callStream tells calls as their text comes: first the name, then the
// arguments, piece by piece. It takes those whose name stands before arguments
// that are a JSON object, which is how every family's template writes them.
type callStream struct {
	told int // calls between the marks that were told so far
	part int // of the call that comes
	json nesting
}

// Parts of a call.
const (
	beforeCall = iota
	inArguments
	afterArguments // other keys, and the end of the object
)

// callHead is what stands before the arguments.
var callHead = regexp.MustCompile(`^[\s,;]*\[?\s*\{\s*"(?:name|tool_name|function)"\s*:\s*("(?:[^"\\]|\\.)*")\s*,\s*"(?:arguments|parameters)"\s*:\s*\{`)

// take reads from the text that p holds, which a mark ends at end (-1: it has
// not come). taken: the text was for it; more: it is to be called again.
func (s *callStream) take(p *answerParser, d *Delta, end int, last bool) (more, taken bool) {
	switch s.part {
	case beforeCall:
		m := callHead.FindStringSubmatchIndex(p.held)
		var name string
		if m == nil || end >= 0 && end < m[1] || json.Unmarshal([]byte(p.held[m[2]:m[3]]), &name) != nil || name == "" {
			return false, false
		}
		d.Calls = append(d.Calls, CallDelta{Index: p.calls, ID: callID(), Name: name})
		p.calls++
		s.told++
		s.part, s.json, p.held = inArguments, nesting{}, p.held[m[1]-1:]
		return true, true
	case inArguments:
		n, whole := s.json.skip(p.held)
		if n > 0 {
			d.addArguments(p.calls-1, p.held[:n])
			p.held = p.held[n:]
		}
		if whole {
			s.part, s.json = afterArguments, nesting{depth: 1}
		}
		return whole, true
	}
	text := p.held
	if end >= 0 {
		text = text[:end]
	} else if !last {
		text = text[:len(text)-begun(text, p.format.close)] // the mark ends a call wherever it stands
	}
	n, whole := s.json.skip(text)
	p.held = p.held[n:]
	if whole || end >= 0 || last {
		s.part = beforeCall
		return true, true
	}
	return false, true
}

// addArguments adds to those of a call.
func (d *Delta) addArguments(index int, text string) {
	if n := len(d.Calls); n > 0 && d.Calls[n-1].Index == index {
		d.Calls[n-1].Arguments += text
		return
	}
	d.Calls = append(d.Calls, CallDelta{Index: index, Arguments: text})
}

// A nesting follows brackets and strings of JSON.
type nesting struct {
	depth             int
	inString, escaped bool
}

// skip moves over text to the end of the value that it stands in; whole: that
// is at n.
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
