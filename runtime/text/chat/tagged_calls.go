package chat

import "strings"

// taggedCalls reads calls that write each argument in a tag of its own. A value is
// text; the tool's JSON Schema says how to convert it.
type taggedCalls struct {
	part  taggedPart
	calls int // read since the opening marker
	tool  *toolSchema
	count int      // arguments of the current call
	key   string   // the current argument
	types []string // the types of its value
	fresh bool     // nothing of the value has been read
}

// A taggedPart is a state of taggedCalls.
type taggedPart int

const (
	beforeName taggedPart = iota
	betweenArguments
	inText  // a value that stays text, and is streamed
	inValue // a value that is converted when it is complete
	behindCall
)

func (c *taggedCalls) step(p *answerParser, d *Delta, last bool) bodyState {
	switch c.part {
	case beforeName:
		return c.head(p, d, last)
	case betweenArguments:
		return c.between(p, d, last)
	case inText:
		return c.text(p, d, last)
	case inValue:
		return c.value(p, d, last)
	}
	s := p.behind(last)
	if s == bodyMoved {
		c.part = beforeName
	}
	return s
}

// head reads the name of a call.
func (c *taggedCalls) head(p *answerParser, d *Delta, last bool) bodyState {
	name, id, rest, s := p.format.head(p.pending, last)
	if s = p.next(d, name, id, s, &c.calls); s != bodyMoved {
		return s
	}
	d.addArguments(p.calls-1, "{")
	c.count, c.tool = 0, p.opts.tool(name)
	c.part, p.pending = betweenArguments, rest
	return bodyMoved
}

// between reads up to the next argument, or to the end of the call. It drops other
// text.
func (c *taggedCalls) between(p *answerParser, d *Delta, last bool) bodyState {
	f := p.format
	text := strings.TrimLeft(p.pending, spaces)
	p.pending = text
	waiting := false
	for _, mark := range []string{f.end, f.close} {
		if mark == "" {
			continue
		}
		switch starts(text, mark, last) {
		case bodyMoved:
			return c.end(p, d)
		case bodyWaiting:
			waiting = true
		}
	}
	switch s := starts(text, f.argument[0], last); {
	case s == bodyMoved:
		key, kind, rest, s := f.argumentHead(text[len(f.argument[0]):], last)
		if s == bodyMoved {
			p.pending = rest
			c.open(p, d, key, kind)
		}
		if s != bodyRefused {
			return s
		}
	case s == bodyWaiting || waiting:
		return bodyWaiting
	case text == "": // last: the end of the call is missing
		return c.end(p, d)
	}
	next := strings.IndexByte(text[1:], '<')
	if next < 0 {
		next = len(text) - 1
	}
	p.pending = text[1+next:]
	return bodyMoved
}

// argumentHead cuts the name off an argument, up to the value. kind is one of f.kinds, if
// the format has them.
func (f *callFormat) argumentHead(text string, last bool) (name, kind, rest string, s bodyState) {
	if name, rest, s = cutName(text, last, f.argument[1]); s != bodyMoved {
		return "", "", "", s
	}
	rest = rest[len(f.argument[1]):]
	if f.kinds[0] != "" {
		kind, rest, s = f.cutKind(rest, last)
		return name, kind, rest, s
	}
	if f.argument[2] == "" {
		return name, "", rest, s
	}
	rest, ok := skipSpace(rest)
	if s = starts(rest, f.argument[2], last); !ok {
		s = bodyRefused
	}
	return name, "", strings.TrimPrefix(rest, f.argument[2]), s
}

// cutKind cuts the kind of a value off a text.
func (f *callFormat) cutKind(text string, last bool) (kind, rest string, s bodyState) {
	s = bodyRefused
	for _, kind := range f.kinds {
		switch starts(text, kind, last) {
		case bodyMoved:
			return kind, text[len(kind):], bodyMoved
		case bodyWaiting:
			s = bodyWaiting
		}
	}
	return "", text, s
}

// end ends a call.
func (c *taggedCalls) end(p *answerParser, d *Delta) bodyState {
	d.addArguments(p.calls-1, "}")
	p.pending = strings.TrimPrefix(p.pending, p.format.end)
	c.part = behindCall
	return bodyMoved
}

// open starts an argument. Its kind, if there is one, says more than the schema.
func (c *taggedCalls) open(p *answerParser, d *Delta, key, kind string) {
	c.key, c.types, c.fresh = key, c.tool.types(key), true
	switch {
	case kind != "" && kind == p.format.kinds[0]:
		c.types = []string{"string"}
	case kind != "":
		c.types = otherTypes(c.types)
	}
	c.part = inValue
	if onlyText(c.types) {
		c.part = inText
		d.addArguments(p.calls-1, c.start()+`"`)
	}
}

// start returns the JSON before a value.
func (c *taggedCalls) start() string {
	comma := ""
	if c.count > 0 {
		comma = ", "
	}
	c.count++
	return comma + jsonString(c.key) + ": "
}

// text streams a value that is text, without the white space that the format puts
// around it.
func (c *taggedCalls) text(p *answerParser, d *Delta, last bool) bodyState {
	pad, end := p.format.pad, p.format.argument[3]
	if c.fresh && pad != "" {
		switch starts(p.pending, pad, last) {
		case bodyWaiting:
			return bodyWaiting
		case bodyMoved:
			p.pending = p.pending[len(pad):]
		}
	}
	c.fresh = false
	text, rest, ended := strings.Cut(p.pending, end)
	switch {
	case ended:
		d.addArguments(p.calls-1, escapeJSON(strings.TrimSuffix(text, pad))+`"`)
		c.part, p.pending = betweenArguments, rest
		return bodyMoved
	case !last:
		text = text[:len(text)-max(partialMark(text, pad+end), partialMark(text, end))]
	}
	if text != "" {
		d.addArguments(p.calls-1, escapeJSON(text))
		p.pending = p.pending[len(text):]
	}
	if last {
		return bodyEnded
	}
	return bodyWaiting
}

// value reads a whole value and converts it. The end of the answer drops an incomplete
// one.
func (c *taggedCalls) value(p *answerParser, d *Delta, last bool) bodyState {
	text, rest, ended := strings.Cut(p.pending, p.format.argument[3])
	switch {
	case ended:
		text = strings.TrimSuffix(strings.TrimPrefix(text, p.format.pad), p.format.pad)
		d.addArguments(p.calls-1, c.start()+convert(text, c.types))
		c.part, p.pending = betweenArguments, rest
		return bodyMoved
	case last:
		p.pending = ""
		return bodyEnded
	}
	return bodyWaiting
}
