package grammar

import (
	"encoding/json"
	"fmt"
	"sync"
	"testing"
)

func testMaker() *Maker {
	return NewMaker(257, func(id int32) []byte {
		if id < 256 {
			return []byte{byte(id)}
		}
		return nil
	}, []int32{256})
}

// follow matches a text and reports whether it may end there.
func follow(t *testing.T, m *Matcher, text string) bool {
	t.Helper()
	for _, c := range []byte(text) {
		if m.Accept(int32(c)) != nil {
			return false
		}
	}
	return m.Accept(256) == nil && m.Done()
}

func TestCalls(t *testing.T) {
	t.Parallel()
	m := testMaker()
	tools := []Tool{
		{Name: "add", Parameters: json.RawMessage(`{"type":"object","properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],"additionalProperties":false,"$defs":{"n":{"type":"integer"}}}`)},
		{Name: "now"},
		{Name: "say", Parameters: json.RawMessage(`{"properties":{"a":{"$ref":"#/$defs/n"}},"required":["a"],"$defs":{"n":{"type":"string"}}}`)},
	}
	tagged := CallFormat{Open: "<tool_call>\n", Shut: "\n</tool_call>", Name: "name", Arguments: "arguments"}
	for text, want := range map[string]bool{
		"<tool_call>\n{\"name\": \"add\", \"arguments\": {\"a\": 1}}\n</tool_call>": true,
		"<tool_call>\n{\"name\":\"now\",\"arguments\":{}}\n</tool_call>":            true,
		"<tool_call>\n{\"name\":\"say\",\"arguments\":{\"a\":\"1\"}}\n</tool_call>": true,
		"<tool_call>\n{\"name\":\"say\",\"arguments\":{\"a\":1}}\n</tool_call>":     false,
		"<tool_call>\n{\"name\":\"sub\",\"arguments\":{}}\n</tool_call>":            false,
		"{\"name\":\"now\",\"arguments\":{}}":                                       false,
	} {
		matcher, err := m.Call(tagged, tools, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := follow(t, matcher, text); got != want {
			t.Errorf("%q: %v", text, got)
		}
	}
	matcher, err := m.Call(CallFormat{Open: "[TOOL_CALLS]", Between: "[ARGS]"}, tools, nil)
	if err != nil {
		t.Fatal(err)
	}
	if !follow(t, matcher, `[TOOL_CALLS]add[ARGS]{"a": 2}`) {
		t.Error("a call with the name before the arguments is refused")
	}
	if _, err := m.Call(tagged, []Tool{{Name: "x", Parameters: json.RawMessage(`{"not":{}}`), Strict: true}}, nil); err == nil {
		t.Error("a tool with an unsupported schema is accepted")
	}
}

// TestCallArguments writes arguments in tags and as keywords of Python, with references
// that recur in JSON.
func TestCallArguments(t *testing.T) {
	t.Parallel()
	m := testMaker()
	tags := CallFormat{Open: "<f=", Between: ">", End: "</f>", Argument: [3]string{"<p=", ">", "</p>"}}
	python := CallFormat{Open: "[", Between: "(", End: ")", Shut: "]", Python: true}
	tools := []Tool{{Name: "a", Parameters: json.RawMessage(`{"$ref": "#/$defs/n", "$defs": {"n": {"type": ["object", "null"], "properties": {
		"s": {"type": "string"}, "n": {"$ref": "#/$defs/n"}, "t": {"enum": [true, "x", null]}}, "minProperties": 1}}}`)}, {Name: "b"}}
	for _, c := range []struct {
		format CallFormat
		text   string
		want   bool
	}{
		{tags, "<f=a><p=s>x <p </p</p><p=n>{\"s\":\"<\",\"n\":null}</p></f>", true},
		{tags, "<f=a><p=t>x</p></f>", true},
		{tags, "<f=a><p=t>null</p></f>", true},
		{tags, "<f=a><p=t>\"x\"</p></f>", false},
		{tags, "<f=a><p=s>a</p>b</p></f>", false},
		{tags, "<f=a><p=n>{\"t\":x}</p></f>", false},
		{tags, "<f=a></f>", false},
		{tags, "<f=a><p=z>1</p></f>", false},
		{tags, "<f=b></f>", true},
		{python, `[a(s="x", n={"s": "y", "t": True}, t=None)]`, true},
		{python, `[a(t=true)]`, true},
		{python, `[a(t="x")]`, true},
		{python, `[a(t=x)]`, false},
		{python, `[a(s='x')]`, false},
		{python, `[a()]`, false},
		{python, `[b()]`, true},
	} {
		matcher, err := m.Call(c.format, tools, nil)
		if err != nil {
			t.Fatal(err)
		}
		if got := follow(t, matcher, c.text); got != c.want {
			t.Errorf("%s: %v", c.text, got)
		}
	}
	for _, schema := range []string{`{"enum": [{}]}`, `{"type": "object", "additionalProperties": {"type": "string"}}`, `{"properties": {"a>b": {}}}`, `{"properties": {"a": {"const": "x</p>"}}}`} {
		if _, err := m.Call(tags, []Tool{{Name: "a", Parameters: json.RawMessage(schema), Strict: true}}, nil); err == nil {
			t.Errorf("%s is accepted", schema)
		}
	}
	if !tags.Marked("</p>") || tags.Marked("") || tags.Marked("<g=") {
		t.Error("marks of the format")
	}
}

// TestMakerConcurrent shares grammars and their positions between matchers.
func TestMakerConcurrent(t *testing.T) {
	t.Parallel()
	m := testMaker()
	var wg sync.WaitGroup
	for i := range 8 {
		wg.Go(func() {
			for j := range 3 * maxKept {
				matcher, err := m.Regex(fmt.Sprintf("a{%d}b", (i+j)%(maxKept+5)))
				if err != nil {
					t.Error(err)
					return
				}
				if _, err := matcher.Mask(); err != nil {
					t.Error(err)
				}
				if follow(t, matcher, "c") {
					t.Error("c is accepted")
				}
				if object, err := m.Object(); err != nil || !follow(t, object, `{"a":[1,{}]}`) {
					t.Errorf("an object is refused: %v", err)
				}
			}
		})
	}
	wg.Wait()
	if m.order.Len() > maxKept || len(m.known) != m.order.Len() {
		t.Errorf("%d grammars in order, %d in the map", m.order.Len(), len(m.known))
	}
}

// TestScopes checks that grammars are found within a scope alone.
func TestScopes(t *testing.T) {
	t.Parallel()
	m := testMaker()
	a, b := m.In("a"), m.In("b")
	compiled := 0
	for _, maker := range []*Maker{a, b, a, m.In("b"), m} {
		if _, err := maker.grammar(source{maker.scope, "regex", "a+"}, func() (*Grammar, error) {
			compiled++
			return ParseRegex("a+")
		}); err != nil {
			t.Fatal(err)
		}
	}
	if compiled != 3 {
		t.Errorf("%d grammars for three scopes", compiled)
	}
	for _, err := range []error{errOf(a.Regex("b")), errOf(a.GBNF("root ::= \"a\"")), errOf(a.Schema([]byte("{}"))), errOf(a.Call(CallFormat{Name: "name", Arguments: "arguments"}, []Tool{{Name: "f"}}, nil))} {
		if err != nil {
			t.Error(err)
		}
	}
	for s := range m.known {
		if s.scope == "" && s.text != "a+" {
			t.Errorf("a grammar of kind %s has no scope", s.kind)
		}
	}
}

func errOf(_ *Matcher, err error) error { return err }
