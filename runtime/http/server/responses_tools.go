//go:build unix

package server

import (
	"encoding/json"
	"fmt"
	"strings"
)

// A responseTool is a tool of a response. A custom tool takes a text; it is a function
// with one argument. A namespace contains functions and custom tools.
type responseTool struct {
	Type        string            `json:"type"`        // "function", "custom" or "namespace"; hosted tools are refused
	Name        string            `json:"name"`        // name of the function, or of the namespace
	Description string            `json:"description"` // what the function does; that of a namespace precedes those of its tools
	Parameters  json.RawMessage   `json:"parameters"`  // JSON Schema of the arguments of a function
	Strict      *bool             `json:"strict"`      // true: refuse a schema that cannot be enforced
	Format      *customFormat     `json:"format"`      // format of a custom tool's input
	Tools       []json.RawMessage `json:"tools"`       // of a namespace: its functions and custom tools
}

// customFormat is the format of a custom tool's input.
type customFormat struct {
	Type       string `json:"type"`       // "text", or "grammar"
	Syntax     string `json:"syntax"`     // of a grammar: "regex"; "lark" is refused
	Definition string `json:"definition"` // the regular expression that the whole input matches
}

// customInput is the arguments of a custom tool's function.
type customInput struct {
	Input string `json:"input"`
}

// responseTools are the tools of a response.
type responseTools struct {
	list  []json.RawMessage    // in the form of chat completions
	named map[string]namedTool // by the name of the function
}

// A namedTool is a tool as the response names it.
type namedTool struct {
	namespace, name string
	custom          bool
}

// find returns the tool of a function.
func (s *responseTools) find(function string) namedTool {
	if t, ok := s.named[function]; ok {
		return t
	}
	return namedTool{name: function}
}

// functionName returns the name of the function of a tool in a namespace.
func functionName(namespace, name string) string {
	if namespace == "" || name == "" {
		return name
	}
	return namespace + "__" + name
}

// read adds tools, or those of a namespace.
func (s *responseTools) read(at string, space *responseTool, tools []json.RawMessage) error {
	if len(tools) > maxTools {
		return invalid("tools", "tools: expected at most %d", maxTools)
	}
	for i, data := range tools {
		at := fmt.Sprintf("%s[%d]", at, i)
		var t responseTool
		if err := json.Unmarshal(data, &t); err != nil {
			return invalid("tools", "%s%v", at, inside(err))
		}
		if len(s.list) == maxTools {
			return invalid("tools", "tools: expected at most %d", maxTools)
		}
		switch {
		case t.Type == "function":
		case t.Type == "custom":
			var err error
			if t.Parameters, err = t.customSchema(); err != nil {
				return invalid("tools", "%s.format: %v", at, err)
			}
			if strict := t.Format != nil && t.Format.Type != "text"; strict { // the input has a format
				t.Strict = &strict
			}
		case t.Type == "namespace" && space.Name == "" && t.Name != "":
			if err := s.read(at+".tools", &t, t.Tools); err != nil {
				return err
			}
			continue
		default:
			return invalid("tools", "%s: tools of type %.40q run on OpenAI's servers and are not supported; send tools of type function, custom or namespace, with a name", at, t.Type)
		}
		if err := s.add(at, space, &t); err != nil {
			return err
		}
	}
	return nil
}

// add adds a function or a custom tool. The description of its namespace precedes its
// own.
func (s *responseTools) add(at string, space, t *responseTool) error {
	name := functionName(space.Name, t.Name)
	if err := checkName("name", name); err != nil {
		return invalid("tools", "%s%v", at, err)
	}
	if _, ok := s.named[name]; ok {
		return invalid("tools", "%s: there are two tools %.40q", at, name)
	}
	s.named[name] = namedTool{space.Name, t.Name, t.Type == "custom"}
	text := t.Description
	if space.Description != "" {
		text = strings.TrimSuffix(space.Description+"\n\n"+text, "\n\n")
	}
	s.list = append(s.list, chatTool(name, text, t.Parameters, or(t.Strict, false)))
	return nil
}

// customSchema returns the schema of the function of a custom tool.
func (t *responseTool) customSchema() (json.RawMessage, error) {
	input := map[string]string{"type": "string"}
	if f := t.Format; f != nil && f.Type != "text" {
		if f.Type != "grammar" {
			return nil, invalid("tools", "expected the type text or grammar, found %.40q", f.Type)
		}
		if f.Syntax != "regex" {
			return nil, invalid("tools", "grammars in the syntax %.40q are not supported; use regex", f.Syntax)
		}
		if len(f.Definition) > maxPattern {
			return nil, invalid("tools", "expected at most %d bytes", maxPattern)
		}
		input["pattern"] = "^(?:" + f.Definition + ")$"
	}
	return marshal(map[string]any{"type": "object", "properties": map[string]any{"input": input}, "required": []string{"input"}, "additionalProperties": false})
}

// A toolName names a tool in tool_choice.
type toolName struct{ Namespace, Name string }

// function returns the name of the function of a tool. The namespace may be left out
// where the name is unique.
func (s *responseTools) function(t toolName) (string, error) {
	name := functionName(t.Namespace, t.Name)
	if _, ok := s.named[name]; ok {
		return name, nil
	}
	found := ""
	for function, known := range s.named {
		if known.name == t.Name && t.Namespace == "" {
			if found != "" {
				return "", invalid("tool_choice", "tool_choice: several namespaces have a tool %.40q; add the namespace", t.Name)
			}
			found = function
		}
	}
	if found == "" {
		return "", invalid("tool_choice", "tool_choice: there is no tool %.40q", name)
	}
	return found, nil
}

// choose translates tool_choice to the form of chat completions.
func (s *responseTools) choose(data json.RawMessage) (json.RawMessage, error) {
	var choice struct {
		toolName
		Type  string
		Mode  string
		Tools []toolName
	}
	if isNeutral(data, "") || len(data) > maxToolBytes || json.Unmarshal(data, &choice) != nil { // a word, which chat completions check
		return data, nil
	}
	names := choice.Tools
	switch choice.Type {
	case "function", "custom":
		names = []toolName{choice.toolName}
	case "allowed_tools":
	default:
		return nil, invalid("tool_choice", "tool_choice: type %.40q; expected function, custom or allowed_tools", choice.Type)
	}
	var to chatToolChoice
	for _, t := range names {
		name, err := s.function(t)
		if err != nil {
			return nil, err
		}
		to.Function.Name = name
		to.Allowed.Tools = append(to.Allowed.Tools, to.toolReference)
	}
	to.Type, to.Allowed.Mode = choice.Type, choice.Mode
	return marshal(to)
}
