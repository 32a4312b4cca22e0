package grammar

import (
	"fmt"
	"slices"
	"strings"
	"testing"
)

// callCases are schemas of arguments, with arguments that a call may have and others.
var callCases = []schemaCase{
	{``, []string{`{}`}, []string{`{"a":1}`}},
	{`null`, []string{`{}`}, []string{`{"a":1}`}},
	{`{}`, []string{`{}`}, []string{`{"a":1}`}},
	{`true`, []string{`{}`}, []string{`{"a":1}`}},
	{`{"type":"object","properties":{}}`, []string{`{}`}, []string{`{"a":1}`, `null`}},
	{`{"type":["object","null"],"nullable":true}`, []string{`{}`}, []string{`null`}},
	{`{"type":"object","properties":{"a":{"type":"integer"}},"required":["a"]}`, []string{`{"a":1}`}, []string{`{"a":1,"type":"integer"}`, `{}`}},
	{`{"type":"object","properties":{"a":true},"required":["b"]}`, []string{`{"b":1}`, `{"a":1,"b":2}`}, []string{`{"b":1,"c":1}`, `{"a":1}`}},
	{`{"type":"object","properties":{"a":{"type":"object"}}}`, []string{`{"a":{"x":1}}`}, []string{`{"b":1}`}},
	{`{"$ref":"#/$defs/x","$defs":{"x":{"type":"object","properties":{"a":{"$ref":"#/$defs/x"}}}}}`, []string{`{"a":{"x":1}}`, `{"a":{"a":{"q":1}}}`}, []string{`{"b":1}`}},
	{`{"anyOf":[{"properties":{"a":true}},{"properties":{"b":true}}]}`, []string{`{"a":1}`, `{"b":1}`, `{}`}, []string{`{"c":1}`}},
	{`{"allOf":[{"properties":{"a":true}},{"properties":{"b":true}}]}`, []string{`{"a":1,"b":1}`}, []string{`{"c":1}`}},
	{`{"oneOf":[{"properties":{"k":{"const":"a"},"x":true},"required":["k"]},{"properties":{"k":{"const":"b"},"y":true},"required":["k"]}]}`, []string{`{"k":"a","x":1}`, `{"k":"b","y":1}`}, []string{`{"k":"a","y":1}`}},
	{`{"properties":{"a":{"type":"string"}},"if":{"properties":{"a":{"const":"x"}},"required":["a"]},"then":{"properties":{"b":true},"required":["b"]}}`, []string{`{"a":"x","b":1}`, `{"a":"y"}`}, []string{`{"a":"x"}`, `{"a":"y","c":1}`}},
	{`{"properties":{"a":true},"dependentSchemas":{"a":{"properties":{"b":{"type":"integer"}}}}}`, []string{`{"a":1,"b":1}`}, []string{`{"a":1,"b":""}`, `{"c":1}`}},
	{`{"type":"object","additionalProperties":true,"properties":{"a":true}}`, []string{`{"a":1,"b":1}`, `{}`}, nil},
	{`{"type":"object","additionalProperties":{"type":"integer"},"properties":{"a":{"type":"string"}}}`, []string{`{"a":"x","b":2}`}, []string{`{"b":"x"}`}},
	{`{"type":"object","additionalProperties":false,"properties":{"a":true}}`, []string{`{"a":1}`}, []string{`{"b":1}`}},
	{`{"allOf":[{"additionalProperties":true}],"properties":{"a":true}}`, []string{`{"b":1}`}, nil},
	{`{"type":"object","patternProperties":{"^x":{"type":"integer"}}}`, []string{`{"x1":1}`, `{}`}, []string{`{"y":1}`, `{"x":""}`}},
	{`{"type":"object","unevaluatedProperties":true,"properties":{"a":true}}`, []string{`{"b":1}`}, nil},
	{`{"type":"object","unevaluatedProperties":false,"properties":{"a":true}}`, []string{`{"a":1}`}, []string{`{"b":1}`}},
	{`{"type":"object","minProperties":1}`, []string{`{"x":1}`}, []string{`{}`}},
	{`{"type":"object","propertyNames":{"enum":["a","b"]}}`, []string{`{"a":1,"b":2}`, `{}`}, []string{`{"c":1}`}},
	{`{"const":{"a":1}}`, []string{`{"a":1}`}, []string{`{}`}},
}

