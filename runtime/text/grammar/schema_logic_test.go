package grammar

import (
	"fmt"
	"strings"
	"testing"
)

// logicCases are schemas whose keywords are combined by Boolean operations.
var logicCases = []schemaCase{
	{`{"type":"string","pattern":"a","maxLength":3}`, []string{`"a"`, `"bab"`}, []string{`"bbb"`, `"abcd"`}},
	{`{"allOf":[{"pattern":"^a"},{"pattern":"b$"},{"maxLength":4}],"type":"string"}`, []string{`"ab"`, `"axxb"`}, []string{`"a"`, `"axxxb"`, `"ba"`}},
	{`{"type":"string","format":"date","pattern":"^2024-02-\\d\\d$"}`, []string{`"2024-02-29"`}, []string{`"2024-02-30"`, `"2023-02-01"`}},
	{`{"type":"string","format":"email","maxLength":7}`, []string{`"a@b.c"`, `"a@b.cde"`}, []string{`"a@b.cdef"`, `"ab"`}},
	{`{"type":"string","format":"uri","maxLength":4096}`, []string{`"http://a.b/c?d#e"`}, []string{`"a b"`}},
	{`{"type":"string","format":"iri","maxLength":2083}`, []string{`"http://é.b/ü?d#e"`}, []string{`"é b"`, `"http://a.b/` + strings.Repeat("é", 2073) + `"`}},
	{`{"type":"string","format":"date","enum":["x","2024-01-01"]}`, []string{`"2024-01-01"`}, []string{`"x"`}},
	{`{"type":"string","pattern":"^(?!^[-+.]*$)[+-]?0*\\d*\\.?\\d*$"}`, []string{`"1"`, `"-0.5"`, `".5"`}, []string{`"."`, `"-"`, `"+."`, `""`, `"1.2.3"`}},
	{`{"type":"string","pattern":"^(?=.{1,5}$)[a-z]+(?:-[a-z]+)*$"}`, []string{`"a-b"`, `"abcde"`}, []string{`"abc-de"`, `"-a"`}},
	{`{"type":"string","pattern":"^(?:(?!ab).)*$"}`, []string{`"ba"`, `""`, `"b a"`}, []string{`"ab"`, `"xaby"`}},
	{`{"type":"string","pattern":"(?<!a)b"}`, []string{`"b"`, `"cb"`}, []string{`"ab"`, `"a"`}},
	{`{"type":"string","pattern":"\\bcat\\b"}`, []string{`"cat"`, `"a cat."`}, []string{`"cats"`, `"bobcat"`, `"écat"`}},
	{`{"type":"string","not":{"pattern":"^\\d"}}`, []string{`"a1"`, `""`}, []string{`"1a"`, `"٣"`}},
	{`{"type":"string","not":{"enum":["a","bc"]}}`, []string{`"b"`, `"abc"`, `""`}, []string{`"a"`, `"bc"`}},
	{`{"type":"string","not":{"minLength":2}}`, []string{`""`, `"é"`}, []string{`"ab"`}},
	{`{"oneOf":[{"type":"integer"},{"type":"number"}]}`, []string{`1.5`, `-0.25`}, []string{`1`, `1.0`, `"a"`}},
	{`{"oneOf":[{"type":"boolean"},{"const":true}]}`, []string{`false`}, []string{`true`}},
	{`{"oneOf":[{"const":"x"},{"type":"string","format":"uuid"}]}`, []string{`"123e4567-e89b-12d3-a456-426614174000"`}, []string{`"y"`}},
	{`{"$ref":"#/$defs/r","$defs":{"r":{"oneOf":[{"type":["null","boolean"]},{"type":"array","items":{"$ref":"#/$defs/r"},"minItems":1},{"type":"array","items":{"type":"null"},"minItems":1}]}}}`,
		[]string{`null`, `[[true,null],null]`}, []string{`[null]`, `[[null]]`, `[1]`}},
	{`{"properties":{"a":{"oneOf":[{"required":["a"]},{"required":["b"]}],"type":"object"}},"type":"object"}`, []string{`{"a":{"a":1}}`, `{"a":{"b":1}}`}, []string{`{"a":{}}`, `{"a":{"a":1,"b":1}}`}},
	{`{"type":"number","minimum":1,"multipleOf":3}`, []string{`3`, `12`}, []string{`0`, `1`, `-3`, `4`}},
	{`{"type":"number","minimum":0,"maximum":1,"multipleOf":0.25}`, []string{`0`, `0.25`, `0.5`, `0.75`, `1`, `0.50`}, []string{`0.3`, `1.25`, `-0.25`}},
	{`{"type":"integer","exclusiveMinimum":10,"maximum":100,"multipleOf":7,"not":{"multipleOf":2}}`, []string{`21`, `35`, `91`}, []string{`14`, `7`, `105`, `22`}},
	{`{"type":"number","minimum":0,"maximum":1e-38,"multipleOf":4e-40,"not":{"multipleOf":8e-40}}`, []string{`0.0000000000000000000000000000000000000004`}, []string{`0`, `0.0000000000000000000000000000000000000008`}},
	{`{"type":"integer","minimum":0,"maximum":5000000,"multipleOf":1000000}`, []string{`0`, `5000000`}, []string{`500000`, `6000000`}},
	{`{"type":"integer","not":{"enum":[1,3]},"minimum":0,"maximum":4}`, []string{`0`, `2`, `4`}, []string{`1`, `3`, `5`}},
	{`{"if":{"properties":{"k":{"const":"a"}},"required":["k"]},"then":{"required":["x"]},"else":{"required":["y"]},"type":"object","properties":{"k":{"type":"string"},"x":{},"y":{}}}`,
		[]string{`{"k":"a","x":1}`, `{"k":"b","y":1}`, `{"y":1}`}, []string{`{"k":"a"}`, `{"k":"a","y":1}`, `{}`}},
	{manyIfs(), []string{`{"k":"v7","a7":1}`, `{"k":"x"}`}, []string{`{"k":"v7","a7":"1"}`, `{"k":"v7"}`}},
	{`{"$ref":"#/$defs/t","$defs":{"t":{"oneOf":[{"type":"object","properties":{"k":{"const":1},"c":{"anyOf":[{"$ref":"#/$defs/t"},{"type":"null"}]}},"required":["c","k"]},{"type":"object","properties":{"k":{"const":2},"c":{"anyOf":[{"$ref":"#/$defs/t"},{"type":"null"}]}},"required":["c","k"]}]}}}`,
		[]string{`{"k":1,"c":{"k":2,"c":null}}`}, []string{`{"k":1,"c":{"k":3,"c":null}}`, `{"k":1}`}},
	{`{"type":"object","properties":{"a":{},"b":{},"c":{}},"dependentRequired":{"a":["b"]},"additionalProperties":false}`, []string{`{}`, `{"a":1,"b":1}`, `{"c":1}`}, []string{`{"a":1}`, `{"a":1,"c":1}`}},
	{`{"type":"object","properties":{"a":{},"b":{}},"dependentSchemas":{"a":{"properties":{"b":{"type":"null"}}}}}`, []string{`{"b":1}`, `{"a":1,"b":null}`}, []string{`{"a":1,"b":1}`}},
	{`{"type":"object","propertyNames":{"enum":["a","b"]},"additionalProperties":{"type":"integer"}}`, []string{`{}`, `{"a":1,"b":2}`, `{"b":2}`}, []string{`{"c":1}`, `{"a":1,"a":2}`, `{"a":"x"}`}},
	{`{"type":"object","propertyNames":{"pattern":"^[a-z]{2}$"},"additionalProperties":{"type":"integer"}}`, []string{`{}`, `{"ab":1}`}, []string{`{"a":1}`, `{"abc":1}`, `{"ab":null}`}},
	{`{"type":"object","patternProperties":{"^n":{"type":"integer"},"s$":{"type":["integer","string"]}},"additionalProperties":false}`, []string{`{"n":1,"s":"x","ns":1}`}, []string{`{"x":1}`, `{"n":"x"}`, `{"ns":"x"}`}},
	{`{"type":"object","properties":{"n1":{}},"patternProperties":{"^n":{"type":"integer"}}}`, []string{`{"n1":1,"m":"x"}`}, []string{`{"n1":"x"}`, `{"n2":"x"}`}},
	{`{"type":"array","contains":{"type":"string"},"minContains":2,"maxContains":3}`, []string{`["a","b"]`, `[1,"a",2,"b",3,"c"]`}, []string{`["a"]`, `[]`, `["a","b","c","d"]`}},
	{`{"type":"array","contains":{"const":1},"items":{"type":"integer"},"maxItems":3}`, []string{`[1]`, `[2,3,1]`, `[1,1,1]`}, []string{`[2]`, `[2,3,4,1]`, `["a",1]`}},
	{`{"type":"array","uniqueItems":true,"items":{"enum":["aa","ab","b"]}}`, []string{`[]`, `["aa","ab"]`, `["b","ab","aa"]`}, []string{`["aa","aa"]`, `["aa", "ab", "aa"]`, `["aa","ab","b","b"]`}},
	{`{"type":"array","uniqueItems":true}`, []string{`[1,"1",[1],{"a":1},[],{}]`, `[[1,1],[1,2]]`}, []string{`[1,1]`, `[{"a":1,"b":2},{"b":2,"a":1}]`, `[[1, 2],[1,2]]`}},
	{`{"type":"array","items":{"type":"array","uniqueItems":true},"uniqueItems":true}`, []string{`[[1],[2]]`}, []string{`[[1,1]]`, `[[1],[1]]`}},
	{`{"type":"object","minProperties":2,"additionalProperties":{"type":"null"}}`, []string{`{"a":null,"b":null}`}, []string{`{"a":null,"a":null}`, `{"a":null}`}},
	{`{"type":"object","properties":{"a":{}},"allOf":[{"properties":{"b":{}}}],"unevaluatedProperties":false}`, []string{`{"a":1,"b":2}`}, []string{`{"c":1}`}},
	{`{"type":"array","prefixItems":[{"type":"null"}],"anyOf":[{"prefixItems":[true,{"const":1}]},{"minItems":0}],"unevaluatedItems":false}`, []string{`[null]`, `[null,1]`}, []string{`[null,2]`, `[null,1,1]`}},
	{`{"$ref":"#n","$defs":{"x":{"$anchor":"n","type":"null"}}}`, []string{`null`}, []string{`1`}},
	{`{"$id":"http://x/a","$ref":"b","$defs":{"x":{"$id":"b","$ref":"#/$defs/y","$defs":{"y":{"type":"null"}}}}}`, []string{`null`}, []string{`1`}},
	{`{"allOf":[{"$ref":"#/$defs/tree"},{"$ref":"#/$defs/small"}],"$defs":{"tree":{"type":"object","properties":{"v":{"type":"integer"},"n":{"$ref":"#/$defs/tree"}},"additionalProperties":false},"small":{"properties":{"v":{"maximum":9},"n":{"$ref":"#/$defs/small"}}}}}`,
		[]string{`{"v":1,"n":{"v":2,"n":{"v":9}}}`}, []string{`{"v":1,"n":{"v":2,"n":{"v":10}}}`, `{"x":1}`}},
}

