package grammar

import (
	"strings"
	"testing"
)

// TestTaggedArguments checks conditions on the arguments of calls in tags, where strings
// have no quotes and other values are JSON.
func TestTaggedArguments(t *testing.T) {
	t.Parallel()
	format := CallFormat{Open: "<call>", Shut: "</call>", Between: "\n", Argument: [3]string{"<p=", ">", "</p>"}}
	g, err := parseCall(format, []Tool{{Name: "f", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"^[a-z]+$","maxLength":3},"b":{"type":"array","uniqueItems":true},
		"c":{"type":"object","patternProperties":{"^x":{"type":"integer"}},"additionalProperties":false},"d":{"description":"text"},"e":{"format":"email"},
		"f":{"anyOf":[{"type":"string"},{"type":"array","uniqueItems":true}]},"g":{"type":"array","uniqueItems":true}}}`)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for argument, want := range map[string]bool{
		"<p=a>abc</p>":                   true,
		"<p=a>abcd</p>":                  false,
		"<p=b>[1,2]</p>":                 true,
		"<p=b>[1,1]</p>":                 false,
		`<p=c>{"x":1}</p>`:               true,
		`<p=c>{x:1}</p>`:                 false,
		`<p=c>{"y":1}</p>`:               false,
		`<p=d>any " text</p>`:            true,
		"<p=e>a@b.c</p>":                 true,
		`<p=e>"a@b.c"</p>`:               false,
		`<p=f>["x</p><p=g>["y","y"]</p>`: false,
		`<p=f>["x</p><p=g>["y","z"]</p>`: true,
		`<p=f>[[{1,1</p>`:                true,
	} {
		if got, err := g.Match("<call>f\n" + argument + "</call>"); got != want || err != nil {
			t.Errorf("%s: match %v, want %v, %v", argument, got, want, err)
		}
	}
}

// TestToolsPatterns checks that the conditions of one tool's arguments do not replace those
// of another.
func TestToolsPatterns(t *testing.T) {
	t.Parallel()
	format := CallFormat{Open: "<", Shut: ">", Name: "name", Arguments: "arguments"}
	tool := func(name, pattern string) Tool {
		return Tool{Name: name, Parameters: []byte(`{"type":"object","properties":{"a":{"type":"string","pattern":"` + pattern + `"}}}`)}
	}
	g, err := parseCall(format, []Tool{tool("f", "^x$"), tool("g", "^y$")}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for call, want := range map[string]bool{
		`<{"name":"f","arguments":{"a":"x"}}>`: true,
		`<{"name":"f","arguments":{"a":"y"}}>`: false,
		`<{"name":"g","arguments":{"a":"y"}}>`: true,
		`<{"name":"g","arguments":{"a":"x"}}>`: false,
	} {
		if got, err := g.Match(call); got != want || err != nil {
			t.Errorf("%s: match %v, want %v, %v", call, got, want, err)
		}
	}
}

// TestPythonArguments checks conditions on the arguments of calls in Python.
func TestPythonArguments(t *testing.T) {
	t.Parallel()
	format := CallFormat{Open: "[", Shut: "]", Between: "(", End: ")", Python: true}
	g, err := parseCall(format, []Tool{{Name: "f", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"object","minProperties":2}}}`)}}, nil)
	if err != nil {
		t.Fatal(err)
	}
	for argument, want := range map[string]bool{`a={"x":True,"y":None}`: true, `a={"x":1,"x":1}`: false, `a={"x":1}`: false} {
		if got, err := g.Match("[f(" + argument + ")]"); got != want || err != nil {
			t.Errorf("%s: match %v, want %v, %v", argument, got, want, err)
		}
	}
	_, err = parseCall(format, []Tool{{Name: "f", Parameters: []byte(`{"type":"object","properties":{"a":{"type":"array","uniqueItems":true}}}`), Strict: true}}, nil)
	if err == nil || !strings.Contains(err.Error(), "uniqueItems") {
		t.Errorf("uniqueItems in Python: %v", err)
	}
}