// TestDeclaredArguments checks that a call has only arguments that its schema declares.
func TestDeclaredArguments(t *testing.T) {
	t.Parallel()
	format := CallFormat{Open: "<", Shut: ">", Between: ":"}
	for _, c := range callCases {
		g, err := parseCall(format, []Tool{{Name: "f", Parameters: []byte(c.schema), Strict: true}}, nil)
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		for want, list := range map[bool][]string{true: c.good, false: c.bad} {
			for _, text := range list {
				if got, err := g.Match("<f:" + text + ">"); got != want || err != nil {
					t.Errorf("%s: %s: match %v, want %v, %v", c.schema, text, got, want, err)
				}
			}
		}
	}
}

// TestOddTool checks that a schema that cannot be enforced changes nothing for other
// tools, and that the names of its arguments stay.
func TestOddTool(t *testing.T) {
	t.Parallel()
	formats := []struct {
		CallFormat
		good, odd, other string // arguments of both tools, and undeclared ones
	}{
		{CallFormat{Open: "<", Shut: ">", Name: "name", Arguments: "arguments"}, `{"a":1}`, `{"b":1}`, `{"c":1}`},
		{CallFormat{Open: "<", Shut: ">", Between: ":", Argument: [3]string{"<p=", ">", "</p>"}}, `<p=a>1</p>`, `<p=b>1</p>`, `<p=c>1</p>`},
		{CallFormat{Open: "<", Shut: ">", Between: "(", End: ")", Python: true}, `a=1`, `b=1`, `c=1`},
	}
	for _, schema := range []string{
		`{"properties":{"b":{"type":"string","pattern":"(a)\\1"}},"required":["b"]}`, `{"properties":{"b":{"$ref":"http://x/y"}}}`, `{"properties":{"b":{"enum":["x"],"type":"integer"}},"required":["b"]}`,
		`{"properties":{"b":{"minItems":100000}}}`, `{"properties":{"b":{"$recursiveRef":"#"}}}`, `{"properties":{"b":{"type":"string","pattern":"` + strings.Repeat("a{1000}", 300) + `"}}}`,
	} {
		tools := []Tool{{Name: "odd", Parameters: []byte(schema)}, {Name: "good", Parameters: []byte(`{"properties":{"a":{"type":"integer"}},"required":["a"]}`)}}
		for i, f := range formats {
			if i > 0 && len(schema) > 1000 { // one is slow enough
				break
			}
			g, err := parseCall(f.CallFormat, tools, nil)
			if err != nil {
				t.Errorf("%.80s, format %d: %v", schema, i, err)
				continue
			}
			if list := g.Warnings(); len(list) != 1 || !strings.HasPrefix(list[0], "schema at /tools/odd: only the names") {
				t.Errorf("%.80s, format %d: %q", schema, i, list)
			}
			for _, c := range []struct {
				name, arguments string
				want            bool
			}{{"good", f.good, true}, {"good", f.odd, false}, {"odd", f.odd, true}, {"odd", f.other, false}} {
				text := "<" + c.name + f.Between + c.arguments + f.End + ">"
				if f.Name != "" {
					text = fmt.Sprintf(`<{"name":%q,"arguments":%s}>`, c.name, c.arguments)
				}
				if got, err := g.Match(text); got != c.want || err != nil {
					t.Errorf("%.80s: %s: match %v, %v", schema, text, got, err)
				}
			}
			tools := slices.Clone(tools)
			tools[0].Strict = true
			if _, err := parseCall(f.CallFormat, tools, nil); err == nil {
				t.Errorf("%.80s, format %d: a strict tool is accepted", schema, i)
			}
		}
	}
}

