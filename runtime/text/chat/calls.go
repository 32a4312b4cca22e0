package chat

import (
	"slices"
	"strings"
)

// A callFormat is the syntax in which a family of templates writes tool calls and
// reasoning. Between open and close, a call is a JSON object with these keys. Without
// keys, its name is text.
type callFormat struct {
	open  string // start of the calls; "": the whole answer is a call
	close string // end of the calls; "": the end of the answer
	keys  [2]string
	list  bool // a list of calls in brackets stands between the markers
	alone bool // the whole answer may also be a call, without open

	begin    string    // text before a call's name
	between  string    // text between the name and the arguments; "": the first argument or close ends the name
	end      string    // text after the arguments
	id       string    // text between the name and the call's id, if the model writes one
	prefix   string    // prefix of names, not part of them
	numbered bool      // a colon and a number follow the name; with the prefix, they are the call's id
	python   bool      // the arguments are keyword arguments of Python
	quote    string    // of strings without escapes; with it, colons follow the names of arguments, and keys have no quotes (Gemma 4)
	argument [4]string // if set: texts before and after an argument's name, and before and after its value
	kinds    [2]string // if set: texts before a value that is text, and before another value; argument[1] precedes them (DeepSeek-V3.2)
	pad      string    // white space around the texts of the format; a value loses one of it at each end

	channels bool     // the answer consists of messages to channels (gpt-oss)
	stops    []string // tokens that end an answer, beside the one after a message

	think   [2]string
	unended bool // a call may start before the reasoning has ended
}

// common is the most widespread format: JSON in <tool_call> tags.
var common = callFormat{open: "<tool_call>", close: "</tool_call>", keys: [2]string{"name", "arguments"}}

// tagged are calls with one tag per argument.
var tagged = callFormat{
	open: "<tool_call>", close: "</tool_call>", begin: "<function=", between: ">", end: "</function>",
	argument: [4]string{"<parameter=", ">", "", "</parameter>"}, pad: "\n",
}

// pythonic are calls in the syntax of Python.
var pythonic = callFormat{open: "<|tool_call_start|>", close: "<|tool_call_end|>", between: "(", end: ")", python: true, list: true}

// dsml returns the calls of DeepSeek-V3.2 and later, which say of each argument whether it
// is text.
func dsml(name string) callFormat {
	const mark = "｜DSML｜"
	return callFormat{
		open: "<" + mark + name + ">", close: "</" + mark + name + ">", begin: "<" + mark + `invoke name="`, between: `">`, end: "</" + mark + "invoke>",
		argument: [4]string{"<" + mark + `parameter name="`, `" string="`, "", "</" + mark + "parameter>"}, kinds: [2]string{`true">`, `false">`},
	}
}

