package chat

import "strings"

// A callFormat says how a family of templates writes calls of tools, and what
// marks thinking.
type callFormat struct {
	open  string // what begins a call, "" none: the answer as a whole is one
	close string // what ends it; "" the end of the answer
	keys  [2]string
	list  bool // a JSON list of calls stands between
	think [2]string
}

// callFormats are told by what stands in a template's text, first fit.
var callFormats = []struct {
	sign   string
	format callFormat
}{
	{"<tool_call>", callFormat{open: "<tool_call>", close: "</tool_call>", keys: [2]string{"name", "arguments"}}},
	{"[TOOL_CALLS]", callFormat{open: "[TOOL_CALLS]", keys: [2]string{"name", "arguments"}, list: true}},
	{"<|tool_call|>", callFormat{open: "<|tool_call|>", close: "<|/tool_call|>", keys: [2]string{"name", "arguments"}, list: true}},
	{"<|START_ACTION|>", callFormat{open: "<|START_ACTION|>", close: "<|END_ACTION|>", keys: [2]string{"tool_name", "parameters"}, list: true}},
	{"<|python_tag|>", callFormat{open: "<|python_tag|>", keys: [2]string{"name", "parameters"}}},
	{`{"name": function name, "parameters"`, callFormat{keys: [2]string{"name", "parameters"}}},
	{"<|tool_calls|>", callFormat{open: "<|tool_calls|>", keys: [2]string{"name", "arguments"}, list: true}},
}

// formatOf finds how a template's model calls tools; a template that says
// nothing of it gets the format most used, JSON in <tool_call> tags.
func formatOf(source string) *callFormat {
	f := callFormats[0].format
	for _, c := range callFormats {
		if strings.Contains(source, c.sign) {
			f = c.format
			break
		}
	}
	f.think = [2]string{"<think>", "</think>"}
	if strings.Contains(source, "[THINK]") {
		f.think = [2]string{"[THINK]", "[/THINK]"}
	}
	return &f
}
