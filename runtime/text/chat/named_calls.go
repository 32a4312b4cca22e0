package chat

import "strings"

// namedCalls reads calls that write their name as text and their arguments as a JSON
// object.
type namedCalls struct {
	part  int // state of the current call: beforeCall and so on
	calls int // read since the opening marker
	json  nesting
}

func (c *namedCalls) step(p *answerParser, d *Delta, last bool) bodyState {
	switch c.part {
	case beforeCall:
		return c.head(p, d, last)
	case inArguments:
		n, whole := c.json.skip(p.pending)
		if n > 0 {
			d.addArguments(p.calls-1, p.pending[:n])
			p.pending = p.pending[n:]
		}
		switch {
		case whole:
			c.part = afterArguments
			return bodyMoved
		case last:
			return bodyEnded
		}
		return bodyWaiting
	}
	if end := strings.TrimLeft(p.format.end, spaces); end != "" && c.part == afterArguments {
		p.pending = strings.TrimLeft(p.pending, spaces)
		if starts(p.pending, end, last) == bodyWaiting {
			return bodyWaiting
		}
		p.pending = strings.TrimPrefix(p.pending, end)
		c.part = afterCall
	}
	s := p.behind(last)
	if s == bodyMoved {
		c.part = beforeCall
	}
	return s
}

// head reads a call up to its arguments. Without any, they are an empty object.
func (c *namedCalls) head(p *answerParser, d *Delta, last bool) bodyState {
	name, id, rest, s := p.format.head(p.pending, last)
	none := false
	if s == bodyMoved {
		var ok bool
		rest, ok = skipSpace(rest)
		if s = starts(rest, "{", last); s == bodyRefused && p.format.end != "" {
			s, none = starts(rest, p.format.end, last), true
		}
		if !ok {
			s = bodyRefused
		}
	}
	if s = p.next(d, name, id, s, &c.calls); s != bodyMoved {
		return s
	}
	c.part, c.json, p.pending = inArguments, nesting{}, rest
	if none {
		d.addArguments(p.calls-1, "{}")
		c.part = afterArguments
	}
	return bodyMoved
}