// manyIfs returns a schema in which a property decides which others are required.
func manyIfs() string {
	var list []string
	for i := range 30 {
		list = append(list, fmt.Sprintf(`{"if":{"properties":{"k":{"const":"v%[1]d"}},"required":["k"]},"then":{"properties":{"a%[1]d":{"type":"integer"}},"required":["a%[1]d"]}}`, i))
	}
	return `{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"allOf":[` + strings.Join(list, ",") + `]}`
}

func TestLogic(t *testing.T) {
	t.Parallel()
	matchCases(t, logicCases)
}

// TestUndecidedNames checks schemas with a name that only some validators find to match a
// pattern: what is valid for all of them is written.
func TestUndecidedNames(t *testing.T) {
	t.Parallel()
	const digit = `"patternProperties":{"^\\d$":{"const":1}},"additionalProperties":{"const":2}`
	matchCases(t, []schemaCase{
		{`{"oneOf":[{"type":"object","required":["٣"],` + digit + `},{"type":"object","properties":{"٣":{"type":"integer"}},"required":["٣"],"additionalProperties":false},{"const":"a"}]}`,
			[]string{`{"٣":3}`, `"a"`}, []string{`{"٣":1}`, `{"٣":2}`, `{}`}},
		{`{"type":"object","properties":{"٣":{"enum":[1,2,3]},"٤":{"type":"null"}},"required":["٣"],"additionalProperties":false,"not":{` + digit + `}}`,
			[]string{`{"٣":3}`, `{"٣":1,"٤":null}`}, []string{`{"٣":1}`, `{"٣":2}`}},
		{`{"type":"object","required":["٣"],"patternProperties":{"^\\d$":{"enum":[1,2]}},"additionalProperties":{"enum":[2,3]}}`,
			[]string{`{"٣":2}`, `{"٣":2,"3":1,"a":3}`}, []string{`{"٣":1}`, `{"٣":3}`}},
		{`{"type":"object","properties":{"é":{"type":"integer"}},"required":["é"],"additionalProperties":false,"not":{"patternProperties":{"^\\w$":{"maximum":3},"^.$":{"minimum":1}},"additionalProperties":false}}`,
			[]string{`{"é":0}`}, []string{`{"é":2}`, `{"é":4}`}},
	})
}
