package grammar

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/irtest"
)

// uniqueCases are arrays with unique items in which earlier items can use up the values
// that later ones need.
var uniqueCases = []schemaCase{
	{`{"type":"array","prefixItems":[{"enum":[1,2]},{"const":1}],"minItems":2,"uniqueItems":true}`, []string{`[2,1]`, `[2,1,"x"]`}, []string{`[1,2]`, `[2]`, `[1,1]`}},
	{`{"type":"array","prefixItems":[{"type":"integer"}],"items":{"enum":[1,2]},"minItems":3,"uniqueItems":true}`, []string{`[3,1,2]`, `[-1,2,1]`}, []string{`[1,2]`, `[3,1]`, `[1,2,1]`}},
	{`{"type":"array","items":{"enum":["a","b","c","d"]},"contains":{"enum":["a","b"]},"minContains":2,"maxItems":3,"uniqueItems":true}`, []string{`["a","b"]`, `["c","a","b"]`}, []string{`["c","d"]`, `["a","a"]`, `["a","c","d"]`}},
	{`{"type":"array","items":{"enum":["a","b","c","d"]},"contains":{"enum":["a","b"]},"minContains":2,"maxItems":3}`, []string{`["a","a"]`, `["c","a","b"]`}, []string{`["c","d"]`, `["a","c","d"]`}},
	{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":["boolean","null"]},"minItems":4,"uniqueItems":true}`, []string{`["",null,true,false]`}, []string{`["",null,true]`, `[null,true,false]`}},
	{`{"type":"array","prefixItems":[{"type":"array"}],"items":{"type":"array","items":{"type":"boolean"},"maxItems":1},"minItems":4,"uniqueItems":true}`,
		[]string{`[[1],[true],[],[false]]`, `[[[]],[true],[],[false]]`}, []string{`[[],[true],[false]]`, `[[],[true],[false],[]]`}},
	{`{"type":"array","prefixItems":[{"type":"object"}],"items":{"type":"object","properties":{"a":{"const":1},"b":{"type":"null"}},"additionalProperties":false},"minItems":5,"uniqueItems":true}`,
		[]string{`[{"c":1},{"a":1},{},{"a":1,"b":null},{"b":null}]`, `[{"a":2},{"a":1},{},{"a":1,"b":null},{"b":null}]`}, []string{`[{},{"a":1},{"a":1,"b":null},{"b":null}]`}},
	{`{"type":"array","prefixItems":[{"type":"number"}],"items":{"type":"number","minimum":2.5,"maximum":2.5},"minItems":2,"uniqueItems":true}`, []string{`[2,2.5]`}, []string{`[2.5,2.5]`, `[2.5,2]`}},
	{`{"type":"array","prefixItems":[{"type":"string"}],"items":{"type":"string","pattern":"^(ab|c)$"},"minItems":3,"uniqueItems":true}`, []string{`["a","c","ab"]`}, []string{`["c","ab"]`, `["ab","c"]`}},
	{`{"type":"array","prefixItems":[{"enum":[1,2]},{"enum":[2,3]},{"enum":[3,1]}],"minItems":3,"uniqueItems":true}`, []string{`[1,2,3]`, `[2,3,1]`}, []string{`[1,3]`, `[2,1]`}},
	{`{"type":"array","prefixItems":[{"type":"array"}],"items":{"$ref":"#/$defs/a"},"minItems":2,"uniqueItems":true,"$defs":{"a":{"anyOf":[{"const":[]},{"type":"array","items":{"$ref":"#/$defs/a"},"minItems":2,"uniqueItems":true}]}}}`,
		[]string{`[[1],[]]`}, []string{`[[],[]]`}},
	{`{"type":"array","items":{"type":"array","items":{"type":"integer"},"contains":{"minimum":-1,"maximum":1},"minContains":2,"maxItems":2,"uniqueItems":true},"minItems":3,"uniqueItems":true}`,
		[]string{`[[0,1],[1,0],[-1,0]]`}, []string{`[[0,1],[1,0],[0,1]]`, `[[0,1],[1,0],[0,2]]`}},
	{`{"type":"array","items":{"type":"array","items":{"type":"integer","minimum":0},"contains":{"minimum":2},"maxContains":0,"minContains":0,"uniqueItems":true},"minItems":5,"uniqueItems":true}`,
		[]string{`[[],[0],[1],[1,0],[0,1]]`}, []string{`[[],[0],[1],[1,0]]`, `[[],[0],[1],[1,0],[2]]`}},
	{`{"type":"array","items":{"type":"array","items":{"type":"boolean"},"contains":{"const":true},"maxContains":10},"minItems":3,"uniqueItems":true}`,
		[]string{`[[true],[true,false],[true,true]]`}, []string{`[[true],[true,false]]`, `[[true],[true,false],[false]]`}},
	{`{"type":"array","items":{"type":"array","items":{"const":1},"contains":{"const":1},"maxContains":3},"minItems":3,"uniqueItems":true}`,
		[]string{`[[1],[1,1,1],[1,1]]`}, []string{`[[1],[1,1]]`, `[[1],[1,1],[1,1,1,1]]`}},
	{`{"type":"array","items":{"anyOf":[{"type":"string","maxLength":3},{"const":"\u2028"}]},"uniqueItems":true}`, []string{"[\"\u2028\"]"}, []string{"[\"\u2028\",\"\\u2028\"]"}},
	{`{"type":"array","prefixItems":[{"type":"number"},{"const":0.10}],"items":false,"uniqueItems":true}`, []string{`[0.2,0.1]`}, []string{`[0.1,0.1]`, `[0.1,0.10]`}},
}

// tooFew are schemas of arrays and objects that need more different items or names than
// there are.
var tooFew = []string{
	`{"type":"array","items":{"enum":[1,2,"a"]},"contains":{"const":"a"},"minContains":2,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"boolean"},"minItems":3,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"integer","minimum":1,"maximum":300},"minItems":301,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"number","minimum":2.5,"maximum":2.5},"minItems":2,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"array","prefixItems":[{"type":"boolean"},{"type":"null"}],"items":false},"minItems":6,"uniqueItems":true}`,
	`{"type":"array","prefixItems":[{"enum":[1,2]},{"enum":[2,1]},{"enum":[1,2]}],"minItems":3,"uniqueItems":true}`,
	`{"type":"array","items":{"anyOf":[{"type":"null"},{"$ref":"#"}]},"minItems":2,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"object","propertyNames":{"pattern":"^[ab]$"},"additionalProperties":{"type":"null"}},"minItems":5,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"object","properties":{"a":{"type":"boolean"},"b":{"type":"integer"}},"required":["a"],"maxProperties":1,"additionalProperties":false},"minItems":3,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"array","items":{"type":"integer"},"maxItems":1,"contains":{"const":1}},"minItems":2,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"array","items":{"type":"integer"},"maxItems":2,"allOf":[{"contains":{"const":1}},{"contains":{"const":2}}]},"minItems":3,"uniqueItems":true}`,
	`{"type":"array","items":{"type":"number","multipleOf":0.5,"minimum":1000000000000000,"maximum":1000000000000001},"minItems":3,"uniqueItems":true}`,
	`{"type":"object","patternProperties":{"^x[01]$":{"const":1}},"additionalProperties":false,"minProperties":3}`,
	`{"type":"array","items":{"anyOf":[{"const":1},{"type":"number","minimum":0.12345678901234567,"maximum":0.12345678901234567}]},"minItems":2,"uniqueItems":true}`,
}

// fewNames are objects that may use up the names that they need.
var fewNames = []schemaCase{
	{`{"type":"object","properties":{"y":{"const":1},"z":{"const":1}},"patternProperties":{"^x[01]$":{"const":1}},"additionalProperties":false,"minProperties":4}`,
		[]string{`{"y":1,"z":1,"x0":1,"x1":1}`}, []string{`{"z":1,"x0":1,"x1":1}`, `{"y":1,"z":1,"x0":1,"x0":1}`}},
	{`{"type":"object","properties":{"y":{"const":1}},"patternProperties":{"^x[0-2]$":{"const":1}},"additionalProperties":false,"minProperties":3}`,
		[]string{`{"y":1,"x0":1,"x2":1}`, `{"x0":1,"x1":1,"x2":1}`}, []string{`{"y":1,"x1":1}`, `{"x0":1,"x1":1,"x1":1}`}},
	{`{"type":"array","items":{"propertyNames":{"pattern":"^[a-h]$"},"type":"object","minProperties":8,"additionalProperties":{"const":1}},"uniqueItems":true}`,
		[]string{`[]`, `[{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1,"h":1}]`}, []string{`[{"a":1,"b":1,"c":1,"d":1,"e":1,"f":1,"g":1}]`}},
}

func TestUniqueSchemas(t *testing.T) {
	t.Parallel()
	cases := slices.Concat(uniqueCases, fewNames)
	matchCases(t, cases)
	var members []string
	for i := range 200 {
		members = append(members, fmt.Sprintf(`"%03d":%[1]d`, i))
	}
	matchCases(t, []schemaCase{{`{"type":"object","propertyNames":{"pattern":"^[01][0-9]{2}$"},"additionalProperties":{"type":"integer"},"minProperties":200}`,
		[]string{"{" + strings.Join(members, ",") + "}"}, []string{"{" + strings.Join(members[1:], ",") + "}"}}})
	v, words, end := byteVocabulary(t)
	rounds := irtest.Rounds(8, 20)
	for _, c := range cases {
		if n := sampleValid(t, c.schema, v, words, end, rounds); n < rounds/2 {
			t.Errorf("%s: %d texts end", c.schema, n)
		}
	}
	for _, schema := range tooFew {
		if _, err := ParseSchema([]byte(schema)); err == nil || !strings.Contains(err.Error(), "matches no text") {
			t.Errorf("%s: %v", schema, err)
		}
	}
}

// universe are values of which random arrays consist.
var universe = []string{`1`, `2`, `3`, `1.5`, `"a"`, `"ab"`, `true`, `false`, `null`, `[1]`, `[1,2]`, `{"a":1}`, `{"a":1,"b":true}`}

// randomItem returns a random schema of an item.
func randomItem(rng *rand.Rand) string {
	some := func(most int) string {
		var list []string
		for range 1 + rng.IntN(most) {
			list = append(list, universe[rng.IntN(len(universe))])
		}
		return strings.Join(list, ",")
	}
	kinds := []string{
		`true`, `{"type":"integer"}`, `{"type":"boolean"}`, `{"type":["boolean","null"]}`, `{"type":"integer","minimum":1,"maximum":2}`,
		`{"type":"number","minimum":1.5,"maximum":1.5}`, `{"type":"number","minimum":1,"maximum":2,"multipleOf":0.5}`, `{"type":"string","pattern":"^ab?$"}`,
		`{"type":"array","items":{"type":"integer","minimum":1,"maximum":2},"minItems":1,"maxItems":2}`, `{"type":"array","items":{"enum":[1,2]},"uniqueItems":true,"minItems":1}`,
		`{"type":"object","properties":{"a":{"const":1},"b":{"type":"boolean"}},"required":["a"],"additionalProperties":false}`,
		`{"type":"object","patternProperties":{"^[ab]$":{"enum":[1,2]}},"additionalProperties":false,"minProperties":2}`, `{"type":["array","object","null"]}`,
		`{"not":{"enum":[` + some(3) + `]}}`, `{"anyOf":[{"type":"string"},{"enum":[` + some(2) + `]}]}`,
	}
	if n := rng.IntN(2 * len(kinds)); n < len(kinds) {
		return kinds[n]
	}
	return `{"enum":[` + some(5) + `]}`
}

// randomArray returns a random schema of arrays with unique items.
func randomArray(rng *rand.Rand) string {
	words := []string{`"type":"array"`}
	add := func(format string, args ...any) { words = append(words, fmt.Sprintf(format, args...)) }
	if rng.IntN(8) > 0 {
		add(`"uniqueItems":true`)
	}
	if n := rng.IntN(4); n > 0 {
		var list []string
		for range n {
			list = append(list, randomItem(rng))
		}
		add(`"prefixItems":[%s]`, strings.Join(list, ","))
	}
	if rng.IntN(4) > 0 {
		add(`"items":%s`, randomItem(rng))
	}
	if rng.IntN(4) > 0 {
		add(`"minItems":%d`, rng.IntN(5))
	}
	if rng.IntN(3) == 0 {
		add(`"maxItems":%d`, 1+rng.IntN(4))
	}
	contain := func() string {
		out := fmt.Sprintf(`"contains":%s,"minContains":%d`, randomItem(rng), rng.IntN(4))
		if rng.IntN(3) == 0 {
			out += fmt.Sprintf(`,"maxContains":%d`, rng.IntN(4))
		}
		return out
	}
	if rng.IntN(2) == 0 {
		add("%s", contain())
		if rng.IntN(3) == 0 {
			add(`"allOf":[{%s}]`, contain())
		}
		if rng.IntN(6) == 0 {
			add(`"unevaluatedItems":false`)
		}
	}
	return "{" + strings.Join(words, ",") + "}"
}

// TestRandomUnique compares random schemas with all short arrays of some values, and
// samples arrays from masks: each ends, and is valid.
func TestRandomUnique(t *testing.T) {
	t.Parallel()
	v, words, end := byteVocabulary(t, slices.Concat(universe, strings.Split(","+strings.Join(universe, "\n,"), "\n"))...)
	rng := rand.New(rand.NewPCG(1, 2))
	ended := 0
	rounds := irtest.Rounds(20, 60)
	for range rounds {
		schema := randomArray(rng)
		switch rng.IntN(8) {
		case 0:
			schema = fmt.Sprintf(`{"anyOf":[%s,%s],"uniqueItems":true}`, schema, randomArray(rng))
		case 1:
			schema = fmt.Sprintf(`{"allOf":[%s,%s]}`, schema, randomArray(rng))
		case 2:
			schema = fmt.Sprintf(`{"anyOf":[%s,%s]}`, schema, randomArray(rng))
		case 3:
			schema = fmt.Sprintf(`{"type":"array","items":{"anyOf":[%s,%s]},"maxItems":3,"uniqueItems":%v}`, schema, randomArray(rng), rng.IntN(2) == 0)
		}
		var values []string
		for _, i := range rng.Perm(len(universe))[:5] {
			values = append(values, universe[i])
		}
		g, err := ParseSchema([]byte(schema))
		if err != nil && strings.Contains(err.Error(), "two items are equal") {
			continue // uniqueItems in a complement
		}
		if err != nil && !strings.Contains(err.Error(), "matches no text") {
			t.Fatalf("%s: %v", schema, err)
		}
		compareArrays(t, g, newValidator(t, schema), values, 4, nil)
		if g != nil {
			ended += sampleValid(t, schema, v, words, end, 4)
		}
	}
	if ended < rounds*5/3 {
		t.Errorf("%d sampled texts end", ended)
	}
}

// compareArrays checks which arrays that begin with the given items a grammar matches; nil
// matches none.
func compareArrays(t *testing.T, g *Grammar, valid validator, values []string, more int, items []string) {
	t.Helper()
	text := "[" + strings.Join(items, ",") + "]"
	value, err := readJSON([]byte(text))
	if err != nil {
		t.Fatal(err)
	}
	got := false
	if g != nil {
		if got, err = g.Match(text); err != nil {
			t.Fatalf("%s: %s: %v", valid.schema, text, err)
		}
	}
	if want := valid.holds(t, value); got != want {
		t.Fatalf("%s: %s: match %v, want %v", valid.schema, text, got, want)
	}
	if more == 0 {
		return
	}
	for _, v := range values {
		compareArrays(t, g, valid, values, more-1, append(items, v))
	}
}

// A validator evaluates a schema that is read once.
type validator struct {
	schema string
	root   any
}

func newValidator(t *testing.T, schema string) validator {
	t.Helper()
	root, err := readJSON([]byte(schema))
	if err != nil {
		t.Fatal(err)
	}
	return validator{schema, root}
}

// holds reports whether a value is valid against the schema.
func (v validator) holds(t *testing.T, value any) bool {
	t.Helper()
	w := newSchemaWriter(v.root)
	valid := w.holds(value, w.node(v.root, ""))
	if w.err != nil {
		t.Fatalf("%s: %v", v.schema, w.err)
	}
	return valid
}
