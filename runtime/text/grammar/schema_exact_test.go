package grammar

import (
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// exactCases are regression tests for keywords that were not enforced together.
var exactCases = []schemaCase{
	{`{"type":"integer","enum":[1,2,50],"minimum":10}`, []string{`50`}, []string{`1`, `2`}},
	{`{"enum":["a","abc",7],"minLength":2}`, []string{`"abc"`, `7`}, []string{`"a"`}},
	{`{"const":5,"enum":[4,5.0]}`, []string{`5`}, []string{`4`, `5.0`}},
	{`{"enum":[1.0,2.5,-0],"type":"integer"}`, []string{`1`, `0`}, []string{`2.5`, `1.0`, `-0`}},
	{`{"enum":["ab","b"],"pattern":"^a"}`, []string{`"ab"`}, []string{`"b"`}},
	{`{"enum":["2023-02-29","2024-02-29","x"],"format":"date"}`, []string{`"2024-02-29"`}, []string{`"2023-02-29"`, `"x"`}},
	{`{"enum":[{"a":1},{"a":"1"},{"b":1}],"properties":{"a":{"type":"integer"}},"required":["a"]}`, []string{`{"a":1}`, `{"a": 1}`}, []string{`{"a":"1"}`, `{"b":1}`}},
	{`{"enum":[[1],[1,2],["1"]],"items":{"$ref":"#/$defs/n"},"minItems":2,"$defs":{"n":{"type":"integer"}}}`, []string{`[1,2]`, `[1, 2]`}, []string{`[1]`, `["1"]`}},
	{`{"enum":[3,6,7],"multipleOf":3,"allOf":[{"maximum":5}]}`, []string{`3`}, []string{`6`, `7`}},
	{`{"enum":[1,2,3,4],"oneOf":[{"maximum":2},{"minimum":2}]}`, []string{`1`, `3`, `4`}, []string{`2`}},
	{`{"oneOf":[{"enum":[1,2]},{"enum":[2,3]}]}`, []string{`1`, `3`}, []string{`2`}},
	{`{"oneOf":[{"enum":["abc","P1D"],"oneOf":[{"type":["null","string"]},{"type":"string","format":"duration"}]},{"enum":[3]}]}`, []string{`3`}, []string{`"abc"`, `"P1D"`}},
	{`{"enum":["٣","4","x"],"oneOf":[{"pattern":"\\d"},{"minLength":1}]}`, []string{`"x"`}, []string{`"٣"`, `"4"`}},
	{`{"oneOf":[{"type":"integer","maximum":3},{"type":"integer","exclusiveMinimum":3},{"type":"null"}]}`, []string{`3`, `4`, `null`}, nil},
	{`{"oneOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/b"}],"$defs":{"a":{"type":"object","properties":{"k":{"const":"a"},"n":{"type":"integer"}},"required":["k"],"additionalProperties":false},
		"b":{"type":"object","properties":{"k":{"const":"b"},"s":{"oneOf":[{"$ref":"#/$defs/b"},{"type":"null"}]}},"required":["k"],"additionalProperties":false}}}`,
		[]string{`{"k":"a","n":1}`, `{"k":"b","s":{"k":"b","s":null}}`}, []string{`{"k":"a","s":null}`}},
	{`{"oneOf":[{"type":"array","items":{"type":"integer"},"minItems":1},{"type":"array","maxItems":0}]}`, []string{`[1]`, `[]`}, []string{`[""]`}},
	{`{"oneOf":[{"properties":{"a":{"type":"null"}},"required":["a"],"type":"object"},{"type":"object","additionalProperties":false,"properties":{"b":{}}}]}`, []string{`{"a":null}`, `{"b":1}`}, []string{`{"a":1}`}},
	{`{"type":"integer","multipleOf":0.5}`, []string{`3`}, []string{`1.5`}},
	{`{"type":"integer","multipleOf":7.5}`, []string{`0`, `15`, `-30`}, []string{`7`, `7.5`}},
	{`{"allOf":[{"prefixItems":[{"type":"integer"}]},{"items":{"minimum":3}}],"type":"array"}`, []string{`[3]`, `[3,"x"]`, `[]`}, []string{`[2]`, `["x",2]`}},
	{`{"allOf":[{"items":[{"type":"integer"}],"additionalItems":false},{"items":{"minimum":3}}],"type":"array"}`, []string{`[3]`, `[]`}, []string{`[2]`, `[3,4]`}},
	{`{"minimum":3,"exclusiveMinimum":true,"type":"integer","allOf":[{"exclusiveMinimum":1}]}`, []string{`4`}, []string{`3`, `2`}},
	{`{"type":"object","required":["z","z"],"properties":{"a":{"type":"null"}},"additionalProperties":{"type":"integer"}}`, []string{`{"z":1}`, `{"a":null,"z":1,"y":2}`}, []string{`{"z":1,"z":2}`, `{"a":null}`}},
	{`{"type":"object","properties":{"a":{"type":"null"},"b":{"type":"null"}},"minProperties":1,"additionalProperties":false}`, []string{`{"a":null}`, `{"b":null}`}, []string{`{}`}},
	{`{"type":"object","properties":{"a":{"type":"null"}},"minProperties":1}`, []string{`{"a":null}`, `{"x":1}`}, []string{`{}`}},
	{`{"type":"object","properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"minProperties":2,"maxProperties":2,"additionalProperties":false}`,
		[]string{`{"a":1,"b":2}`, `{"b":2,"c":3}`, `{"a":1,"c":3}`}, []string{`{}`, `{"c":3}`, `{"a":1,"b":2,"c":3}`}},
	{`{"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"required":["b"],"minProperties":2,"maxProperties":3,"additionalProperties":{"type":"null"}}`,
		[]string{`{"a":1,"b":2}`, `{"b":2,"x":null}`, `{"a":1,"b":2,"x":null}`, `{"b":2,"x":null,"y":null}`}, []string{`{"b":2}`, `{"a":1,"x":null}`, `{"a":1,"b":2,"x":null,"y":null}`}},
	{`{"type":"object","properties":{"a":{"const":1},"b":{"const":2}},"minProperties":3,"additionalProperties":{"type":"null"}}`,
		[]string{`{"a":1,"b":2,"x":null}`, `{"a":1,"b":2,"x":null,"y":null}`}, []string{`{"a":1,"x":null,"y":null}`, `{"a":1,"b":2}`}},
	{`{"required":["a"]}`, []string{`{"a":1}`, `[]`, `"x"`, `null`}, []string{`{}`, `{"b":1}`}},
	{`{"type":"string","pattern":"^.$"}`, []string{`"a"`, `"😀"`}, []string{`"\n"`, `"\r"`, "\"\u2028\"", `"ab"`}},
	{`{"type":"string","pattern":"^\\d$"}`, []string{`"1"`}, []string{`"٣"`, `"a"`}},
	{`{"type":"string","pattern":"^\\D[^\\d]$"}`, []string{`"ab"`, `"é "`}, []string{`"٣a"`, `"a٣"`, `"1a"`}},
	{`{"type":"string","pattern":"^\\w\\W[^\\w][\\W]$"}`, []string{`"a-- "`}, []string{`"é---"`, `"aé--"`, `"a-é-"`, `"a--é"`}},
	{`{"type":"string","pattern":"^\\s\\S[^\\s]$"}`, []string{`" ab"`, `"\u000bab"`, `"\tab"`}, []string{"\"\u00a0ab\"", "\" \u00a0b\"", "\" a\u00a0\"", `"abc"`}},
	{`{"type":"string","pattern":"^[\\w.-]+[\\]\\b]\\u0041\\x42\\/{$"}`, []string{`"a-.]AB/{"`, `"a\bAB/{"`}, []string{`"]AB/{"`}},
	{`{"type":"string","pattern":"^(?:ab|c)*?d{1,2}$"}`, []string{`"abcdd"`}, []string{`"ab"`}},
	{`{"type":"string","pattern":"^\\\\u0041$"}`, []string{`"\\u0041"`}, []string{`"A"`}},
	{`{"type":"string","pattern":"^a|b$"}`, []string{`"ax"`, `"xb"`}, []string{`"xa"`, `"b\n"`}},
	{`{"type":"number","minimum":0,"exclusiveMaximum":0.1}`, []string{`0`, `0.09999999999999`}, []string{`0.1`, `0.0999999999999999999999`, `-0`}},
	{`{"type":"number","minimum":2.5}`, []string{`2.5`, `3`, `12.75`, `1234567890123456`}, []string{`2.4`, `12.`, `3.`, `12345678901234567890.5`}},
	{`{"type":"string","minLength":1,"maxLength":1}`, []string{`"😀"`, `"\ud83d\ude00"`, `"\u00e9"`}, []string{`""`, `"\ud83d"`, `"ab"`}},
	{`{"type":["integer","null"],"nullable":true}`, []string{`1`, `null`}, nil},
	{`{"type":"string","enum":["a"],"nullable":true}`, []string{`"a"`, `null`}, []string{`"b"`, `1`}},
	{`{"allOf":[{"properties":{"a":true},"nullable":true}],"type":["object","null"],"nullable":false,"unevaluatedProperties":false}`, []string{`{"a":1}`, `null`}, []string{`{"b":1}`, `1`}},
	{`{"type":"string","maxLength":6700000,"minLength":1.0}`, []string{`"ab"`}, []string{`""`}},
	{`{"type":"array","maxItems":1e300,"items":{"type":"integer","multipleOf":5}}`, []string{`[12345678901234567890,0]`}, []string{`[12345678901234567892]`, `[1234567890123456789000]`}},
	{`{"type":"number"}`, []string{`12345678901234567890`, `-0.12345678901234567e-199`}, []string{`123456789012345678901`, `0.123456789012345678`, `1e1000`}},
	{`{"type":"integer","enum":[123456789012345678901234567890]}`, []string{`123456789012345678901234567890`}, []string{`1`}},
	{`{"type":"integer","minimum":1000000000000000000000000}`, []string{`1000000000000000000000000`}, []string{`1`}},
	{`{"type":"string","pattern":"^(?P<year>\\d{2})-(?<b>x)(?#note)$"}`, []string{`"12-x"`}, []string{`"1-x"`}},
	{`{"type":"string","pattern":"(?i)^a[b-c]É(?-i:d)(?s:.)\\Z"}`, []string{`"ABéd\n"`, `"acÉd."`}, []string{`"ABéD."`, `"adéd."`}},
	{`{"type":"string","pattern":"^(?i:k)[^s]k$"}`, []string{`"Kak"`}, []string{`"KaK"`, "\"\u212aak\"", `"Ksk"`}},
	{`{"type":"string","pattern":"^(?i)[^s]$"}`, []string{`"a"`}, []string{`"S"`, "\"\u017f\""}},
	{`{"allOf":[{"type":["integer","string"]},{"type":["number","null"]}],"minimum":1}`, []string{`1`}, []string{`1.5`, `"a"`, `null`, `0`}},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}],"additionalItems":{"type":"integer"},"type":"array"}`, []string{`[null,1]`}, []string{`[1]`, `[null,null]`}},
	{`{"allOf":[{"$ref":"#/$defs/t"},{"type":"null"},{"$ref":"#/$defs/t"}],"$defs":{"t":true}}`, []string{`null`}, []string{`1`}},
	{`{"$ref":"#/$defs/a%25b~1c","$defs":{"a%b/c":{"type":"null"}},"description":"x"}`, []string{`null`}, []string{`1`}},
}

func TestExactSchemas(t *testing.T) {
	t.Parallel()
	matchCases(t, exactCases)
}

// A schemaCase is a schema with texts that its grammar matches and others.
type schemaCase struct {
	schema    string
	good, bad []string
}

// matchCases checks which texts the grammar of each schema matches.
func matchCases(t *testing.T, cases []schemaCase) {
	t.Helper()
	for _, c := range cases {
		g, err := ParseSchema([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.schema, err)
			continue
		}
		for want, list := range map[bool][]string{true: c.good, false: c.bad} {
			for _, text := range list {
				if got, err := g.Match(text); got != want || err != nil {
					t.Errorf("%s: %s: match %v, want %v, %v", c.schema, text, got, want, err)
				}
			}
		}
	}
}

// TestRefusedSchemas checks that schemas that cannot be enforced exactly are refused,
// with the location and a remedy.
func TestRefusedSchemas(t *testing.T) {
	t.Parallel()
	for schema, want := range map[string][]string{
		`{"anyOf":[{"$ref":"#/$defs/a"},{"type":"null"}],"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"anyOf":[{"$ref":"#/$defs/a"}]}}}`: {"/$defs/a", "refers to itself"},
		`{"type":"object","required":["a","b"],"maxProperties":1}`:                                                                 {"matches no text"},
		`{"allOf":[{"minimum":5,"type":"integer"},{"minimum":1e300}]}`:                                                             {"/minimum"},
		`{"type":"integer","enum":[1,2],"minimum":10}`:                                                                             {"matches no text"},
		`{"type":"string","pattern":"(?m)^a"}`:                                                                                     {"/pattern", "(?m"},
		`{"$recursiveRef":"#"}`:                                                                                                    {"$recursiveRef", "$ref"},
		`{"enum":[1],"not":{}}`:                                                                                                    {"matches no text"},
		`{"const":"\ud800"}`:                                                                                                       {"surrogate"},
		`{"type":"string","pattern":"a{,3}"}`:                                                                                      {"{0,n}"},
		`{"type":"string","pattern":"[[:alpha:]]"}`:                                                                                {"[:classes:]"},
		`{"type":"string","pattern":"[]a]"}`:                                                                                       {`\]`},
		`{"type":"string","pattern":"[\\w-a]"}`:                                                                                    {`\-`},
		`{"type":"string","pattern":"(?=\\ba)a"}`:                                                                                  {"/pattern", "word boundary in a look-ahead"},
		`{"type":"string","pattern":"(a)\\1"}`:                                                                                     {"/pattern", "back-references"},
		`{"type":"array","uniqueItems":true,"minItems":5000}`:                                                                      {"minItems 5000", "4096"},
		`{"type":"array","not":{"uniqueItems":true}}`:                                                                              {"uniqueItems", "two items are equal"},
		`{"$ref":"#a","$defs":{"x":{"$anchor":"b"}}}`:                                                                              {"does not exist"},
		`{"type":"number","multipleOf":0.123456,"minimum":0}`:                                                                      {"/multipleOf", "9999"},
		`{"properties":{"a":{"type":"number","multipleOf":2.236}}}`:                                                                {"/properties/a", "states", "fewer digits"},
		`{"type":"string","pattern":"\\ud83d"}`:                                                                                    {"half"},
	} {
		_, err := ParseSchema([]byte(schema))
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %s", schema, err, part)
			}
		}
	}
}