// TestWarnings checks that odd keywords are ignored with a warning that names them, and
// annotations without one.
func TestWarnings(t *testing.T) {
	t.Parallel()
	for keyword, want := range map[string]string{
		`"required":true`: "/a/required: expected a list of names", `"type":"any"`: "/a/type: expected one of object", `"type":null`: "/a/type", `"type":["string","any"]`: "/a/type", `"type":[]`: "/a/type",
		`"enum":null`: "/a/enum: expected a list of values", `"enum":[]`: "/a/enum", `"enum":{"a":1}`: "/a/enum", `"minLength":"3"`: "/a/minLength", `"maxLength":-1`: "/a/maxLength", `"maxItems":2.5`: "/a/maxItems",
		`"minimum":"0"`: "/a/minimum", `"multipleOf":0`: "/a/multipleOf", `"multipleOf":-2`: "/a/multipleOf", `"exclusiveMinimum":null`: "/a/exclusiveMinimum", `"pattern":3`: "/a/pattern", `"format":null`: "/a/format",
		`"properties":[]`: "/a/properties", `"properties":{"x":"string"}`: "/a/properties/x: expected an object, true or false", `"items":"string"`: "/a/items", `"items":[1]`: "/a/items", `"prefixItems":{}`: "/a/prefixItems",
		`"prefixItems":[true],"items":[true]`: "/a/items", `"anyOf":[]`: "/a/anyOf", `"allOf":{}`: "/a/allOf", `"oneOf":["a"]`: "/a/oneOf", `"not":null`: "/a/not", `"additionalProperties":null`: "/a/additionalProperties",
		`"uniqueItems":"true"`: "/a/uniqueItems", `"nullable":"yes"`: "/a/nullable", `"$ref":3`: "/a/$ref", `"dependentRequired":{"a":3}`: "/a/dependentRequired/a", `"required":["a",1]`: "/a/required",
		`"maxlength":1`: "/a/maxlength: this is no keyword and was ignored; maxLength is one", `"requried":["a"]`: "required is one", `"minimun":3`: "minimum is one", `"min_length":3`: "minLength is one", `"max_items":3`: "maxItems is one", `"additionalproperty":false`: "",
		`"markdownDescription":"x"`: "", `"errorMessage":"x"`: "", `"enumNames":["x"]`: "", `"optional":true`: "", `"x-y":1`: "", `"nullable":true`: "", `"$vocabulary":{}`: "", `"widget":"x"`: "", `"note":"x"`: "", `"propertyOrder":1`: "",
		`"maxLength":6700000`: "", `"type":"string","format":"unheard-of"`: "",
	} {
		g, err := ParseSchema([]byte(`{"properties":{"a":{` + keyword + `}}}`))
		if err != nil {
			t.Errorf("%s: %v", keyword, err)
			continue
		}
		if list := g.Warnings(); want == "" && list != nil || want != "" && (len(list) != 1 || !strings.Contains(list[0], want)) {
			t.Errorf("%s: %q, want %s", keyword, list, want)
		}
		for _, text := range []string{`{"a":"abc"}`, `{"a":null}`} {
			if ok, err := g.Match(text); (!ok || err != nil) && !strings.Contains(keyword, `"string"`) && !strings.Contains(keyword, "ength") {
				t.Errorf("%s: %s is refused: %v", keyword, text, err)
			}
		}
	}
	g, err := ParseSchema([]byte(many(60, `{"properties":{%s}}`, `"a%":{"requird":[],"title":"%"}`)))
	if err != nil || len(g.Warnings()) != maxWarnings {
		t.Errorf("%d warnings, %v", len(g.Warnings()), err)
	}
}
