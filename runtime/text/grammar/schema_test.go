package grammar

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strconv"
	"strings"
	"testing"
)

// schemaCases are schemas with valid values, in the order of properties, and invalid
// values.
var schemaCases = []struct {
	name, schema string
	good, bad    []string
}{
	{"object", `{"type":"object","properties":{"name":{"type":"string"},"age":{"type":"integer"}},"required":["name"],"additionalProperties":false}`,
		[]string{`{"name":"Ann","age":3}`, `{"name":""}`, `{"name": "a\"\\\u00e9é", "age": -1}`},
		[]string{`{}`, `{"age":3}`, `{"name":"Ann","age":3.5}`, `{"name":"Ann","x":1}`, `{"name":"Ann",}`, `{"name":"A` + "\n" + `"}`, `{"name":"\ud800"}`, `{"age":1,"name":"late"}`}},
	{"optional", `{"properties":{"a":{"const":1},"b":{"const":2},"c":{"const":3}},"type":"object","additionalProperties":false}`,
		[]string{`{}`, `{"a":1}`, `{"b":2}`, `{"c":3}`, `{"a":1,"c":3}`, `{"a":1,"b":2,"c":3}`, `{"b":2,"c":3}`},
		[]string{`{,"b":2}`, `{"a":1,}`, `{"b":2,"a":1}`, `{"a":2}`}},
	{"others", `{"properties":{"ab":{"const":1}},"type":"object"}`,
		[]string{`{}`, `{"ab":1}`, `{"a":2}`, `{"abc":[{}]}`, `{"ab":1,"x":null}`, `{"":0,"b":{"ab":7}}`, `{"x\n":1}`, `{"é":1}`},
		[]string{`{"ab":2}`, `{"x":1,"ab":2}`, `{"\u0061b":2}`}},
	{"map", `{"type":"object","additionalProperties":{"type":"boolean"},"minProperties":1,"maxProperties":2}`,
		[]string{`{"a":true}`, `{"a":true,"b":false}`}, []string{`{}`, `{"a":1}`, `{"a":true,"b":true,"c":true}`}},
	{"required elsewhere", `{"type":"object","required":["z"],"additionalProperties":{"type":"integer"}}`,
		[]string{`{"z":1}`, `{"z":1,"a":2}`}, []string{`{}`, `{"z":"1"}`}},
	{"array", `{"type":"array","items":{"type":"integer"},"minItems":1,"maxItems":3}`,
		[]string{`[1]`, `[1,2,3]`, `[1, 2]`}, []string{`[]`, `[1,2,3,4]`, `[1,]`, `[,1]`, `["1"]`}},
	{"tuple", `{"type":"array","prefixItems":[{"const":"a"},{"type":"null"}],"items":{"type":"boolean"},"minItems":1}`,
		[]string{`["a"]`, `["a",null]`, `["a",null,true,false]`}, []string{`[]`, `[null]`, `["a",true]`, `["a",null,1]`}},
	{"closed tuple", `{"type":"array","prefixItems":[{"const":1},{"const":2}],"items":false}`,
		[]string{`[]`, `[1]`, `[1,2]`}, []string{`[1,2,3]`, `[2]`}},
	{"enum", `{"enum":["red",1,null,{"a":[1,2]}]}`, []string{`"red"`, `1`, `null`, `{"a":[1,2]}`}, []string{`"re"`, `2`, `"redd"`}},
	{"enum of a type", `{"type":"string","enum":["red",1]}`, []string{`"red"`}, []string{`1`}},
	{"any", `true`, []string{`{"a":[1,-2.5e+3,"x",{}],"b":null}`, `[]`, `-0`, `1E5`, `""`, `true`},
		[]string{`01`, `1.`, `.5`, `+1`, `nul`, `[1 2]`, `{a:1}`, `'a'`, `{"a":1,"b"}`, ``}},
	{"types", `{"type":["integer","null"]}`, []string{`1`, `null`}, []string{`1.5`, `"1"`}},
	{"anyOf beside others", `{"type":"object","properties":{"k":{"type":"string"}},"required":["k"],"anyOf":[{"properties":{"a":{"type":"integer"}},"required":["a"]},{"properties":{"b":{"type":"null"}},"required":["b"]}],"additionalProperties":true}`,
		[]string{`{"k":"","a":1}`, `{"k":"","b":null}`}, []string{`{"k":""}`, `{"a":1}`}},
	{"allOf", `{"allOf":[{"type":"object","properties":{"a":{"type":"number"}}},{"properties":{"a":{"type":"integer","minimum":3}},"required":["a"]}]}`,
		[]string{`{"a":3}`}, []string{`{"a":2}`, `{"a":3.5}`, `{}`}},
	{"recursive", `{"$ref":"#/$defs/node","$defs":{"node":{"type":"object","properties":{"v":{"type":"integer"},"next":{"anyOf":[{"$ref":"#/$defs/node"},{"type":"null"}]}},"required":["v","next"],"additionalProperties":false}}}`,
		[]string{`{"v":1,"next":null}`, `{"v":1,"next":{"v":2,"next":{"v":3,"next":null}}}`}, []string{`{"v":1}`, `{"v":1,"next":{}}`}},
	{"pattern", `{"type":"string","pattern":"^[A-Z]{2}-\\d+$"}`, []string{`"AB-12"`}, []string{`"AB-"`, `"ab-1"`, `"xAB-1"`}},
	{"pattern within", `{"type":"string","pattern":"b+"}`, []string{`"abba"`, `"b"`, `"\nb"`}, []string{`"aca"`, `""`}},
	{"pattern escaped", `{"type":"string","pattern":"^\"[\\\\\\n]$"}`, []string{`"\"\\"`, `"\"\n"`}, []string{`"""`}},
	{"length", `{"type":"string","minLength":2,"maxLength":3}`, []string{`"ab"`, `"äöü"`, `"\n\u0041"`, `"😀\ud83d\ude00"`}, []string{`"a"`, `"abcd"`}},
	{"date", `{"type":"string","format":"date-time"}`, []string{`"2024-02-29T23:59:60Z"`, `"2024-12-31T00:00:00.5+01:00"`}, []string{`"2024-13-01T00:00:00Z"`, `"2024-04-31T00:00:00Z"`}},
	{"uuid", `{"type":"string","format":"uuid"}`, []string{`"123e4567-e89b-12d3-a456-426614174000"`}, []string{`"123e4567e89b12d3a456426614174000"`}},
	{"host", `{"type":"string","format":"hostname"}`, []string{`"example.com"`, `"1host"`, `"a-1.b"`, `"2023-02-29"`, `"a.3com"`}, []string{`"-a"`, `"a-"`, `"a..b"`, `"1.2.3.4"`, `"123"`}},
	{"host of a list", `{"enum":["2023-02-29","1.2.3.4","-a"],"format":"hostname"}`, []string{`"2023-02-29"`}, []string{`"1.2.3.4"`, `"-a"`}},
	{"address", `{"type":"string","format":"ipv6"}`, []string{`"::"`, `"::1"`, `"2001:db8::ff00:42:8329"`}, []string{`":1"`, `"1:2:3:4:5:6:7:8:9"`}},
	{"range", `{"type":"integer","minimum":-12,"exclusiveMaximum":105}`, []string{`-12`, `-1`, `0`, `9`, `104`, `99`}, []string{`-13`, `105`, `1.5`, `00`, `1e1`}},
	{"multiple", `{"type":"integer","multipleOf":7}`, []string{`0`, `7`, `-14`, `700`}, []string{`8`, `07`, `-`}},
	{"cents", `{"type":"number","multipleOf":0.01}`, []string{`1`, `1.5`, `-0.25`}, []string{`1.255`, `1.`}},
}

