package chat

import "strings"

// A callFormat is the syntax in which a family of templates writes tool calls and
// reasoning.
type callFormat struct {
	open  string // start of a call; "": the whole answer is a call
	close string // end of a call; "": the end of the answer
	keys  [2]string
	list  bool // a JSON list of calls stands between the markers
	think [2]string
}

// callFormats are the known formats; the first whose marker occurs in the template's
// text applies.
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

// formatOf returns the tool call format of a template. Without a known marker it
// returns the most common format, JSON in <tool_call> tags.
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
