package chat

import (
	"encoding/json"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/text/grammar"
)

// forcedTool has arguments of every type.
const forcedTool = `{"type": "function", "function": {"name": "f", "parameters": {"type": "object", "properties": {
	"s": {"type": "string"}, "n": {"type": "integer", "minimum": 1, "maximum": 9}, "x": {"type": ["number", "null"]}, "b": {"type": "boolean"},
	"l": {"type": "array", "items": {"type": "string"}}, "o": {"$ref": "#/$defs/node"}, "e": {"enum": ["a b", "c"]},
	"p": {"type": "string", "pattern": "^[a-z]{2}$"}, "m": {"type": "string", "maxLength": 3}, "d": {"type": "string", "format": "date"},
	"u": {"anyOf": [{"type": "integer"}, {"const": "all"}]}, "any": {}},
	"required": ["s"], "$defs": {"node": {"type": "object", "properties": {"v": {"type": "boolean"}, "next": {"$ref": "#/$defs/node"}}, "additionalProperties": false}}}}}`

// spell writes a call of f in a format. values are JSON; those of text start with a
// quote.
func spell(f grammar.CallFormat, keys, values []string) string {
	var parts []string
	for i, key := range keys {
		text := values[i]
		switch {
		case f.Quote != "":
			parts = append(parts, key+":"+quoted(text, f.Quote))
			continue
		case f.Python:
			words := map[string]string{"true": "True", "null": "None"}
			if word, ok := words[text]; ok {
				text = word
			}
			parts = append(parts, key+"="+strings.ReplaceAll(text, ": true", ": True"))
			continue
		case f.Argument[0] == "":
			parts = append(parts, `"`+key+`": `+text)
			continue
		case text[0] == '"':
			if err := json.Unmarshal([]byte(values[i]), &text); err != nil {
				panic(err)
			}
			text = f.Kinds[0] + text
		default:
			text = f.Kinds[1] + text
		}
		parts = append(parts, f.Argument[0]+key+f.Argument[1]+text+f.Argument[2])
	}
	switch {
	case f.Argument[0] != "":
		return f.Open + "f" + f.Between + strings.Join(parts, "") + f.End + f.Shut
	case f.Python:
		return f.Open + "f" + f.Between + strings.Join(parts, ", ") + f.End + f.Shut
	}
	arguments := "{" + strings.Join(parts, ", ") + "}"
	if f.Name != "" {
		return f.Open + `{"` + f.Name + `": "f", "` + f.Arguments + `": ` + arguments + "}" + f.Shut
	}
	number := ""
	if f.Numbered {
		number = ":12"
	}
	return f.Open + "f" + number + f.Between + arguments + f.End + f.Shut
}

// quoted writes JSON with other quotes: strings without escapes, keys without quotes.
func quoted(text, quote string) string {
	var v any
	if err := json.Unmarshal([]byte(text), &v); err != nil {
		return text
	}
	var parts []string
	switch v := v.(type) {
	case string:
		return quote + v + quote
	case []any:
		for _, x := range v {
			data, _ := json.Marshal(x)
			parts = append(parts, quoted(string(data), quote))
		}
		return "[" + strings.Join(parts, ",") + "]"
	case map[string]any:
		for k, x := range v {
			data, _ := json.Marshal(x)
			parts = append(parts, k+":"+quoted(string(data), quote))
		}
		slices.Sort(parts)
		slices.Reverse(parts) // the order of the test's properties
		return "{" + strings.Join(parts, ",") + "}"
	}
	return text
}

// TestForcedCalls checks, for every format, that the grammar of a required call accepts
// what the reader reads, with the same arguments, and refuses wrong values.
func TestForcedCalls(t *testing.T) {
	t.Parallel()
	var tool struct {
		Function struct{ Parameters json.RawMessage }
	}
	if err := json.Unmarshal([]byte(forcedTool), &tool); err != nil {
		t.Fatal(err)
	}
	maker := grammar.NewMaker(257, func(id int32) []byte {
		if id < 256 {
			return []byte{byte(id)}
		}
		return nil
	}, []int32{256})
	accepts := func(f grammar.CallFormat, text string) bool {
		m, err := maker.Call(f, []grammar.Tool{{Name: "f", Parameters: tool.Function.Parameters}}, nil)
		if err != nil {
			t.Fatal(err)
		}
		for _, c := range []byte(text) {
			if m.Accept(int32(c)) != nil {
				return false
			}
		}
		return m.Accept(256) == nil
	}
	for i := range callFormats {
		format := formatOf(callFormats[i].sign)
		f := format.constraint()
		for _, c := range forcedCases {
			text := spell(f, c.keys, c.values)
			if got := accepts(f, text); got != c.valid {
				t.Errorf("%s: accepted %v", text, got)
			}
			if !c.valid {
				continue
			}
			p := newAnswerParser(format, ReaderOptions{Tools: true, Schemas: []json.RawMessage{json.RawMessage(forcedTool)}})
			d := p.push(text, true)
			if len(d.Calls) == 0 || d.Calls[0].Name != "f" || d.Content != "" {
				t.Errorf("%s: %+v", text, d)
				continue
			}
			arguments := ""
			for _, call := range d.Calls {
				arguments += call.Arguments
			}
			if want := spell(grammar.CallFormat{}, c.keys, c.values)[1:]; !sameJSON(arguments, want) { // after the name
				t.Errorf("%s:\ngot  %s\nwant %s", text, arguments, want)
			}
		}
	}
}

func sameJSON(a, b string) bool {
	var x, y any
	return json.Unmarshal([]byte(a), &x) == nil && json.Unmarshal([]byte(b), &y) == nil && reflect.DeepEqual(x, y)
}

var forcedCases = []struct {
	keys, values []string
	valid        bool
}{
	{[]string{"s"}, []string{`"x"`}, true},
	{[]string{"s"}, []string{`""`}, true},
	{[]string{"s"}, []string{`"\n a \"b\" \\ <tool> 漢\n\n"`}, true},
	{[]string{"s", "n", "x", "b", "l", "o"}, []string{`"3"`, "3", "-1.5e3", "true", `["true", "]"]`, `{"v": true, "next": {"next": {}}}`}, true},
	{[]string{"s", "x", "e", "p", "m", "d", "u"}, []string{`"y"`, "null", `"a b"`, `"xy"`, `"abc"`, `"2025-01-31"`, "7"}, true},
	{[]string{"s", "e", "u"}, []string{`"null"`, `"c"`, `"all"`}, true},
	{[]string{"n"}, []string{"3"}, false},
	{[]string{"s", "n"}, []string{`"x"`, "0"}, false},
	{[]string{"s", "n"}, []string{`"x"`, `"3 "`}, false},
	{[]string{"s", "b"}, []string{`"x"`, `"yes"`}, false},
	{[]string{"s", "l"}, []string{`"x"`, "[1]"}, false},
	{[]string{"s", "o"}, []string{`"x"`, `{"w": 1}`}, false},
	{[]string{"s", "e"}, []string{`"x"`, `"b"`}, false},
	{[]string{"s", "p"}, []string{`"x"`, `"xyz"`}, false},
	{[]string{"s", "m"}, []string{`"x"`, `"abcd"`}, false},
	{[]string{"s", "d"}, []string{`"x"`, `"2025-13-01"`}, false},
	{[]string{"s", "u"}, []string{`"x"`, `"some"`}, false},
}
