package grammar

import (
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// limitCases are combinations that reach code whose work is counted, besides the cases of
// other tests.
var limitCases = []schemaCase{
	{`{"$defs":{"l":{"$dynamicAnchor":"d","type":"array","items":{"$dynamicRef":"#d"}},"s":{"$dynamicAnchor":"d","$ref":"#/$defs/l","maxItems":1}},"$ref":"#/$defs/l"}`, []string{`[[],[[]]]`}, []string{`[1]`}},
	{`{"type":"object","properties":{"a":{"type":"string","pattern":"^[\\p{Lu}\\P{L}]+\\p{Nd}$"}},"additionalProperties":false}`, []string{`{"a":"A+1"}`}, []string{`{"a":"a1"}`, `{"a":"A"}`}},
	{`{"type":"array","items":{"type":"integer","minimum":0},"allOf":[{"contains":{"multipleOf":2},"minContains":2,"maxContains":3},{"contains":{"multipleOf":3},"maxContains":2}]}`, []string{`[2,6,1]`, `[3,2,4]`}, []string{`[2,4]`, `[6]`, `[2,4,8,6]`, `[6,3,12]`}},
	{`{"allOf":[{"multipleOf":4},{"multipleOf":6}],"type":"integer","minimum":1}`, []string{`12`, `24`}, []string{`4`, `6`, `0`}},
	{`{"enum":[1,8,12.5,1e3],"allOf":[{"not":{"multipleOf":5}},{"maximum":20}]}`, []string{`1`, `8`, `12.5`}, []string{`1e3`, `1000`}},
	{`{"not":{"enum":[[1,[2]],[],{"a":{"b":[1]}},{"a":1,"c":null}]},"type":["array","object"]}`, []string{`[1]`, `[1,[3]]`, `{"a":1}`, `{}`}, []string{`[]`, `[1,[2]]`, `{"a":{"b":[1]}}`, `{"a":1,"c":null}`}},
	{`{"anyOf":[{"properties":{"a":{"minimum":1}},"required":["a"]},{"properties":{"b":{"const":1}},"required":["b"]}],"type":"object","unevaluatedProperties":false}`, []string{`{"a":1}`, `{"b":1}`}, []string{`{}`, `{"a":1,"c":1}`}},
	{`{"type":"object","allOf":[{"propertyNames":{"minLength":1}},{"propertyNames":{"maxLength":2}},{"required":["b"]},{"required":["a","b"]}]}`, []string{`{"b":1,"a":1}`}, []string{`{"b":1}`, `{"b":1,"a":1,"abc":1}`}},
	{`{"type":"string","pattern":"^(?:(?<!a.)b|a){1,4}$","maxLength":3}`, []string{`"ab"`, `"ba"`}, []string{`"c"`, `"aab"`}},
	{`{"type":"array","prefixItems":[true,{"enum":[1,2]},{"enum":[1,3]}],"items":{"enum":[1,2,3,4]},"minItems":4,"maxItems":6,"uniqueItems":true}`, []string{`[4,2,1,3]`}, []string{`[4,2,1]`, `[4,2,1,2]`}},
}

func TestLimitCases(t *testing.T) {
	t.Parallel()
	matchCases(t, limitCases)
}

// TestWorkLimit reaches the limit of the work at many places: each schema is then refused
// for this reason, or compiled as always.
func TestWorkLimit(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewPCG(21, irtest.Seed(t)))
	refused := 0
	for _, c := range slices.Concat(limitCases, exactCases, logicCases, uniqueCases, fewNames) {
		root, err := readJSON([]byte(c.schema))
		if err != nil {
			t.Fatal(err)
		}
		for range irtest.Rounds(20, 400) {
			left := 1 << rng.IntN(12)
			left += rng.IntN(left)
			w := newSchemaWriter(root)
			w.work = maxWork - left
			g, err := w.finish(w.value(w.node(root, "")))
			if err != nil {
				if refused++; !strings.Contains(err.Error(), "takes more than") {
					t.Errorf("%s with %d steps left: %v", c.schema, left, err)
				}
				continue
			}
			if ok, err := g.Match(c.good[0]); !ok || err != nil {
				t.Errorf("%s with %d steps left: %s: match %v, %v", c.schema, left, c.good[0], ok, err)
			}
		}
	}
	if refused < 100 {
		t.Errorf("the limit was reached %d times", refused)
	}
}

// TestLimitErrors checks limits that small schemas exceed.
func TestLimitErrors(t *testing.T) {
	t.Parallel()
	var multiples []string
	for i := range 14 {
		multiples = append(multiples, `{"multipleOf":`+fraction(i, 380)+`}`)
	}
	for schema, want := range map[string]string{
		`{"type":"string","pattern":"a{70000}"}`:                                    "repetitions",
		`{"type":"string","pattern":"a{3,1}"}`:                                      "repetitions",
		`{"$id":"http://a/` + strings.Repeat("x", 3000) + `"}`:                      "2048 bytes",
		`{"type":"number","allOf":[` + strings.Join(multiples, ",") + `]}`:          "least common multiple",
		`{"enum":[1e-99],"minimum":0}`:                                              "too large or too small",
		`{"properties":{"` + strings.Repeat("é", 500) + `":{"$ref":"#/x"}}}`:        "…",
		many(9, `{"patternProperties":{%s},"type":"object"}`, `"a%":{"minimum":%}`): "patternProperties",
		many(16, `{"anyOf":[%s],"type":"object","unevaluatedProperties":false}`, `{"properties":{"a%":{"minimum":1}},"required":["b%"]}`): "combinations",
		strings.Repeat(`{"items":`, 180) + "true" + strings.Repeat("}", 180):                                                              "",
	} {
		_, err := ParseSchema([]byte(schema))
		if err == nil && want != "" || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%.80s: %.300v, want %s", schema, err, want)
		}
	}
}
