package chat

// CallFormat is how the model writes one call of a tool: what stands before and
// behind the JSON object, and the object's keys of the name and the arguments.
func (t *Template) CallFormat() (open, shut, name, arguments string) {
	f := t.callFormat()
	if f == nil { // templates in the brace language say nothing of calls
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
