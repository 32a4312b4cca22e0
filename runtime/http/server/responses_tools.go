//go:build unix

package server

import (
	"encoding/json"
	"slices"
)

// A responseTool is a tool of a response. A custom tool takes a text; it is a function
// with one argument.
type responseTool struct {
	Type        string          `json:"type"`        // "function" or "custom"; hosted tools are refused
	Name        string          `json:"name"`        // name of the function
	Description string          `json:"description"` // what the function does
	Parameters  json.RawMessage `json:"parameters"`  // JSON Schema of the arguments of a function
	Strict      *bool           `json:"strict"`      // accepted without effect: required calls always match the schema
	Format      *customFormat   `json:"format"`      // format of a custom tool's input
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

// responseTools translates tools and returns the names of custom tools.
func responseTools(tools []json.RawMessage) (list []json.RawMessage, custom map[string]bool, err error) {
	if len(tools) > maxTools {
		return nil, nil, invalid("tools", "tools: expected at most %d", maxTools)
	}
	custom = map[string]bool{}
	for i, data := range tools {
		var t responseTool
		if err := json.Unmarshal(data, &t); err != nil {
			return nil, nil, invalid("tools", "tools[%d]: %v", i, badJSON(err))
		}
		switch t.Type {
		case "function":
		case "custom":
			if t.Parameters, err = t.customSchema(); err != nil {
				return nil, nil, invalid("tools", "tools[%d].format: %v", i, err)
			}
			custom[t.Name] = true
		default:
			return nil, nil, invalid("tools", "tools[%d]: tools of type %.40q run on OpenAI's servers and are not supported; send tools of type function or custom", i, t.Type)
		}
		if t.Name == "" {
			return nil, nil, invalid("tools", "tools[%d] has no name", i)
		}
		list = append(list, chatTool(t.Name, t.Description, t.Parameters))
	}
	return list, custom, nil
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

// responseToolChoice translates tool_choice to the form of chat completions, and returns
// the tools that it allows.
func responseToolChoice(data json.RawMessage, tools []json.RawMessage) (json.RawMessage, []json.RawMessage, error) {
	var choice struct {
		Type  string
		Name  string
		Mode  string
		Tools []struct{ Type, Name string }
	}
	if isNeutral(data, "") || len(data) > maxToolBytes || json.Unmarshal(data, &choice) != nil { // a word, which chat completions check
		return data, tools, nil
	}
	switch choice.Type {
	case "function", "custom":
		data, err := marshal(map[string]any{"type": "function", "function": map[string]string{"name": choice.Name}})
		return data, tools, err
	case "allowed_tools":
		mode, err := marshal(choice.Mode)
		return mode, slices.DeleteFunc(slices.Clone(tools), func(data json.RawMessage) bool {
			var t toolDefinition
			return json.Unmarshal(data, &t) == nil && !slices.ContainsFunc(choice.Tools, func(a struct{ Type, Name string }) bool { return a.Name == t.Function.Name })
		}), err
	}
	return nil, nil, invalid("tool_choice", "tool_choice: type %.40q; expected function, custom or allowed_tools", choice.Type)
}