// FuzzExactSchema checks texts of a grammar with the validator of constants, which
// evaluates the same keywords independently.
func FuzzExactSchema(f *testing.F) {
	var seeds [][2]string
	for _, c := range exactCases {
		seeds = append(seeds, [2]string{c.schema, c.good[0]})
	}
	for _, c := range schemaCases {
		seeds = append(seeds, [2]string{c.schema, c.good[0]})
	}
	for _, c := range logicCases {
		seeds = append(seeds, [2]string{c.schema, c.good[0]}, [2]string{c.schema, c.bad[0]})
	}
	hostile := allHostile()
	for _, name := range hostileNames(hostile) {
		if len(hostile[name]) < 4000 {
			seeds = append(seeds, [2]string{hostile[name], "1"})
		}
	}
	for _, seed := range irtest.Sample(f, 20, seeds) {
		f.Add(seed[0], seed[1])
	}
	f.Fuzz(func(t *testing.T, schema, text string) {
		g, err := ParseSchema([]byte(schema))
		if err != nil || len(text) > 200 {
			return
		}
		if ok, err := g.Match(text); !ok || err != nil {
			return
		}
		v, err := readJSON([]byte(text))
		if err != nil {
			t.Fatalf("%s: %s: %v", schema, text, err)
		}
		root, err := readJSON([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		w := newSchemaWriter(root)
		if !w.holds(v, w.node(root, "")) && w.err == nil {
			t.Errorf("%s: %s matches but is not valid", schema, text)
		}
	})
}
