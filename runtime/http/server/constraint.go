//go:build unix

package server

import (
	"bytes"
	"encoding/json"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// Limits of a constraint: bytes, and number of texts in a choice.
const (
	maxSchema  = 256 << 10
	maxPattern = 64 << 10
	maxOptions = 1024
)

// structured holds the keys of a request for structured output: OpenAI's, vLLM's in
// both forms, and llama.cpp's.
type structured struct {
	ResponseFormat json.RawMessage    `json:"response_format"`           // structured output: type "text", "json_object" or "json_schema"
	Outputs        *structuredOutputs `json:"structured_outputs"`        // vLLM's structured output; one of its keys
	GuidedJSON     json.RawMessage    `json:"guided_json"`               // JSON Schema as an object or as text
	GuidedRegex    string             `json:"guided_regex"`              // regular expression that the whole answer matches
	GuidedChoice   []string           `json:"guided_choice"`             // the answer is one of these texts
	GuidedGrammar  string             `json:"guided_grammar"`            // grammar in GBNF
	GuidedTag      json.RawMessage    `json:"structural_tag"`            // refused: not supported
	GuidedSpace    *string            `json:"guided_whitespace_pattern"` // refused: not supported
	GuidedBackend  *string            `json:"guided_decoding_backend"`   // accepted without effect
	Grammar        string             `json:"grammar"`                   // grammar in GBNF (llama.cpp's name)
	JSONSchema     json.RawMessage    `json:"json_schema"`               // JSON Schema (llama.cpp's name)
}

// structuredOutputs is vLLM's structured_outputs object.
type structuredOutputs struct {
	JSON         json.RawMessage `json:"json"`                          // JSON Schema as an object or as text
	Regex        string          `json:"regex"`                         // regular expression that the whole answer matches
	Choice       []string        `json:"choice"`                        // the answer is one of these texts
	Grammar      string          `json:"grammar"`                       // grammar in GBNF (llama.cpp's name)
	JSONObject   bool            `json:"json_object"`                   // true: any JSON object
	Tag          json.RawMessage `json:"structural_tag"`                // refused: not supported
	Space        *string         `json:"whitespace_pattern"`            // refused: not supported
	NoSpace      bool            `json:"disable_any_whitespace"`        // refused unless false
	NoAdditional bool            `json:"disable_additional_properties"` // refused unless false
}

// constraint returns the constraint of the answer, or nil. A request may have one.
func (p *structured) constraint() (*Constraint, error) { return only(p.constraints()) }

// only returns the only constraint of a list, or nil.
func only(list []*Constraint, err error) (*Constraint, error) {
	switch {
	case err != nil:
		return nil, err
	case len(list) > 1:
		return nil, invalid(list[1].Key, "%s and %s both constrain the answer; leave one out", list[0].Key, list[1].Key)
	case len(list) == 1:
		return list[0], nil
	}
	return nil, nil
}

// constraints lists the constraints of all keys.
func (p *structured) constraints() (list []*Constraint, err error) {
	add := func(key string, c *Constraint, e error) {
		if err == nil {
			err = e
		}
		if c != nil {
			c.Key = key
			list = append(list, c)
		}
	}
	read := func(key string, made func(key string) (*Constraint, error)) {
		c, e := made(key)
		add(key, c, e)
	}
	read("response_format", func(string) (*Constraint, error) { return readFormat(p.ResponseFormat) })
	if o := p.Outputs; o != nil {
		const in = "structured_outputs."
		read(in+"json", schemaOf(o.JSON))
		read(in+"regex", textOf("regex", o.Regex))
		read(in+"choice", choiceOf(o.Choice))
		read(in+"grammar", textOf("grammar", o.Grammar))
		if o.JSONObject {
			add(in+"json_object", &Constraint{Kind: "json_object"}, nil)
		}
		add("", nil, refuseOption(in+"structural_tag", isNeutral(o.Tag, "")))
		add("", nil, refuseOption(in+"whitespace_pattern", o.Space == nil))
		add("", nil, refuseOption(in+"disable_any_whitespace", !o.NoSpace))
		add("", nil, refuseOption(in+"disable_additional_properties", !o.NoAdditional))
	}
	read("guided_json", schemaOf(p.GuidedJSON))
	read("guided_regex", textOf("regex", p.GuidedRegex))
	read("guided_choice", choiceOf(p.GuidedChoice))
	read("guided_grammar", textOf("grammar", p.GuidedGrammar))
	read("grammar", textOf("grammar", p.Grammar))
	read("json_schema", schemaOf(p.JSONSchema))
	add("", nil, refuseOption("structural_tag", isNeutral(p.GuidedTag, "")))
	add("", nil, refuseOption("guided_whitespace_pattern", p.GuidedSpace == nil))
	return list, err
}

// refuseOption returns an error for an option that is not supported, unless it is
// neutral.
func refuseOption(key string, neutral bool) error {
	if neutral {
		return nil
	}
	return invalid(key, "%s is not supported by this service; leave it out, or write what you need as a schema or a grammar", key)
}

// schemaOf reads a JSON Schema, given as an object or as text.
func schemaOf(data json.RawMessage) func(key string) (*Constraint, error) {
	return func(key string) (*Constraint, error) {
		if data = bytes.TrimSpace(data); len(data) == 0 || string(data) == "null" {
			return nil, nil
		}
		if data[0] == '"' {
			var text string
			if json.Unmarshal(data, &text) != nil || !json.Valid([]byte(text)) || depth([]byte(text)) > maxDepth {
				return nil, invalid(key, "%s: the text is not a JSON Schema", key)
			}
			data = []byte(text)
		}
		if len(data) > maxSchema {
			return nil, invalid(key, "%s: expected a schema of at most %d bytes", key, maxSchema)
		}
		return &Constraint{Kind: "json_schema", Schema: data}, nil
	}
}

// textOf reads a regular expression or a grammar.
func textOf(kind, text string) func(key string) (*Constraint, error) {
	return func(key string) (*Constraint, error) {
		switch {
		case text == "":
			return nil, nil
		case len(text) > maxPattern:
			return nil, invalid(key, "%s: expected at most %d bytes", key, maxPattern)
		}
		return &Constraint{Kind: kind, Text: text}, nil
	}
}

// choiceOf returns a grammar that matches one of the texts in list.
func choiceOf(list []string) func(key string) (*Constraint, error) {
	return func(key string) (*Constraint, error) {
		if list == nil {
			return nil, nil
		}
		bytes := 0
		quoted := make([]string, len(list))
		for i, text := range list {
			bytes += len(text)
			quoted[i] = `"` + grammarEscapes.Replace(text) + `"`
		}
		if len(list) == 0 || len(list) > maxOptions || bytes > maxPattern {
			return nil, invalid(key, "%s: expected between 1 and %d texts of at most %d bytes together", key, maxOptions, maxPattern)
		}
		return &Constraint{Kind: "grammar", Text: "root ::= " + strings.Join(quoted, " | ")}, nil
	}
}

// grammarEscapes escapes a text for a literal of a grammar.
var grammarEscapes = strings.NewReplacer(`\`, `\\`, `"`, `\"`, "\n", `\n`, "\r", `\r`, "\t", `\t`)

// A toolUse is the result of tools and tool_choice.
type toolUse struct {
	tools  []json.RawMessage // for the chat template
	known  []Tool            // those of them that may be called
	forced []Tool            // one of them must be called; empty: the model decides
}

// A toolDefinition is an entry of tools; the chat template gets all its keys.
type toolDefinition struct {
	Type     string `json:"type"` // "function"
	Function struct {
		Name       string          `json:"name"`       // name of the function
		Parameters json.RawMessage `json:"parameters"` // JSON Schema of the arguments
		Strict     bool            `json:"strict"`     // true: refuse a schema that cannot be enforced
	} `json:"function"` // name, description and parameters
}

// toolChoice reads tools and tool_choice.
func (s *Server) toolChoice(req *chatRequest) (toolUse, error) {
	if len(req.Tools) > maxTools {
		return toolUse{}, invalid("tools", "tools: expected at most %d", maxTools)
	}
	list, bytes := make([]Tool, len(req.Tools)), 0
	for i, data := range req.Tools {
		if bytes += len(data); bytes > maxToolBytes {
			return toolUse{}, invalid("tools", "tools: expected at most %d bytes", maxToolBytes)
		}
		var t toolDefinition
		if err := json.Unmarshal(data, &t); err != nil || t.Function.Name == "" || t.Type != "" && t.Type != "function" {
			return toolUse{}, invalid("tools", "tools[%d]: expected {\"type\": \"function\", \"function\": {\"name\": …, \"parameters\": …}}", i)
		}
		if err := checkName("function.name", t.Function.Name); err != nil {
			return toolUse{}, invalid("tools", "tools[%d]%v", i, err)
		}
		req.Tools[i] = chat.WithoutNulls(data, "function")
		list[i] = Tool{t.Function.Name, t.Function.Parameters, t.Function.Strict}
	}
	if len(req.ToolChoice) > maxToolBytes {
		return toolUse{}, invalid("tool_choice", "tool_choice: expected at most %d bytes", maxToolBytes)
	}
	choice, err := readToolChoice(req.ToolChoice)
	if err != nil {
		return toolUse{}, err
	}
	if len(list) == 0 {
		if choice.mode == "required" {
			return toolUse{}, invalid("tool_choice", "tool_choice: there are no tools")
		}
		return toolUse{}, nil
	}
	tools := req.Tools
	if choice.names != nil {
		if tools, list, err = choice.named(tools, list); err != nil {
			return toolUse{}, err
		}
	}
	switch choice.mode {
	case "none":
		return toolUse{}, nil
	case "required":
		return toolUse{tools: tools, forced: list}, nil
	}
	return toolUse{tools: tools, known: list}, nil
}

// A toolPick is a tool_choice.
type toolPick struct {
	mode  string   // "auto", "none" or "required"
	names []string // of the tools that may be called; nil: all
}

// A toolReference names a function in tool_choice.
type toolReference struct {
	Type     string `json:"type"` // "function"
	Function struct {
		Name string `json:"name"`
	} `json:"function"`
}

// A chatToolChoice is a tool_choice that is an object.
type chatToolChoice struct {
	toolReference
	Allowed struct {
		Mode  string          `json:"mode"`  // "auto" or "required"
		Tools []toolReference `json:"tools"` // those that may be called
	} `json:"allowed_tools"` // of type "allowed_tools"
}

func readToolChoice(data json.RawMessage) (toolPick, error) {
	if isNeutral(data, "") {
		return toolPick{mode: "auto"}, nil
	}
	pick := toolPick{mode: "required"}
	var object chatToolChoice
	if json.Unmarshal(data, &pick.mode) != nil {
		if err := json.Unmarshal(data, &object); err != nil {
			return pick, invalid("tool_choice", "tool_choice%v", inside(err))
		}
		pick.names = []string{object.Function.Name}
		if object.Type == "allowed_tools" {
			pick.mode, pick.names = object.Allowed.Mode, []string{}
			for _, t := range object.Allowed.Tools {
				pick.names = append(pick.names, t.Function.Name)
			}
		}
	}
	if pick.mode != "auto" && pick.mode != "none" && pick.mode != "required" || pick.names != nil && len(pick.names) == 0 || slices.Contains(pick.names, "") {
		return pick, invalid("tool_choice", "tool_choice: expected auto, none, required, a function's name, or allowed_tools with a mode and tools")
	}
	return pick, nil
}

// named returns the tools that the choice names.
func (p toolPick) named(tools []json.RawMessage, list []Tool) (allowed []json.RawMessage, known []Tool, err error) {
	for _, name := range p.names {
		if !slices.ContainsFunc(list, func(t Tool) bool { return t.Name == name }) {
			return nil, nil, invalid("tool_choice", "tool_choice: there is no tool %.40q", name)
		}
	}
	for i, t := range list {
		if slices.Contains(p.names, t.Name) {
			allowed, known = append(allowed, tools[i]), append(known, t)
		}
	}
	return allowed, known, nil
}

// responseConstraint returns the constraint of a chat answer, or nil. A response format
// is that of a text. So it has no effect on a required tool call, and where the model
// may call a tool, it does so instead of an answer in the format.
func responseConstraint(req *chatRequest, use toolUse) (*Constraint, error) {
	list, err := req.constraints()
	if err != nil || len(use.forced) == 0 {
		c, err := only(list, err)
		if c != nil && c.Key == "response_format" && len(use.known) > 0 {
			c = &Constraint{Kind: "tool", Key: c.Key, Tools: use.known, Schema: c.Schema}
			if c.Schema == nil {
				c.Schema = anyObject
			}
		}
		return c, err
	}
	for _, c := range list {
		if c.Key != "response_format" {
			return nil, invalid(c.Key, "%s constrains the whole answer, and tool_choice requires a tool call; leave one out", c.Key)
		}
	}
	return &Constraint{Kind: "tool", Key: "tools", Tools: use.forced}, nil
}

// readFormat reads response_format.
func readFormat(data json.RawMessage) (*Constraint, error) {
	if len(data) == 0 || string(data) == "null" {
		return nil, nil
	}
	if len(data) > maxSchema {
		return nil, invalid("response_format", "response_format: expected at most %d bytes", maxSchema)
	}
	var f responseFormat
	if err := json.Unmarshal(data, &f); err != nil {
		return nil, invalid("response_format", "response_format: expected an object with a type")
	}
	schema := f.Schema
	switch f.Type {
	case "text":
		return nil, nil
	case "json_object":
		if isNeutral(schema, "{}") {
			return &Constraint{Kind: f.Type}, nil
		}
	case "json_schema":
		if f.JSONSchema != nil && !isNeutral(f.JSONSchema.Schema, "") {
			schema = f.JSONSchema.Schema
		}
		if isNeutral(schema, "") {
			return nil, invalid("response_format", "response_format: json_schema has no schema")
		}
	default:
		return nil, invalid("response_format", "response_format: unknown type %.40q; expected text, json_object or json_schema", f.Type)
	}
	return schemaOf(schema)("response_format")
}

// anyObject is the schema of json_object.
var anyObject = []byte(`{"type":"object"}`)

// A responseFormat is response_format. A schema next to the type is llama.cpp's form.
// Schemas of answers are always enforced strictly, so "strict" has no effect.
type responseFormat struct {
	Type       string          `json:"type"`   // "text", "json_object" or "json_schema"
	Schema     json.RawMessage `json:"schema"` // JSON Schema of the answer
	JSONSchema *struct {
		Schema json.RawMessage `json:"schema"` // JSON Schema of the answer
	} `json:"json_schema"` // object with the JSON Schema as `schema`
}