// callFormats are the known formats; the first whose marker occurs in the template's
// text applies. A marker with * occurs if its parts do, in this order.
var callFormats = []struct {
	sign   string
	format callFormat
}{
	{"｜DSML｜*tool_calls>", dsml("tool_calls")},
	{"｜DSML｜*function_calls>", dsml("function_calls")},
	{"<｜tool▁calls▁begin｜>*```json", callFormat{
		open: "<｜tool▁calls▁begin｜>", close: "<｜tool▁calls▁end｜>", begin: "<｜tool▁call▁begin｜>function<｜tool▁sep｜>", between: "\n```json\n", end: "\n```<｜tool▁call▁end｜>",
	}},
	{"<｜tool▁calls▁begin｜>", callFormat{
		open: "<｜tool▁calls▁begin｜>", close: "<｜tool▁calls▁end｜>", begin: "<｜tool▁call▁begin｜>", between: "<｜tool▁sep｜>", end: "<｜tool▁call▁end｜>",
	}},
	{"<|channel|>", callFormat{open: "<|channel|>commentary to=functions.", between: " <|constrain|>json<|message|>", channels: true, stops: []string{"<|return|>", "<|call|>"}}},
	{"<|tool_call>", callFormat{
		open: "<|tool_call>", close: "<tool_call|>", begin: "call:", between: "{", end: "}", python: true, quote: `<|"|>`, stops: []string{"<|tool_response>"},
	}},
	{"<seed:tool_call>", callFormat{
		open: "<seed:tool_call>", close: "</seed:tool_call>", begin: "<function=", between: ">", end: "</function>",
		argument: [4]string{"<parameter=", ">", "", "</parameter>"},
	}},
	{"<minimax:tool_call>", callFormat{
		open: "<minimax:tool_call>", close: "</minimax:tool_call>", begin: `<invoke name="`, between: `">`, end: "</invoke>",
		argument: [4]string{`<parameter name="`, `">`, "", "</parameter>"},
	}},
	{"<parameter=", tagged},
	{"<arg_key>", callFormat{open: "<tool_call>", close: "</tool_call>", argument: [4]string{"<arg_key>", "</arg_key>", "<arg_value>", "</arg_value>"}}},
	{"<tool_calls>[", callFormat{open: "<tool_calls>", close: "</tool_calls>", keys: [2]string{"name", "arguments"}, list: true}},
	{"<tool_calls>", callFormat{open: "<tool_calls>", close: "</tool_calls>", keys: [2]string{"name", "arguments"}}},
	{"<tool_call>", common},
	{"<|tool_calls_section_begin|>", callFormat{
		open: "<|tool_calls_section_begin|>", close: "<|tool_calls_section_end|>", unended: true,
		begin: "<|tool_call_begin|>", between: "<|tool_call_argument_begin|>", end: "<|tool_call_end|>", prefix: "functions.", numbered: true,
	}},
	{"<|tool_call_start|>", pythonic},
	{"<|tool_list_start|>", pythonic}, // templates that list the tools like this, and leave calls as they are
	{"List of tools: [", pythonic},
	{"[ARGS]", callFormat{open: "[TOOL_CALLS]", between: "[ARGS]", id: "[CALL_ID]"}},
	{"[TOOL_CALLS]", callFormat{open: "[TOOL_CALLS]", keys: [2]string{"name", "arguments"}, list: true}},
	{"<TOOLCALL>", callFormat{open: "<TOOLCALL>", close: "</TOOLCALL>", keys: [2]string{"name", "arguments"}, list: true}},
	{"<|/tool_call|>", callFormat{open: "<|tool_call|>", close: "<|/tool_call|>", keys: [2]string{"name", "arguments"}, list: true}},
	{"<|tool_call|>", callFormat{open: "<|tool_call|>", keys: [2]string{"name", "arguments"}, list: true}},
	{"<|START_ACTION|>", callFormat{open: "<|START_ACTION|>", close: "<|END_ACTION|>", keys: [2]string{"tool_name", "parameters"}, list: true}},
	{"<|python_tag|>", callFormat{open: "<|python_tag|>", keys: [2]string{"name", "parameters"}, alone: true}},
	{`{"name": function name, "parameters"`, callFormat{keys: [2]string{"name", "parameters"}}},
	{"<|tool_calls|>", callFormat{open: "<|tool_calls|>", keys: [2]string{"name", "arguments"}, list: true}},
}

// thinkMarks are the markers of reasoning. The first whose opening marker occurs in the
// template's text applies, else the last.
var thinkMarks = [][2]string{{"<|channel>thought", "<channel|>"}, {"[THINK]", "[/THINK]"}, {"<seed:think>", "</seed:think>"}, {"<think>", "</think>"}}

// formatOf returns the tool call format of a template. Without a known marker it
// returns the common format.
func formatOf(source string) *callFormat {
	f := common
	for _, c := range callFormats {
		if containsParts(source, c.sign) {
			f = c.format
			break
		}
	}
	f.think = thinkMarks[len(thinkMarks)-1]
	for _, marks := range slices.Backward(thinkMarks) {
		if strings.Contains(source, marks[0]) {
			f.think = marks
		}
	}
	return &f
}

// containsParts reports whether the parts of a marker occur in a text.
func containsParts(text, sign string) bool {
	found := true
	for part := range strings.SplitSeq(sign, "*") {
		if _, text, found = strings.Cut(text, part); !found {
			return false
		}
	}
	return true
}

// marks returns the texts of the format that may contain special tokens.
func (f *callFormat) marks() []string {
	list := []string{f.open, f.close, f.begin, f.between, f.end, f.id, f.think[0], f.think[1], f.quote}
	if f.channels {
		list = append(list, messageStart, messageEnd)
		list = append(list, f.stops...)
	}
	return slices.DeleteFunc(append(list, f.argument[:]...), func(m string) bool { return m == "" })
}
