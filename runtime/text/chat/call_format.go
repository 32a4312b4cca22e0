package chat

import "github.com/iflowc/iflowc/runtime/text/grammar"

// CallFormat returns the format in which the model writes a tool call.
func (t *Template) CallFormat() grammar.CallFormat {
	f := t.callFormat()
	if f == nil { // a template in the brace language does not define tool calls
		f = &common
	}
	return f.constraint()
}

// constraint returns the format for a grammar. A call in the common format has its
// object on a line of its own.
func (f *callFormat) constraint() grammar.CallFormat {
	pad := f.pad
	if f.open != "" && f.close != "" && f.json() && !f.list {
		pad = "\n"
	}
	open, shut := f.open+pad, pad+f.close
	if f.list {
		open, shut = f.open+"[", "]"+f.close
	}
	c := grammar.CallFormat{
		Open: open + f.begin + f.prefix, Between: f.between, End: f.end, Shut: shut,
		Name: f.keys[0], Arguments: f.keys[1], Numbered: f.numbered, Python: f.python, Quote: f.quote, Kinds: f.kinds,
	}
	if f.argument[0] != "" {
		c.Between += f.pad
		c.Argument = [3]string{f.argument[0], f.argument[1] + f.argument[2] + f.pad, f.pad + f.argument[3] + f.pad}
	}
	return c
}

// json reports whether a call is a JSON object.
func (f *callFormat) json() bool { return f.keys[0] != "" }
