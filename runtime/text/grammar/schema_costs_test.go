package grammar

import (
	"fmt"
	"strconv"
	"strings"
)

// The schemas of this file took between 1.5 s and minutes, or gigabytes, before their
// work was counted.

// copies returns n copies of a text, separated by commas.
func copies(n int, text string) string {
	return strings.TrimSuffix(strings.Repeat(text+",", n), ",")
}

// fraction returns a number with many digits, different for each i.
func fraction(i, digits int) string {
	text := strconv.Itoa(1000003 * (i + 7))
	return "1." + strings.Repeat(text, digits/len(text)) + "7"
}

func hostileNumbers() map[string]string {
	var steps, others, values, ranges []string
	for i := range 1000 {
		steps = append(steps, `{"multipleOf":`+fraction(i, 380)+`}`)
		others = append(others, `{"not":{"multipleOf":`+fraction(i, 380)+`}}`)
		values = append(values, fraction(i*31, 380))
		ranges = append(ranges, fmt.Sprintf(`{"minimum":0,"maximum":%d,"multipleOf":%d,"not":{"multipleOf":%[2]d}}`, 4000*(100003+i), 100003+i))
	}
	list := func(items []string) string { return strings.Join(items, ",") }
	return map[string]string{
		"digits":               `{"type":"number","allOf":[` + list(steps) + `]}`,
		"digits of values":     `{"enum":[` + list(values) + `],"allOf":[` + list(others) + `]}`,
		"excluded multiples":   many(32000, `{"type":"number","allOf":[%s]}`, `{"not":{"multipleOf":1%.7}}`),
		"multiples of nothing": `{"anyOf":[` + list(ranges) + `],"type":"integer"}`,
	}
}

func hostilePatterns() map[string]string {
	pattern := func(rest, text string) string { return fmt.Sprintf(`{"type":"string"%s,"pattern":%q}`, rest, text) }
	one, two := make([]string, 45), make([]string, 40)
	for i := range one {
		one[i] = fmt.Sprintf("(?=a.{%d})", i)
	}
	for i := range two {
		two[i] = fmt.Sprintf("(?=.{0,%d}x)", i+1)
	}
	classes := ""
	for _, name := range strings.Fields("L Lu Ll Lo M Mn N Nd P Po S Sm So Latin Greek Arabic Han Cyrillic Alphabetic Lm Mc Cf Common Devanagari") {
		classes += `\\p{` + name + `}\\P{` + name + `}`
	}
	return map[string]string{
		"properties of characters": many(140, `{"anyOf":[%s],"type":"string"}`, `{"pattern":"%`+strings.Repeat(`\\p{Zl}`, 1000)+`"}`),
		"word boundaries":          pattern(`,"maxLength":5`, strings.Repeat(`\b`, 60000)),
		"many threads":             pattern(`,"maxLength":3000`, "(a|b|aa|ab|ba|bb){300}(a|b){300}x"),
		"looks and alternatives":   pattern(`,"maxLength":5`, `^(?:`+strings.Join(one, "|")+`)(?:`+strings.Join(two, "|")+`)(?:`+strings.Repeat("|", 15000)+`)x`),
		"negated classes":          many(4000, `{"type":"string","anyOf":[%s]}`, `{"pattern":"%`+strings.Repeat(`\\W`, 80)+`"}`),
		"alphabets":                many(1500, `{"type":"object","properties":{%s}}`, `"%":{"type":"string","maxLength":3,"pattern":"%`+classes+`"}`),
		"class repeated":           pattern("", `^`+strings.Repeat(`\W{1000}`, 80)),
		"class in each state":      pattern(`,"maxLength":60000`, `^(\W|\p{L}\p{Lu}|\p{Nd}a)*$`),
		"looks behind":             pattern(`,"maxLength":600`, strings.Repeat(`(?<!a.{9})`, 500)+`(a|b)*a(a|b){12}x`),
		"empty alternatives":       pattern("", strings.Repeat("|", 1000000)),
	}
}