func TestSchemas(t *testing.T) {
	t.Parallel()
	for _, c := range schemaCases {
		g, err := ParseSchema([]byte(c.schema))
		if err != nil {
			t.Errorf("%s: %v", c.name, err)
			continue
		}
		for want, list := range map[bool][]string{true: c.good, false: c.bad} {
			for _, text := range list {
				if got, err := g.Match(text); got != want || err != nil {
					t.Errorf("%s: %s: match %v, want %v, %v", c.name, text, got, want, err)
				}
			}
		}
		for _, text := range c.good {
			if !json.Valid([]byte(text)) {
				t.Errorf("%s: the case %s is not JSON", c.name, text)
			}
		}
	}
}

// TestWhiteSpace checks that one space is allowed after colons and commas, and no white
// space elsewhere.
func TestWhiteSpace(t *testing.T) {
	t.Parallel()
	for _, schema := range []string{`true`, `{"const":[1,{"a":2}]}`, `{"type":"array","prefixItems":[{"type":"integer"},{"type":"object","properties":{"a":{"type":"integer"}}}]}`} {
		g, err := ParseSchema([]byte(schema))
		if err != nil {
			t.Fatal(err)
		}
		for text, want := range map[string]bool{`[1,{"a":2}]`: true, `[1, {"a": 2}]`: true, `[ 1,{"a":2}]`: false, `[1,{"a":2} ]`: false, `[1 ,{"a":2}]`: false,
			`[1,  {"a":2}]`: false, "[1,\n{\"a\":2}]": false, `[1,{"a" :2}]`: false, `[1,{ "a":2}]`: false, ` [1,{"a":2}]`: false, `[1,{"a":2}] `: false} {
			if got, _ := g.Match(text); got != want {
				t.Errorf("%s: %s: %v", schema, text, got)
			}
		}
	}
}

