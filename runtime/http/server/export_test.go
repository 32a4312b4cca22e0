//go:build unix

package server

import (
	"reflect"
	"regexp"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/text/chat"
)

// RequestFields lists the keys of each endpoint's requests, nested ones as
// "header.fn" and "messages[].role".
func RequestFields() map[string][]string {
	inner := map[string]reflect.Type{
		"tools[]": reflect.TypeFor[toolDefinition](), "response_format": reflect.TypeFor[responseFormat](), "messages[]": reflect.TypeFor[chat.Message](),
	}
	all := map[string][]string{}
	for endpoint, kind := range map[string]reflect.Type{
		"chat": reflect.TypeFor[chatRequest](), "completions": reflect.TypeFor[completionRequest](), "embeddings": reflect.TypeFor[embeddingRequest](),
		"tokenize": reflect.TypeFor[tokenizeRequest](), "detokenize": reflect.TypeFor[detokenizeRequest](), "translate": reflect.TypeFor[translateRequest](),
		"fill": reflect.TypeFor[fillRequest](), "inferflow": reflect.TypeFor[nativeRequest](),
	} {
		list := fields(kind, "", inner)
		slices.Sort(list)
		all[endpoint] = slices.Compact(list)
	}
	return all
}

// UnsupportedFields are the keys that are refused.
func UnsupportedFields() (list []string) {
	for _, kind := range []reflect.Type{reflect.TypeFor[unsupported](), reflect.TypeFor[unsupportedChat](), reflect.TypeFor[unsupportedText]()} {
		list = append(list, fields(kind, "", nil)...)
	}
	return list
}

// fields lists the keys of a struct.
func fields(kind reflect.Type, prefix string, inner map[string]reflect.Type) (list []string) {
	for i := range kind.NumField() {
		f := kind.Field(i)
		name, _, _ := strings.Cut(f.Tag.Get("json"), ",")
		switch {
		case f.Anonymous:
			list = append(list, fields(f.Type, prefix, inner)...)
			continue
		case !f.IsExported() || f.Type == reflect.TypeFor[[]chat.Field]():
			continue
		case name == "":
			name = strings.ToLower(regexp.MustCompile(`([a-z])([A-Z])`).ReplaceAllString(f.Name, "${1}_$2"))
		}
		name = prefix + name
		list = append(list, name)
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