func hostileTexts() map[string]string {
	long := "^" + strings.Repeat("a?", 30000)
	return map[string]string{
		"long pattern":  fmt.Sprintf(`{"type":"string","pattern":%q,"allOf":[%s]}`, long, copies(20000, `{"minLength":1}`)),
		"long formats":  fmt.Sprintf(`{"type":"string","pattern":%q,"allOf":[%s]}`, long, copies(20000, `{"format":"date"}`)),
		"not words":     many(2000, `{"type":"string","allOf":[%s]}`, `{"not":{"enum":["word % of a long text of many characters that is long","x%"]}}`),
		"long words":    many(10000, `{"type":"string","maxLength":100,"not":{"enum":[%s]},"allOf":[{"not":{"enum":["x"]}}]}`, `"word number % and some more of the text to make it long enough"`),
		"long name":     fmt.Sprintf(`{"properties":{"%s":{"foo":1}}}`, strings.Repeat("x", 1_000_000)),
		"long path":     fmt.Sprintf(`{"properties":{"%s":{"properties":{%s}}}}`, strings.Repeat("x", 500_000), listOf(30000, `"%":{}`)),
		"deep path":     strings.Repeat(`{"properties":{"`+strings.Repeat("x", 100)+`":`, 90) + many(60000, `{"properties":{%s}}`, `"%":{}`) + strings.Repeat("}}", 90),
		"long $schema":  fmt.Sprintf(`{"$schema":"%s2020-12","anyOf":[%s]}`, strings.Repeat("2020-1x", 70000), copies(25000, `{"prefixItems":[]}`)),
		"long pointers": fmt.Sprintf(`{"properties":{%s},"$defs":{"x":{"allOf":[%s]},"d":%strue%s}}`, listOf(100, `"p%":{"unevaluatedProperties":false,"allOf":[{"$ref":"#/$defs/x"}]}`), copies(1000, `{"$ref":"#/$defs/d`+strings.Repeat("/not", 150)+`"}`), strings.Repeat(`{"not":`, 150), strings.Repeat("}", 150)),
	}
}

func hostileObjects() map[string]string {
	return map[string]string{
		"allOf of properties":   fmt.Sprintf(`{"allOf":[%s]}`, copies(43000, `{"properties":{"":{}}}`)),
		"allOf of names":        fmt.Sprintf(`{"allOf":[%s]}`, copies(43000, `{"propertyNames":{}}`)),
		"allOf of members":      many(20000, `{"type":"object","allOf":[%s]}`, `{"not":{"propertyNames":{"minLength":%}}}`),
		"conditions of shapes":  fmt.Sprintf(`{"type":"object","properties":{%s},"$defs":{"b":{"required":[%s]},"c":{"anyOf":[%s]}}}`, listOf(60, `"p%":{"type":"object","allOf":[{"$ref":"#/$defs/b"},{"$ref":"#/$defs/c"}]}`), listOf(60, `"`+strings.Repeat("n", 5000)+`%"`), listOf(500, `{"required":["x%"]}`)),
		"values in many places": fmt.Sprintf(`{"type":"object","properties":{%s},"$defs":{"e":{"const":[%s]}}}`, listOf(500, `"p%":{"anyOf":[{"type":"null"},{"allOf":[{"$ref":"#/$defs/e"},{"const":[]}]}]}`), copies(300_000, `""`)),
	}
}

func hostileReferences() map[string]string {
	var nested, cycle []string
	for i := range 180 {
		nested = append(nested, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"const":"x%[1]d"}]}`, i, i+1))
	}
	for i := range 60 {
		cycle = append(cycle, fmt.Sprintf(`"d%d":{"anyOf":[{"$ref":"#/$defs/d%d"},{"$ref":"#/$defs/d%[2]d"}]}`, i, i+1))
	}
	return map[string]string{
		"references to alternatives": fmt.Sprintf(`{"anyOf":[%s],"$defs":{"a":{"anyOf":[%s]}}}`, copies(30000, `{"$ref":"#/$defs/a"}`), listOf(4000, `{"type":"object","minProperties":%}`)),
		"enum in nested anyOf":       fmt.Sprintf(`{"$ref":"#/$defs/d0","$defs":{"e":{"enum":[%s]},%s,"d180":{"$ref":"#/$defs/e"}}}`, listOf(60000, `"%"`), strings.Join(nested, ",")),
		"dynamic anchors":            fmt.Sprintf(`{"$defs":{%s},"properties":{%s}}`, listOf(10000, `"d%":{"$dynamicAnchor":"a%"}`), listOf(10000, `"p%":{"type":"null"}`)),
		"proofs in a cycle":          fmt.Sprintf(`{"$ref":"#/$defs/r","$defs":{"r":{"oneOf":[{"$ref":"#/$defs/d0"},{"type":"object","required":["y"]}]},%s,"d60":{"anyOf":[{"$ref":"#/$defs/r"},{"type":"null"}]}}}`, strings.Join(cycle, ",")),
	}
}