func TestSchemaErrors(t *testing.T) {
	t.Parallel()
	deep := strings.Repeat(`{"items":`, 5000) + "true" + strings.Repeat("}", 5000)
	for schema, want := range map[string]string{
		`{"not":{}}`:            "matches no text",
		`{"$ref":"http://x/y"}`: "within the schema",
		`{"$ref":"#/nowhere"}`:  "does not exist",
		`{"$ref":"#"}`:          "refers to itself",
		`{"type":"integer","minimum":7,"maximum":3}`: "matches no text",
		`false`: "matches no text",
		`{"minLength":5,"type":"string","maxLength":2}`: "matches no text",
		`{"type":"string","pattern":"a$b"}`:             "matches no text",
		`{"minItems":1e9,"type":"array"}`:               "expected an integer",
		`{"minimum":1e400}`:                             "digits",
		`{"a"`:                                          "schema",
		`[] []`:                                         "after the JSON value",
		deep:                                            "nested",
		`{"allOf":[{"$ref":"#"}]}`:                      "",
		`{"$defs":{"a":{"$ref":"#/$defs/b"},"b":{"$ref":"#/$defs/a"}},"allOf":[{"$ref":"#/$defs/a"},{"type":"null"}]}`: "refers to itself",
	} {
		_, err := ParseSchema([]byte(schema))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.60s: %v, want %s", schema, err, want)
		}
	}
}

// TestNumberRanges compares random ranges with comparisons of the numbers.
func TestNumberRanges(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(1, 2))
	random := func() string {
		v := (rng.Float64() - 0.5) * []float64{3, 30, 4000}[rng.IntN(3)]
		return strconv.FormatFloat(v, 'f', rng.IntN(4), 64)
	}
	for range 300 {
		lo, hi := random(), random()
		words := [2]string{"minimum", "maximum"}
		open := [2]bool{rng.IntN(2) == 0, rng.IntN(2) == 0}
		if open[0] {
			words[0] = "exclusiveMinimum"
		}
		if open[1] {
			words[1] = "exclusiveMaximum"
		}
		integer := rng.IntN(2) == 0
		name := map[bool]string{true: "integer", false: "number"}[integer]
		schema := fmt.Sprintf(`{"type":%q,%q:%s,%q:%s}`, name, words[0], lo, words[1], hi)
		g, err := ParseSchema([]byte(schema))
		for i := range 60 {
			text := random()
			switch i {
			case 0:
				text = lo
			case 1:
				text = hi
			}
			if text == "-0" || strings.Trim(text, "-0.") == "" {
				text = "0"
			}
			x, _ := strconv.ParseFloat(text, 64)
			a, _ := strconv.ParseFloat(lo, 64)
			z, _ := strconv.ParseFloat(hi, 64)
			want := (x > a || x == a && !open[0]) && (x < z || x == z && !open[1]) && (!integer || !strings.Contains(text, "."))
			got := false
			if err == nil {
				got, _ = g.Match(text)
			}
			if got != want {
				t.Fatalf("%s: %s: match %v, want %v (%v)", schema, text, got, want, err)
			}
		}
	}
}
