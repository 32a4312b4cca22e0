package chat

// CallFormat returns the format in which the model writes a tool call: the text before
// and after the JSON object, and the object's keys for the name and the arguments.
func (t *Template) CallFormat() (open, shut, name, arguments string) {
	f := t.callFormat()
	if f == nil { // a template in the brace language does not define tool calls
		f = &callFormats[0].format
	}
	open, shut = f.open, f.close
	if open != "" && shut != "" && !f.list {
		open, shut = open+"\n", "\n"+shut
	}
	if f.list {
		open, shut = open+"[", "]"+shut
	}
	return open, shut, f.keys[0], f.keys[1]
}
