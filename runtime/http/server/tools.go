//go:build unix

package server

import (
	"encoding/json"
)

// A toolUse is which tools the model is told of, and which it must call.
type toolUse struct {
	tools  []json.RawMessage
	forced []Tool // one of them must be called; none: the model decides
}

// toolChoice reads tools and tool_choice.
func (s *Server) toolChoice(req *chatRequest) (toolUse, error) {
	list := make([]Tool, len(req.Tools))
	for i, data := range req.Tools {
		var t struct {
			Type     string `json:"type"`
			Function struct {
				Name       string          `json:"name"`
				Parameters json.RawMessage `json:"parameters"`
			} `json:"function"`
		}
		if err := json.Unmarshal(data, &t); err != nil || t.Function.Name == "" || t.Type != "" && t.Type != "function" {
			return toolUse{}, invalid("tools", "tools[%d]: expected {\"type\": \"function\", \"function\": {\"name\": …, \"parameters\": …}}", i)
		}
		list[i] = Tool{t.Function.Name, t.Function.Parameters}
	}
	word, name, err := readToolChoice(req.ToolChoice)
	if err != nil {
		return toolUse{}, err
	}
	if len(list) == 0 {
		if word == "required" || name != "" {
			return toolUse{}, invalid("tool_choice", "tool_choice: there are no tools")
		}
		return toolUse{}, nil
	}
	switch {
	case name != "":
		for i, t := range list {
			if t.Name == name {
				return toolUse{req.Tools[i : i+1], list[i : i+1]}, nil
			}
		}
		return toolUse{}, invalid("tool_choice", "tool_choice: there is no tool %q", name)
	case word == "none":
		return toolUse{}, nil
	case word == "required":
		return toolUse{req.Tools, list}, nil
	}
	return toolUse{tools: req.Tools}, nil
}

// readToolChoice reads "auto", "none", "required" or the name of a function.
func readToolChoice(data json.RawMessage) (word, name string, err error) {
	if len(data) == 0 || string(data) == "null" {
		return "auto", "", nil
	}
	if json.Unmarshal(data, &word) == nil {
		if word == "auto" || word == "none" || word == "required" {
			return word, "", nil
		}
	} else {
		var object struct {
			Function struct {
				Name string `json:"name"`
			} `json:"function"`
		}
		if json.Unmarshal(data, &object) == nil && object.Function.Name != "" {
			return "", object.Function.Name, nil
		}
	}
	return "", "", invalid("tool_choice", "tool_choice: expected auto, none, required or a function's name")
}

// responseConstraint is the constraint of a chat's answer; nil: any.
func responseConstraint(req *chatRequest, use toolUse) (*Constraint, error) {
	constraint, err := readFormat(req.ResponseFormat)
	if err != nil {
		return nil, err
	}
	if constraint == nil {
		constraint = req.constraint()
	}
	if len(use.forced) > 0 {
		if constraint != nil {
			return nil, invalid("response_format", "an answer cannot be structured output and a call of a tool")
		}
		constraint = &Constraint{Kind: "tool", Tools: use.forced}
	}
	return constraint, nil
}

// readFormat reads response_format.
func readFormat(data json.RawMessage) (*Constraint, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	var f struct {
		Type       string `json:"type"`
		JSONSchema *struct {
			Schema json.RawMessage `json:"schema"`
		} `json:"json_schema"`
	}
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, invalid("response_format", "response_format: expected an object with a type")
	}
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		return &Constraint{Kind: f.Type}, nil
	case "json_schema":
		if f.JSONSchema == nil || len(f.JSONSchema.Schema) == 0 {
			return nil, invalid("response_format", "response_format: json_schema has no schema")
		}
		return &Constraint{Kind: f.Type, Schema: f.JSONSchema.Schema}, nil
	}
	return nil, invalid("response_format", "response_format: type %.40q is not known; there are text, json_object and json_schema", f.Type)
}

// constraint is what a request names by a pattern or a grammar.
func (p *sampling) constraint() *Constraint {
	switch {
	case p.Regex != "":
		return &Constraint{Kind: "regex", Text: p.Regex}
	case p.Grammar != "":
		return &Constraint{Kind: "grammar", Text: p.Grammar}
	}
	return nil
}
