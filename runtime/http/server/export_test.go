//go:build unix

package server

import (
	"encoding/json"
	"maps"
	"reflect"
	"regexp"
	"slices"
	"strings"
	"time"

	"github.com/iflowc/iflowc/runtime/kit/metrics"
	"github.com/iflowc/iflowc/runtime/text/chat"
)

// A Field is a key of a request. Nested keys have names like "header.fn" and
// "messages[].role".
type Field struct {
	Name   string
	Type   string // JSON type
	Source string // Struct.Field with the comment
	Tag    reflect.StructTag
}

// RequestFields lists the keys of each endpoint's requests by name, including those
// that are refused as unsupported.
func RequestFields() map[string][]Field {
	inner := map[string]reflect.Type{
		"tools[]": reflect.TypeFor[toolDefinition](), "response_format": reflect.TypeFor[responseFormat](), "messages[]": reflect.TypeFor[chat.Message](),
		"input_extra[]": reflect.TypeFor[infillFile](),
	}
	inners := map[string]map[string]reflect.Type{
		"responses":   {"tools[]": reflect.TypeFor[responseTool](), "input[]": reflect.TypeFor[inputItem](), "input[].content[]": reflect.TypeFor[textPart]()},
		"messages":    {"tools[]": reflect.TypeFor[messageTool](), "messages[]": reflect.TypeFor[messageInput](), "messages[].content[]": reflect.TypeFor[messageBlock]()},
		"ollama chat": {"tools[]": reflect.TypeFor[toolDefinition](), "messages[]": reflect.TypeFor[ollamaMessage](), "messages[].tool_calls[]": reflect.TypeFor[ollamaCall]()},
	}
	all := map[string][]Field{}
	for endpoint, kind := range map[string]reflect.Type{
		"chat": reflect.TypeFor[chatRequest](), "completions": reflect.TypeFor[completionRequest](), "embeddings": reflect.TypeFor[embeddingRequest](),
		"infill": reflect.TypeFor[infillRequest](), "rerank": reflect.TypeFor[rerankRequest](), "score": reflect.TypeFor[scoreRequest](),
		"tokenize": reflect.TypeFor[tokenizeRequest](), "detokenize": reflect.TypeFor[detokenizeRequest](), "translate": reflect.TypeFor[translateRequest](),
		"fill": reflect.TypeFor[fillRequest](), "inferflow": reflect.TypeFor[inferflowRequest](),
		"responses": reflect.TypeFor[responsesRequest](), "messages": reflect.TypeFor[messagesRequest](),
		"ollama chat": reflect.TypeFor[ollamaChatRequest](), "ollama generate": reflect.TypeFor[ollamaGenerateRequest](), "ollama show": reflect.TypeFor[ollamaShowRequest](), "ollama embed": reflect.TypeFor[ollamaEmbedRequest](),
		"ollama embeddings": reflect.TypeFor[ollamaEmbeddingsRequest](), "ollama pull": reflect.TypeFor[ollamaPullRequest](),
		"load adapter": reflect.TypeFor[loadAdapterRequest](), "unload adapter": reflect.TypeFor[unloadAdapterRequest](),
	} {
		nested := maps.Clone(inner)
		maps.Copy(nested, inners[endpoint])
		list := fields(kind, "", nested)
		slices.SortStableFunc(list, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
		all[endpoint] = slices.CompactFunc(list, func(a, b Field) bool { return a.Name == b.Name })
	}
	return all
}

// VLLMNames lists the metrics that have names of vLLM.
func VLLMNames() []metrics.Alias { return vllmNames }

// SamplingFields lists the keys that every request has that generates text by sampling.
func SamplingFields() []Field {
	list := fields(reflect.TypeFor[sampling](), "", map[string]reflect.Type{"response_format": reflect.TypeFor[responseFormat]()})
	slices.SortStableFunc(list, func(a, b Field) int { return strings.Compare(a.Name, b.Name) })
	return list
}

// UnsupportedFields lists the keys that are refused as unsupported.
func UnsupportedFields() (list []string) {
	for _, f := range Unsupported() {
		list = append(list, f.Name)
	}
	return list
}

// Unsupported lists the keys that are refused as unsupported, with their tags.
func Unsupported() (list []Field) {
	for _, kind := range []reflect.Type{reflect.TypeFor[unsupported](), reflect.TypeFor[unsupportedChat](), reflect.TypeFor[unsupportedText](), reflect.TypeFor[unsupportedScore](), reflect.TypeFor[unsupportedResponses](), reflect.TypeFor[unsupportedMessages]()} {
		list = append(list, fields(kind, "", nil)...)
	}
	return list
}

// Routes lists the patterns of the endpoints in order.
func Routes() (list []string) {
	for _, r := range (&Server{}).routes() {
		list = append(list, r.pattern)
	}
	return list
}

// fields lists the keys of a struct before those of embedded structs, the order of
// precedence in JSON decoding.
func fields(kind reflect.Type, prefix string, inner map[string]reflect.Type) (list []Field) {
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			defer func() { list = append(list, fields(f.Type, prefix, inner)...) }()
			continue
		case !f.IsExported() || name == "-" || f.Type == reflect.TypeFor[[]chat.Field]():
			continue
		case name == "":
			name = strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(f.Name, "${1}_$2"))
		}
		name = prefix + name
		list = append(list, Field{name, jsonType(f.Type), kind.Name() + "." + f.Name, f.Tag})
		t := f.Type
		for t.Kind() == reflect.Pointer {
			t = t.Elem()
		}
		if t.Kind() == reflect.Struct {
			list = append(list, fields(t, name+".", inner)...)
		}
		for _, suffix := range []string{"", "[]"} {
			if t, ok := inner[name+suffix]; ok {
				list = append(list, fields(t, name+suffix+".", inner)...)
			}
		}
	}
	return list
}

// jsonType returns the JSON type of a Go type.
func jsonType(t reflect.Type) string {
	switch t {
	case reflect.TypeFor[stops]():
		return "string or array"
	case reflect.TypeFor[prompts](), reflect.TypeFor[documents]():
		return "string or array"
	case reflect.TypeFor[json.RawMessage]():
		return "any"
	}
	switch t.Kind() {
	case reflect.Pointer:
		return jsonType(t.Elem())
	case reflect.String:
		return "string"
	case reflect.Bool:
		return "boolean"
	case reflect.Int, reflect.Int32, reflect.Int64:
		return "integer"
	case reflect.Float64:
		return "number"
	case reflect.Slice:
		return "array"
	case reflect.Map, reflect.Struct:
		return "object"
	}
	return "any"
}

// SetPace changes the longest silence of streams.
func SetPace(c *Config, opening, silence time.Duration) { c.pace = pace{opening, silence} }
