package deploycheck

import (
	"fmt"
	"regexp"
	"slices"
)

// A schema is the part of an OpenAPI v3 schema that custom resources use.
type schema struct {
	Type       string             `json:"type"`
	Properties map[string]*schema `json:"properties"`
	Required   []string           `json:"required"`
	Items      *schema            `json:"items"`
	Additional *schema            `json:"additionalProperties"`
	Enum       []any              `json:"enum"`
	Minimum    *float64           `json:"minimum"`
	Maximum    *float64           `json:"maximum"`
	Pattern    string             `json:"pattern"`
	IntOrText  bool               `json:"x-kubernetes-int-or-string"`
}

// check lists what is wrong with a value that stands at a path.
func (s *schema) check(path string, v any) (wrong []string) {
	say := func(format string, args ...any) {
		wrong = append(wrong, path+": "+fmt.Sprintf(format, args...))
	}
	if len(s.Enum) > 0 && !slices.Contains(s.Enum, v) {
		say("%v is none of %v", v, s.Enum)
	}
	switch v := v.(type) {
	case map[string]any:
		if s.Type != "object" {
			say("an object, expected %s", s.Type)
			return wrong
		}
		return append(wrong, s.checkObject(path, v)...)
	case []any:
		if s.Type != "array" {
			say("a list, expected %s", s.Type)
		} else if s.Items != nil {
			for i, x := range v {
				wrong = append(wrong, s.Items.check(fmt.Sprintf("%s[%d]", path, i), x)...)
			}
		}
	case string:
		if s.Type != "string" && !s.IntOrText {
			say("the text %q, expected %s", v, s.Type)
		}
		if s.Pattern != "" && !s.IntOrText && !regexp.MustCompile(s.Pattern).MatchString(v) {
			say("%q does not match %s", v, s.Pattern)
		}
	case int:
		if s.Type != "integer" && s.Type != "number" && !s.IntOrText {
			say("the number %d, expected %s", v, s.Type)
		}
		if s.Minimum != nil && float64(v) < *s.Minimum || s.Maximum != nil && float64(v) > *s.Maximum {
			say("%d is out of range", v)
		}
	case bool:
		if s.Type != "boolean" {
			say("%v, expected %s", v, s.Type)
		}
	default:
		say("%T is no value of a manifest", v)
	}
	return wrong
}

func (s *schema) checkObject(path string, v map[string]any) (wrong []string) {
	for _, name := range s.Required {
		if _, ok := v[name]; !ok {
			wrong = append(wrong, path+": "+name+" is missing")
		}
	}
	for name, x := range v {
		switch p := s.Properties[name]; {
		case p != nil:
			wrong = append(wrong, p.check(path+"."+name, x)...)
		case s.Additional != nil:
			wrong = append(wrong, s.Additional.check(path+"."+name, x)...)
		case s.Properties != nil:
			wrong = append(wrong, path+": unknown field "+name)
		}
	}
	return wrong
}
