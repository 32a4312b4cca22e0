package chat

import (
	"encoding/json"
	"slices"
	"testing"
)

// FuzzTemplate checks that no template in either language, and no message, panics.
func FuzzTemplate(f *testing.F) {
	for _, name := range Names() {
		source, _ := builtin(name)
		f.Add(source, `{"role": "user", "content": "x"}`)
	}
	f.Add("{#1}{bos}{<s>}{\\n}{query}", `{"role": "assistant", "content": [{"type": "text", "text": "<s>"}], "tool_calls": [{"function": {"name": "f", "arguments": "{}"}}]}`)
	tok := byteTokenizer(f)
	f.Fuzz(func(t *testing.T, source, message string) {
		var m Message
		if json.Unmarshal([]byte(message), &m) != nil {
			return
		}
		if len(source) > 500 { // Parse probes run under the default limits
			return
		}
		tmpl, err := Parse(source, TokensOf(tok))
		if err != nil {
			return
		}
		p, err := tmpl.Encode(tok, []Message{m}, RenderOptions{AddGenerationPrompt: true})
		if err != nil {
			return
		}
		r := tmpl.NewReader(tok, p.IDs, ReaderOptions{Tools: true, Reasoning: true})
		for _, id := range tok.Encode(message, false) {
			r.Push(id)
		}
		r.Flush()
	})
}

// FuzzAnswer checks that the result does not depend on how an answer is split, and that
// no text other than markers and calls is lost.
func FuzzAnswer(f *testing.F) {
	f.Add("a<tool_call>{\"name\":\"f\"}</tool_call>b", uint8(1))
	f.Add("<think>x</think> y <tool_c", uint8(3))
	f.Add(`<tool_call>[{"name":"f","arguments":{"a":"}\""},"id":1},{"arguments":{},"name":"g"}]</tool_call>`, uint8(2))
	f.Add(`<tool_call>{"name":"</tool_call>","arguments":{}`, uint8(0))
	f.Add(`<tool_call>[{"name":"f","arguments":{"a":"}\""},"}]</tool_call>"id":1},{"argume`, uint8(27))
	f.Fuzz(func(t *testing.T, answer string, cut uint8) {
		checkSplit(t, formatOf(""), answer, cut)
	})
}

// fuzzedTool gives the fuzzed calls arguments of several types.
const fuzzedTool = `{"type": "function", "function": {"name": "f", "parameters": {"properties": {
	"n": {"type": "integer"}, "x": {"type": ["number", "null"]}, "b": {"type": "boolean"}, "s": {"type": "string"},
	"l": {"$ref": "#/$defs/l"}, "o": {"anyOf": [{"type": "object"}, {"type": "string"}]}}, "$defs": {"l": {"items": {}}}}}}`

