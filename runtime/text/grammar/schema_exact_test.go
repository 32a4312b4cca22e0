package grammar

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

// exactCases are regression tests for keywords that were not enforced together.
var exactCases = []struct {
	schema    string
	good, bad []string
}{
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
	{`{"allOf":[{"type":["integer","string"]},{"type":["number","null"]}],"minimum":1}`, []string{`1`}, []string{`1.5`, `"a"`, `null`, `0`}},
	{`{"$schema":"http://json-schema.org/draft-07/schema#","items":[{"type":"null"}],"additionalItems":{"type":"integer"},"type":"array"}`, []string{`[null,1]`}, []string{`[1]`, `[null,null]`}},
	{`{"allOf":[{"$ref":"#/$defs/t"},{"type":"null"},{"$ref":"#/$defs/t"}],"$defs":{"t":true}}`, []string{`null`}, []string{`1`}},
	{`{"$ref":"#/$defs/a%25b~1c","$defs":{"a%b/c":{"type":"null"}},"description":"x"}`, []string{`null`}, []string{`1`}},
}

func TestExactSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range exactCases {
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
		`{"type":"string","nullable":true}`:                                                         {"nullable", `["string", "null"]`},
		`{"type":"object","required":["a","b"],"maxProperties":1}`:                                  {"matches no text"},
		`{"type":"object","properties":[]}`:                                                         {"/properties", "object"},
		`{"type":"array","prefixItems":{}}`:                                                         {"/prefixItems", "list"},
		`{"type":"array","prefixItems":[true],"items":[true]}`:                                      {"/items"},
		`{"$schema":"http://json-schema.org/draft-07/schema#","type":"array","prefixItems":[true]}`: {"/prefixItems"},
		`{"allOf":[{"minimum":5,"type":"integer"},{"minimum":1e300}]}`:                              {"/minimum"},
		`{"allOf":[{"type":[[1]]},{"type":[[2]]}]}`:                                                 {"/type"},
		`{"type":"integer","enum":[1,2],"minimum":10}`:                                              {"matches no text"},
		`{"enum":[1],"not":{}}`:                                                                     {"matches no text"},
		`{"const":"\ud800"}`:                                                                        {"surrogate"},
		`{"type":"string","pattern":"(?i)a"}`:                                                       {"/pattern", "flags"},
		`{"type":"string","pattern":"a{,3}"}`:                                                       {"{0,n}"},
		`{"type":"string","pattern":"[[:alpha:]]"}`:                                                 {"[:classes:]"},
		`{"type":"string","pattern":"[]a]"}`:                                                        {`\]`},
		`{"type":"string","pattern":"[\\w-a]"}`:                                                     {`\-`},
		`{"type":"string","pattern":"(?=\\ba)a"}`:                                                   {"/pattern", "word boundary in a look-ahead"},
		`{"type":"string","pattern":"(a)\\1"}`:                                                      {"/pattern", "back-references"},
		`{"type":"array","uniqueItems":true,"minItems":5000}`:                                       {"minItems 5000", "4096"},
		`{"type":"array","not":{"uniqueItems":true}}`:                                               {"uniqueItems", "two items are equal"},
		`{"$ref":"#a","$defs":{"x":{"$anchor":"b"}}}`:                                               {"does not exist"},
		`{"dependentRequired":{"a":3}}`:                                                             {"/dependentRequired/a", "list of names"},
		`{"type":"number","multipleOf":0.123456,"minimum":0}`:                                       {"/multipleOf", "9999"},
		`{"type":"string","pattern":"\\ud83d"}`:                                                     {"half"},
	} {
		_, err := ParseSchema([]byte(schema))
		for _, part := range want {
			if err == nil || !strings.Contains(err.Error(), part) {
				t.Errorf("%s: %v, want %s", schema, err, part)
			}
		}
	}
}

