package grammar

import (
	"fmt"
	"maps"
	"runtime"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/ir/irtest"
)

// listOf returns n copies of a text in which % stands for a number.
func listOf(n int, format string) string {
	parts := make([]string, n)
	for i := range parts {
		parts[i] = strings.ReplaceAll(format, "%", fmt.Sprint(i))
	}
	return strings.Join(parts, ",")
}

// many formats a schema with a list.
func many(n int, format, item string) string { return fmt.Sprintf(format, listOf(n, item)) }

// hostileSchemas returns large schemas that make merging and comparing slow.
func hostileSchemas() map[string]string {
	runes := make([]string, 0, 60000)
	for r := rune(0x4E00); len(runes) < 20000; r++ {
		runes = append(runes, fmt.Sprintf(`"%c":{}`, r))
	}
	return map[string]string{
		"oneOf of constants":  many(30000, `{"oneOf":[%s]}`, `{"const":"value %"}`),
		"oneOf of types":      many(40000, `{"oneOf":[%s]}`, `{"type":"object"}`),
		"oneOf of objects":    many(8000, `{"oneOf":[%s]}`, `{"type":"object","required":["k"],"properties":{"k":{"const":"k%"}}}`),
		"oneOf of ranges":     many(8000, `{"oneOf":[%s]}`, `{"type":"integer","minimum":1%0,"maximum":1%5}`),
		"enum":                many(100000, `{"enum":[%s]}`, `"%"`),
		"enum beside pattern": fmt.Sprintf(`{"enum":[%s],"pattern":%q}`, listOf(50000, `"value %"`), strings.Repeat("(a|b)*", 40000)),
		"enum beside anyOf":   fmt.Sprintf(`{"enum":[%s],"anyOf":[%s]}`, listOf(20000, `"v%"`), listOf(20000, `{"const":%}`)),
		"enums in enums":      fmt.Sprintf(`{"enum":[%s],"allOf":[%s]}`, listOf(20000, `"v%"`), listOf(3000, `{"enum":["v%",{}]}`)),
		"properties":          many(40000, `{"properties":{%s}}`, `"p%":{"type":"null"}`),
		"first characters":    `{"properties":{` + strings.Join(runes, ",") + `}}`,
		"required":            many(80000, `{"required":[%s]}`, `"p%"`),
		"allOf":               fmt.Sprintf(`{"properties":{"x":{"enum":[%s]}},"allOf":[%s]}`, listOf(40000, `%`), listOf(10000, `{"properties":{"x":true}}`)),
		"allOf of enums":      fmt.Sprintf(`{"enum":[%s],"allOf":[%s]}`, listOf(40000, `%`), listOf(5000, `{"enum":[1,2]}`)),
		"anyOf of anyOf":      strings.Repeat(`{"anyOf":[{"minimum":1},{"minimum":2}],"allOf":[`, 60) + "true" + strings.Repeat("]}", 60),
		"patterns":            many(5000, `{"anyOf":[%s]}`, `{"type":"string","pattern":"^[\\W][\\p{L}]{9}%"}`),
		"classes":             fmt.Sprintf(`{"type":"string","pattern":%q}`, strings.Repeat(`[\W]`, 100000)),
		"repetitions":         `{"type":"string","pattern":"((((a{30}){30}){30}){30}){30}"}`,
		"lengths":             many(20000, `{"anyOf":[%s]}`, `{"type":"string","minLength":6%}`),
		"counts":              strings.Repeat(`{"minItems":65000,"items":`, 100) + "true" + strings.Repeat("}", 100),
		"references":          many(15000, `{"$defs":{%s},"anyOf":[{"$ref":"#/$defs/d1"}]}`, `"d%":{"anyOf":[{"$ref":"#/$defs/d1%"},{"$ref":"#/$defs/d2"}]}`),
		"long pointer":        `{"$ref":"#` + strings.Repeat("/$defs", 150000) + `"}`,
		"tiny numbers":        many(50000, `{"enum":[%s],"minimum":0}`, `1e-9%`),
		"types":               fmt.Sprintf(`{"enum":[%s],"allOf":[{"type":[%s]}]}`, listOf(20000, `%`), listOf(50000, `"string"`)),
		"pointers":            fmt.Sprintf(`{"allOf":[%s],"$defs":{"a":{"$ref":"#/$defs/%[2]s"},%[2]q:true}}`, listOf(10000, `{"$ref":"#/$defs/a"}`), strings.Repeat("x", 300000)),
		"patterns of nothing": fmt.Sprintf(`{"type":"object","required":[%s],"additionalProperties":{"type":"string","pattern":%q}}`, listOf(20000, `"%"`), strings.Repeat("a{0}", 100000)),
		"required of oneOf":   fmt.Sprintf(`{"required":[%s],"oneOf":[%s]}`, listOf(20000, `"%"`), listOf(3000, `{"properties":{"a%":{"const":1}},"minProperties":%}`)),
		"long string":         `{"const":"` + strings.Repeat("a", 1000000) + `"}`,
		"deep constants":      `{"enum":[` + strings.Repeat("[", 150) + strings.Repeat("]", 150) + `],"$ref":"#/$defs/a","$defs":{"a":{"items":{"anyOf":[{"$ref":"#/$defs/a"},{"$ref":"#/$defs/a"}]},"minItems":1}}}`,
	}
}