// FuzzCalls does the same with the other formats. It also checks that arguments that
// the parser writes itself are JSON.
func FuzzCalls(f *testing.F) {
	for i := range callFormats {
		for _, c := range []string{
			"Hm.<tool_call>\n<function=f>\n<parameter=n>\n 3\n</parameter>\n<parameter=s>\na\n<b\n\n</parameter>\n<parameter=l>\n[1, {'a': None}]\n</parameter>\n</function>\n</tool_call>",
			"<tool_call><function=f><parameter=o>{</parameter>x<parameter=>y</parameter></tool_call><tool_call><function=g></function> </tool_call>",
			`<|tool_calls_section_begin|><|tool_call_begin|>functions.f:0<|tool_call_argument_begin|>{"a": "}"}<|tool_call_end|><|tool_call_begin|>g:x<|tool_call_argument_begin|><|tool_call_end|><|tool_calls_section_end|>.`,
			`<|tool_call_start|>[f(a='it\'s', b="\u00e9\x41\q", c=[1, (2,), {'k': True, 3: -.5e1}], d=None), g.h( )]<|tool_call_end|>`,
			`<|tool_call_start|>[f(1, a = """x"y""", b=now(1, [2]), c='it's'), 5]<|tool_call_end|>`,
			`<|tool_call_start|>[{"name": "f", "arguments": {}}]<|tool_call_end|>`,
			"<tool_call>f\n<arg_key>n</arg_key>\n<arg_value>3</arg_value>\n<arg_key>s</arg_key><arg_value>a<b</arg_value></tool_call><tool_call>g</tool_call>",
			"a <function=x b <function=f>\n<parameter=s>\n1\n</parameter>\n</function>\n</tool_call>c",
			"<|channel|>analysis<|message|>Hm<|end|><|start|>assistant<|channel|>commentary to=functions.f <|constrain|>json<|message|>{\"n\": 1}<|call|>",
			" to=functions.g<|channel|>commentary<|message|>  x<|end|>assistant<|message|>a<|return|>b",
			`<|tool_call>call:f{s:<|"|>a \ "b"<|"|>,n:3,o:{k:[<|"|>x<|"|>,null],<|"|>l<|"|>:"q"}}<tool_call|><|tool_call>call:g{}<tool_call|>`,
			"<｜DSML｜tool_calls>\n<｜DSML｜invoke name=\"f\">\n<｜DSML｜parameter name=\"s\" string=\"true\">3</｜DSML｜parameter>\n<｜DSML｜parameter name=\"o\" string=\"false\">{\"a\": [1]}</｜DSML｜parameter>\n</｜DSML｜invoke>\n</｜DSML｜tool_calls>",
			`[TOOL_CALLS]f[ARGS]{"a": 1}[TOOL_CALLS]g[ARGS]{}`, "<think>a<|tool_calls_section_begin|>", `{"name": "f", "parameters": {}}`,
		} {
			f.Add(c, uint8(i), uint8(i))
		}
	}
	f.Fuzz(func(t *testing.T, answer string, kind, cut uint8) {
		format := formatOf(callFormats[int(kind)%len(callFormats)].sign)
		checkSplit(t, format, answer, cut)
		end := format.close
		switch {
		case format.argument[0] != "":
			end = format.argument[3] + format.end + end
		case !format.python:
			return
		}
		_, _, calls, asJSON := readAnswer(format, answer+end, 1)
		for _, c := range calls {
			if !asJSON && !json.Valid([]byte(c.Arguments)) {
				t.Errorf("%s(%s)", c.Name, c.Arguments)
			}
		}
	})
}

// readAnswer parses an answer in pieces of step bytes. asJSON reports, for pieces of 1,
// whether a call was
// JSON, which is passed on as it is.
func readAnswer(format *callFormat, answer string, step int) (content, reasoning string, calls []CallDelta, asJSON bool) {
	return readAnswerOf(format, ReaderOptions{Tools: true, Reasoning: true, Schemas: []json.RawMessage{json.RawMessage(fuzzedTool)}}, answer, step)
}

func readAnswerOf(format *callFormat, opts ReaderOptions, answer string, step int) (content, reasoning string, calls []CallDelta, asJSON bool) {
	p := newAnswerParser(format, opts)
	take := func(d Delta) {
		content += d.Content
		reasoning += d.Reasoning
		for _, c := range d.Calls {
			if c.Index == len(calls) {
				calls = append(calls, CallDelta{Index: c.Index})
			}
			calls[c.Index].Name += c.Name
			calls[c.Index].Arguments += c.Arguments // ids are random
		}
		asJSON = asJSON || p.asJSON
	}
	for i := 0; i < len(answer); i += step {
		take(p.push(answer[i:min(i+step, len(answer))], false))
	}
	take(p.push("", true))
	return content, reasoning, calls, asJSON || format.json()
}

// checkSplit compares the results for a whole answer and for its pieces.
func checkSplit(t *testing.T, format *callFormat, answer string, cut uint8) {
	t.Helper()
	c1, r1, n1, _ := readAnswer(format, answer, len(answer)+1)
	c2, r2, n2, _ := readAnswer(format, answer, int(cut)+1)
	if c1 != c2 || r1 != r2 || !slices.Equal(n1, n2) {
		t.Fatalf("whole: %q, %q, calls %+v; in pieces of %d: %q, %q, calls %+v", c1, r1, n1, int(cut)+1, c2, r2, n2)
	}
}