// hostileSchemas returns large schemas that make merging and comparing slow.
func hostileSchemas() map[string]string {
	list := func(n int, format string) string {
		parts := make([]string, n)
		for i := range parts {
			parts[i] = strings.ReplaceAll(format, "%", fmt.Sprint(i))
		}
		return strings.Join(parts, ",")
	}
	many := func(n int, format string, args ...any) string {
		return fmt.Sprintf(format, append([]any{list(n, args[0].(string))}, args[1:]...)...)
	}
	runes := make([]string, 0, 60000)
	for r := rune(0x4E00); len(runes) < 20000; r++ {
		runes = append(runes, fmt.Sprintf(`"%c":{}`, r))
	}
	return map[string]string{
		"oneOf of constants":   many(30000, `{"oneOf":[%s]}`, `{"const":"value %"}`),
		"oneOf of types":       many(40000, `{"oneOf":[%s]}`, `{"type":"object"}`),
		"oneOf of objects":     many(8000, `{"oneOf":[%s]}`, `{"type":"object","required":["k"],"properties":{"k":{"const":"k%"}}}`),
		"oneOf of ranges":      many(8000, `{"oneOf":[%s]}`, `{"type":"integer","minimum":1%0,"maximum":1%5}`),
		"enum":                 many(100000, `{"enum":[%s]}`, `"%"`),
		"enum beside pattern":  fmt.Sprintf(`{"enum":[%s],"pattern":%q}`, list(50000, `"value %"`), strings.Repeat("(a|b)*", 40000)),
		"enum beside anyOf":    fmt.Sprintf(`{"enum":[%s],"anyOf":[%s]}`, list(20000, `"v%"`), list(20000, `{"const":%}`)),
		"enums in enums":       fmt.Sprintf(`{"enum":[%s],"allOf":[%s]}`, list(20000, `"v%"`), list(3000, `{"enum":["v%",{}]}`)),
		"properties":           many(40000, `{"properties":{%s}}`, `"p%":{"type":"null"}`),
		"first characters":     `{"properties":{` + strings.Join(runes, ",") + `}}`,
		"required":             many(80000, `{"required":[%s]}`, `"p%"`),
		"allOf":                fmt.Sprintf(`{"properties":{"x":{"enum":[%s]}},"allOf":[%s]}`, list(40000, `%`), list(10000, `{"properties":{"x":true}}`)),
		"allOf of enums":       fmt.Sprintf(`{"enum":[%s],"allOf":[%s]}`, list(40000, `%`), list(5000, `{"enum":[1,2]}`)),
		"anyOf of anyOf":       strings.Repeat(`{"anyOf":[{"minimum":1},{"minimum":2}],"allOf":[`, 60) + "true" + strings.Repeat("]}", 60),
		"patterns":             many(5000, `{"anyOf":[%s]}`, `{"type":"string","pattern":"^[\\W][\\p{L}]{9}%"}`),
		"classes":              fmt.Sprintf(`{"type":"string","pattern":%q}`, strings.Repeat(`[\W]`, 100000)),
		"repetitions":          `{"type":"string","pattern":"((((a{30}){30}){30}){30}){30}"}`,
		"lengths":              many(20000, `{"anyOf":[%s]}`, `{"type":"string","minLength":6%}`),
		"counts":               strings.Repeat(`{"minItems":65000,"items":`, 100) + "true" + strings.Repeat("}", 100),
		"references":           many(15000, `{"$defs":{%s},"anyOf":[{"$ref":"#/$defs/d1"}]}`, `"d%":{"anyOf":[{"$ref":"#/$defs/d1%"},{"$ref":"#/$defs/d2"}]}`),
		"long pointer":         `{"$ref":"#` + strings.Repeat("/$defs", 150000) + `"}`,
		"tiny numbers":         many(50000, `{"enum":[%s],"minimum":0}`, `1e-9%`),
		"types":                fmt.Sprintf(`{"enum":[%s],"allOf":[{"type":[%s]}]}`, list(20000, `%`), list(50000, `"string"`)),
		"pointers":             fmt.Sprintf(`{"allOf":[%s],"$defs":{"a":{"$ref":"#/$defs/%[2]s"},%[2]q:true}}`, list(10000, `{"$ref":"#/$defs/a"}`), strings.Repeat("x", 300000)),
		"patterns of nothing":  fmt.Sprintf(`{"type":"object","required":[%s],"additionalProperties":{"type":"string","pattern":%q}}`, list(20000, `"%"`), strings.Repeat("a{0}", 100000)),
		"required of oneOf":    fmt.Sprintf(`{"required":[%s],"oneOf":[%s]}`, list(20000, `"%"`), list(3000, `{"properties":{"a%":{"const":1}},"minProperties":%}`)),
		"long string":          `{"const":"` + strings.Repeat("a", 1000000) + `"}`,
		"look-aheads":          fmt.Sprintf(`{"type":"string","pattern":%q}`, strings.Repeat(`(?=.*[a-f]{1,9}x)`, 2000)),
		"nested look-aheads":   fmt.Sprintf(`{"type":"string","pattern":%q}`, strings.Repeat(`(?!a`, 150)+strings.Repeat(`)`, 150)),
		"look-aheads in loops": `{"type":"string","pattern":"^(?:(?=.{0,30}a.{20}b)(?!.{0,30}b.{20}a).)*$"}`,
		"exponential":          `{"type":"string","pattern":"(a|b)*a(a|b){400}","maxLength":60000}`,
		"lengths of patterns":  `{"type":"string","allOf":[{"pattern":"^(ab?){1,500}$"},{"pattern":"^(a{1,3}b?){1,300}$"},{"pattern":"^.{1,700}$"}],"maxLength":9999}`,
		"classes with lengths": fmt.Sprintf(`{"type":"string","pattern":%q,"maxLength":60000}`, `^(\p{L}\P{Lu}|\w\W|\p{Nd}[^\s])*$`),
		"many patterns":        many(2000, `{"type":"string","allOf":[%s]}`, `{"pattern":"a.{%}b"}`),
		"nested not":           strings.Repeat(`{"not":{"anyOf":[{"required":["a"]},`, 60) + "true" + strings.Repeat("]}}", 60),
		"if":                   many(1000, `{"allOf":[%s]}`, `{"if":{"properties":{"a%":{"const":1}}},"then":{"required":["b%"]},"else":{"required":["c%"]}}`),
		"oneOf that overlap":   many(60, `{"type":"object","oneOf":[%s]}`, `{"properties":{"a%":{"type":"string"},"b":{"minimum":%}}}`),
		"unevaluated":          many(16, `{"anyOf":[%s],"unevaluatedProperties":false}`, `{"properties":{"a%":{"minimum":1}},"required":["b%"]}`),
		"patternProperties":    many(5000, `{"patternProperties":{%s}}`, `"a%":{"minimum":%}`),
		"eight patterns":       many(8, `{"type":"object","patternProperties":{%s},"minProperties":9}`, `"(a|b)*%":{"maximum":%}`),
		"contains":             many(6, `{"type":"array","allOf":[%s]}`, `{"contains":{"multipleOf":1%7},"minContains":9,"maxContains":30}`),
		"dependentRequired":    many(5000, `{"type":"object","dependentRequired":{%s}}`, `"a%":["b%","c"]`),
		"multipleOf":           many(3000, `{"type":"number","minimum":0,"maximum":1e30,"allOf":[%s]}`, `{"not":{"multipleOf":1%.7}}`),
		"except values":        many(30000, `{"type":["array","object","number","string"],"not":{"enum":[%s]}}`, `[%,"a%"]`),
		"anchors":              many(20000, `{"$defs":{%s},"$ref":"#a1"}`, `"d%":{"$anchor":"a%","$ref":"#a2%"}`),
		"deep constants":       `{"enum":[` + strings.Repeat("[", 150) + strings.Repeat("]", 150) + `],"$ref":"#/$defs/a","$defs":{"a":{"items":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]},"minItems":1}}}`,
	}
}

// TestHostileSchemas checks that schemas of up to 1 MB are compiled or refused quickly.
func TestHostileSchemas(t *testing.T) {
	for name, schema := range hostileSchemas() {
		if len(schema) > maxSource {
			t.Errorf("%s: %d bytes", name, len(schema))
		}
		start := time.Now()
		_, err := ParseSchema([]byte(schema))
		took := time.Since(start)
		t.Logf("%s: %d KB: %v: %.150v", name, len(schema)/1024, took.Round(time.Millisecond), err)
		if took > 10*time.Second { // far above the time on a busy machine
			t.Errorf("%s took %v", name, took)
		}
	}
}

// FuzzExactSchema checks texts of a grammar with the validator of constants, which
// evaluates the same keywords independently.
func FuzzExactSchema(f *testing.F) {
	for _, c := range exactCases {
		f.Add(c.schema, c.good[0])
	}
	for _, c := range schemaCases {
		f.Add(c.schema, c.good[0])
	}
	for _, c := range logicCases {
		f.Add(c.schema, c.good[0])
		f.Add(c.schema, c.bad[0])
	}
	for _, schema := range hostileSchemas() {
		if len(schema) < 4000 {
			f.Add(schema, "1")
		}
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