// hostileLogic returns schemas whose combinations are large.
func hostileLogic() map[string]string {
	return map[string]string{
		"look-aheads":          fmt.Sprintf(`{"type":"string","pattern":%q}`, strings.Repeat(`(?=.*[a-f]{1,9}x)`, 2000)),
		"nested look-aheads":   fmt.Sprintf(`{"type":"string","pattern":%q}`, strings.Repeat(`(?!a`, 150)+strings.Repeat(`)`, 150)),
		"look-aheads inside":   fmt.Sprintf(`{"type":"string","maxLength":24,"pattern":"^%s(?=.{0,40}$)%s"}`, strings.Repeat(`(?=(?:`, 20), strings.Repeat(`.)*$)`, 20)),
		"nothing repeated":     `{"type":"string","pattern":"(((((){1000}){1000}){1000}){1000}){1000}","maxLength":5}`,
		"long base":            many(1000, `{"$id":"http://a/`+strings.Repeat("x", 200_000)+`/","$defs":{%s}}`, `"d%":{"$anchor":"a%"}`),
		"base in each":         many(5000, `{"$id":"http://a/`+strings.Repeat("x", 2000)+`/","$defs":{%s}}`, `"d%":{"$anchor":"a%"}`),
		"constants":            strings.Replace(many(20000, `{"enum":[%s],"allOf":[#]}`, `%`), "#", many(20000, "%s", `{"minimum":0}`), 1),
		"short texts":          strings.Replace(many(20000, `{"enum":[%s],"allOf":[#]}`, `"%"`), "#", many(20000, "%s", `{"minLength":1}`), 1),
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
		"unique prefixItems":   many(4000, `{"type":"array","prefixItems":[%s],"minItems":4000,"uniqueItems":true}`, `{"enum":[%,1%,2%,3,4,5,6]}`),
		"unique items":         `{"type":"array","prefixItems":[{"type":"string"},{"not":{"minLength":2}}],"items":{"type":"string","pattern":"^\\w{1,2}$"},"minItems":4000,"uniqueItems":true}`,
		"unique contains":      many(6, `{"type":"array","uniqueItems":true,"minItems":99,"items":{"type":"integer","minimum":0,"maximum":98},"allOf":[%s]}`, `{"contains":{"multipleOf":1%},"minContains":3,"maxContains":5}`),
		"unique classes":       uniqueClasses(3000),
		"unique trees":         many(20, `{"type":"array","items":{"$ref":"#/$defs/a"},"minItems":4000,"uniqueItems":true,"$defs":{"a":{"type":["null","object"],"properties":{%s},"additionalProperties":false}}}`, `"p%":{"$ref":"#/$defs/a"}`),
		"except constants":     many(9000, `{"not":{"enum":[%s]},"type":["array","object"]}`, `[1%,[%],{"a%":{"b":[%]}}]`),
		"except objects":       many(9000, `{"not":{"enum":[%s]},"type":["array","object"]}`, `{"a%":1,"b%":{"c":[%]}}`),
		"dependentRequired":    many(5000, `{"type":"object","dependentRequired":{%s}}`, `"a%":["b%","c"]`),
		"multipleOf":           many(3000, `{"type":"number","minimum":0,"maximum":1e30,"allOf":[%s]}`, `{"not":{"multipleOf":1%.7}}`),
		"except values":        many(30000, `{"type":["array","object","number","string"],"not":{"enum":[%s]}}`, `[%,"a%"]`),
		"anchors":              many(20000, `{"$defs":{%s},"$ref":"#a1"}`, `"d%":{"$anchor":"a%","$ref":"#a2%"}`),
	}
}

// uniqueClasses returns a schema of n+1 unique items. Each number below n may be other
// items than the others, so the number of each that remains is counted by itself.
func uniqueClasses(n int) string {
	prefix := []string{"true"}
	for bit := range 12 {
		var list []string
		for i := range n {
			if i>>bit&1 == 1 {
				list = append(list, fmt.Sprint(i))
			}
		}
		if len(list) > 0 {
			prefix = append(prefix, `{"enum":[`+strings.Join(list, ",")+`]}`)
		}
	}
	return fmt.Sprintf(`{"type":"array","prefixItems":[%s],"items":{"enum":[%s]},"minItems":%d,"uniqueItems":true}`, strings.Join(prefix, ","), listOf(n, "%"), n+1)
}

// allHostile returns all hostile schemas.
func allHostile() map[string]string {
	schemas := hostileSchemas()
	for _, more := range []map[string]string{hostileLogic(), hostileNumbers(), hostilePatterns(), hostileTexts(), hostileObjects(), hostileReferences()} {
		maps.Copy(schemas, more)
	}
	return schemas
}

// hostileNames returns the names of the hostile schemas in order, so that a seed draws the same
// of them in every run.
func hostileNames(schemas map[string]string) []string {
	return slices.Sorted(maps.Keys(schemas))
}

// TestHostileSchemas checks that schemas of up to 1 MB are compiled or refused quickly.
func TestHostileSchemas(t *testing.T) {
	schemas := allHostile()
	for _, name := range irtest.Sample(t, 4, hostileNames(schemas)) {
		schema := schemas[name]
		if len(schema) > maxSource {
			t.Errorf("%s: %d bytes", name, len(schema))
		}
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		start := time.Now()
		_, err := ParseSchema([]byte(schema))
		took := time.Since(start)
		runtime.ReadMemStats(&after)
		allocated := (after.TotalAlloc - before.TotalAlloc) >> 20
		t.Logf("%s: %d KB: %v, %d MB allocated: %.150v", name, len(schema)/1024, took.Round(time.Millisecond), allocated, err)
		if took > 20*time.Second { // about 1 s at most, and far above the time under the race detector
			t.Errorf("%s took %v", name, took)
		}
		if allocated > 4096 { // 1,100 MB at most, 2,300 under the race detector
			t.Errorf("%s allocated %d MB", name, allocated)
		}
		if err != nil && len(err.Error()) > 4000 {
			t.Errorf("%s: the error has %d bytes: %.200v", name, len(err.Error()), err)
		}
	}
}
