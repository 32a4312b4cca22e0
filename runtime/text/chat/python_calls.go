package chat

import "strings"

// pythonCalls reads a list of calls in the syntax of Python, with keyword arguments.
type pythonCalls struct {
	part  pythonPart
	calls int  // read since the opening marker
	count int  // arguments of the current call
	shut  bool // the list's bracket was closed
	value pythonValue
}

// A pythonPart is a state of pythonCalls.
type pythonPart int

const (
	beforePython pythonPart = iota
	inKeywords
	inPython // in the value of an argument
	behindPython
)

func (c *pythonCalls) step(p *answerParser, d *Delta, last bool) bodyState {
	switch c.part {
	case beforePython:
		return c.head(p, d, last)
	case inKeywords:
		return c.keyword(p, d, last)
	case inPython:
		n, ended := c.value.read(p.pending, last)
		p.pending = p.pending[n:]
		if out := c.value.take(); out != "" {
			d.addArguments(p.calls-1, out)
		}
		switch {
		case ended:
			c.part = inKeywords
			return bodyMoved
		case last:
			return bodyEnded
		}
		return bodyWaiting
	}
	return c.behind(p, last)
}

// head reads a call up to its parenthesis. What follows must be an argument or the end
// of the call.
func (c *pythonCalls) head(p *answerParser, d *Delta, last bool) bodyState {
	text, short := skipSpace(p.pending)
	if list, ok := strings.CutPrefix(text, "["); ok && c.calls == 0 && short {
		text, short = skipSpace(list)
	}
	name, rest, s := "", "", starts(text, p.format.begin, last)
	if s == bodyMoved {
		name, rest, s = identifier(text[len(p.format.begin):], p.format.between[0], last)
	}
	if s == bodyMoved && short {
		if rest, short = skipSpace(rest); starts(rest, p.format.end, last) != bodyMoved {
			_, _, s = identifier(rest, p.format.assign(), last)
		}
	}
	if !short {
		s = bodyRefused
	}
	if s = p.next(d, name, "", s, &c.calls); s != bodyMoved {
		return s
	}
	d.addArguments(p.calls-1, "{")
	c.part, c.count, p.pending = inKeywords, 0, rest
	return bodyMoved
}

// assign returns the character between the name and the value of a keyword argument.
func (f *callFormat) assign() byte {
	if f.quote != "" {
		return ':'
	}
	return '='
}

// identifier cuts a name off a text, up to a character.
func identifier(text string, end byte, last bool) (name, rest string, s bodyState) {
	n := strings.IndexFunc(text, func(r rune) bool { return !isNameRune(r) })
	if n < 0 {
		n = len(text)
	}
	rest, ok := skipSpace(text[n:])
	switch {
	case n > maxName || !ok || rest == "" && last || rest != "" && (n == 0 || rest[0] != end):
		return "", text, bodyRefused
	case rest == "":
		return "", text, bodyWaiting
	}
	return text[:n], rest[1:], bodyMoved
}

// keyword reads up to the value of the next argument, or to the end of the call. It
// drops values without a name.
func (c *pythonCalls) keyword(p *answerParser, d *Delta, last bool) bodyState {
	text := strings.TrimLeft(p.pending, spaces+",")
	p.pending = text
	s := starts(text, p.format.close, last)
	if strings.HasPrefix(text, p.format.end) || s == bodyMoved || text == "" && last {
		p.pending = strings.TrimPrefix(text, p.format.end)
		d.addArguments(p.calls-1, "}")
		c.part = behindPython
		return bodyMoved
	}
	if s == bodyWaiting {
		return s
	}
	key, rest, s := identifier(text, p.format.assign(), last)
	switch s {
	case bodyMoved:
		start := jsonString(key) + ": "
		if c.count > 0 {
			start = ", " + start
		}
		c.count++
		d.addArguments(p.calls-1, start)
		p.pending = rest
	case bodyRefused:
		if strings.IndexByte("=:])}", text[0]) >= 0 {
			p.pending = text[1:]
			return bodyMoved
		}
	default:
		return s
	}
	c.part, c.value = inPython, pythonValue{close: p.format.close, mark: p.format.quote, drop: s == bodyRefused}
	return bodyMoved
}

// behind reads what follows a call: another call, or the end of the list and the
// closing marker. Other text ends the calls too.
func (c *pythonCalls) behind(p *answerParser, last bool) bodyState {
	text := strings.TrimLeft(p.pending, spaces)
	p.pending = text
	switch s := starts(text, p.format.close, last); {
	case s == bodyMoved:
		p.pending = text[len(p.format.close):]
		return bodyEnded
	case s == bodyWaiting:
		return s
	case strings.HasPrefix(text, "]") && !c.shut:
		c.shut, p.pending = true, text[1:]
		return bodyMoved
	case strings.HasPrefix(text, ",") && !c.shut:
		c.part, p.pending = beforePython, text[1:]
		return bodyMoved
	}
	return bodyEnded
}
