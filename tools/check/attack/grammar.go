//go:build linux

package main

import (
	"fmt"
	"strings"
)

// constrained requests structured output.
func constrained(more obj) func(in info) act {
	return func(in info) act {
		body := obj{"prompt": "Once upon a time", "max_tokens": in.scale(128), "temperature": 1}
		for k, v := range more {
			body[k] = v
		}
		return ask(fixed(completions, body))
	}
}

// eachTime requests another constraint each time, to defeat caches.
func eachTime(form func(w *worker) obj) func(in info) act {
	return func(in info) act {
		return ask(func(w *worker) []byte {
			body := form(w)
			body["prompt"], body["max_tokens"] = "Once upon a time", in.scale(16)
			return post(completions, encode(body))
		})
	}
}

// grammarAttacks are patterns and grammars with large automata.
func grammarAttacks() []attack {
	heavy := constrained(obj{"guided_regex": "(.|\n)*[a-m ](.|\n){300}"})
	rules := func(n int, rule func(i int) string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, "r%d ::= %s\n", i, rule(i))
		}
		return b.String()
	}
	return []attack{
		{name: "regex-states", sends: `guided_regex (.|\n)*[a-m ](.|\n){300}`, workers: 1, like: ordinary{1, 128, 128}, do: heavy},
		{name: "regex-states-14", sends: "14 of them", workers: 14, like: ordinary{14, 128, 128}, do: heavy},
		{name: "regex-repeats", sends: "guided_regex with repeats of repeats", workers: 14, pause: refused, like: few, do: constrained(obj{"guided_regex": "(((a{1,60}b){1,60}c){1,60}d){1,60}"})},
		{name: "regex-long", sends: "guided_regex of 2 MB", workers: 14, pause: refused, like: few, do: constrained(obj{"guided_regex": fill("(ab|cd)?", 2<<20)})},
		{name: "regex-fresh", sends: "another guided_regex in each request", workers: 16, like: few, do: eachTime(func(w *worker) obj {
			return obj{"guided_regex": fmt.Sprintf("(.|\n)*[a-m ](.|\n){%d}x%d-%d", 100+w.seq%100, w.n, w.seq)}
		})},
		{name: "gbnf-ambiguous", sends: "a grammar with exponentially many parses", workers: 14, pause: refused, like: few,
			do: constrained(obj{"grammar": "root ::= s\ns ::= s s | s s s | [a-z ] | \"\"\n"})},
		{name: "gbnf-nullable", sends: "a grammar that derives nothing in many ways", workers: 14, pause: refused, like: few,
			do: constrained(obj{"grammar": "root ::= (a* b* a*)* (a* b* a*)* [a-z]*\na ::= b* | \"\"\nb ::= [a-z ]* | \"\"\n"})},
		{name: "gbnf-doubling", sends: "rules that double 40 times", workers: 14, pause: refused, like: few,
			do: constrained(obj{"grammar": "root ::= r0\n" + rules(40, func(i int) string { return fmt.Sprintf("r%d r%d", i+1, i+1) }) + "r40 ::= [a-z ]\n"})},
		{name: "gbnf-deep", sends: "10,000 brackets", workers: 14, pause: refused, like: few,
			do: constrained(obj{"grammar": "root ::= " + strings.Repeat("(", 10000) + "\"a\"" + strings.Repeat(")", 10000) + "\n"})},
		{name: "gbnf-many-rules", sends: "100,000 rules", workers: 14, pause: refused, like: few,
			do: constrained(obj{"grammar": "root ::= r0\n" + rules(100000, func(i int) string { return fmt.Sprintf("[a-z]+ r%d | \"x\"", (i+1)%100000) })})},
	}
}

// schemaAttacks are JSON schemas with large automata.
func schemaAttacks() []attack {
	schema := func(name, sends string, schema func() any) attack {
		return attack{name: "schema-" + name, sends: sends, workers: 14, pause: refused, like: few, do: func(in info) act {
			return constrained(obj{"response_format": obj{"type": "json_schema", "json_schema": obj{"name": "x", "schema": schema()}}})(in)
		}}
	}
	wide := func(n int) obj {
		list := obj{}
		for i := range n {
			list[fmt.Sprint("property", i)] = obj{"type": "string"}
		}
		return list
	}
	return []attack{
		schema("wide", "a schema of 20,000 optional properties", func() any { return obj{"type": "object", "properties": wide(20000)} }),
		schema("deep", "a schema 90 deep", func() any {
			var s any = obj{"type": "string"}
			for range 45 {
				s = obj{"anyOf": []any{s}}
			}
			return s
		}),
		schema("enum", "an enum of 100,000 texts", func() any {
			list := make([]string, 100000)
			for i := range list {
				list[i] = fmt.Sprint("value ", i)
			}
			return obj{"enum": list}
		}),
		schema("ref-bomb", "$refs that double 30 times", func() any {
			defs := obj{"d30": obj{"type": "integer"}}
			for i := range 30 {
				next := obj{"$ref": fmt.Sprintf("#/$defs/d%d", i+1)}
				defs[fmt.Sprint("d", i)] = obj{"type": "array", "prefixItems": []any{next, next}, "minItems": 2, "anyOf": []any{next, next}}
			}
			return obj{"$ref": "#/$defs/d0", "$defs": defs}
		}),
		schema("ref-loop", "$refs in a circle", func() any {
			return obj{"$ref": "#/$defs/a", "$defs": obj{"a": obj{"$ref": "#/$defs/b"}, "b": obj{"$ref": "#/$defs/a"}}}
		}),
		schema("items", "arrays of up to a million arrays", func() any {
			return obj{"type": "array", "maxItems": 1000000, "minItems": 1000000, "items": obj{"type": "array", "maxItems": 1000000, "items": obj{"type": "string", "maxLength": 1000000}}}
		}),
		schema("pattern", "a pattern of many states", func() any { return obj{"type": "string", "pattern": "^(.|\n)*[a-m ](.|\n){300}$"} }),
		{name: "schema-fresh", sends: "another schema in each request", workers: 16, like: few, do: eachTime(func(w *worker) obj {
			s := obj{"type": "object", "properties": obj{fmt.Sprintf("p%d-%d", w.n, w.seq): obj{"type": "integer"}, "q": obj{"type": "array", "items": obj{"type": "string"}}}}
			return obj{"response_format": obj{"type": "json_schema", "json_schema": obj{"name": "x", "schema": s}}}
		})},
		{name: "tools-large", sends: "500 tools with schemas of 100 properties, one must be called", workers: 14, pause: refused, like: few, do: func(in info) act {
			list := make([]any, 500)
			for i := range list {
				list[i] = obj{"type": "function", "function": obj{"name": fmt.Sprint("tool", i), "parameters": obj{"type": "object", "properties": wide(100)}}}
			}
			return ask(fixed(conversations, obj{"messages": []any{obj{"role": "user", "content": "a"}}, "max_tokens": in.scale(32), "tools": list, "tool_choice": "required"}))
		}},
	}
}

// templateAttacks send a chat template, which Inferflow's requests may contain.
func templateAttacks() []attack {
	row := func(name, what, template string) attack {
		return attack{name: "template-" + name, sends: "a template with " + what, workers: 16, pause: refused, like: few, do: func(info) act {
			return ask(fixed("/inferflow", obj{"text": "a", "max_new_tokens": 8, "decoder_input_template": template}))
		}}
	}
	return []attack{
		row("loops", "nested loops", strings.Repeat("{% for i in range(100000) %}", 4)+"{{ i }}"+strings.Repeat("{% endfor %}", 4)),
		row("texts", "a text that doubles", "{% set ns = namespace(x='aaaaaaaaaaaaaaaa') %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x }}"),
		row("lists", "a list that doubles", "{% set ns = namespace(x=[1,2,3,4]) %}{% for i in range(60) %}{% set ns.x = ns.x + ns.x %}{% endfor %}{{ ns.x | length }}"),
		row("numbers", "a text times a billion", "{{ 'a' * 1000000000 }}{{ 'abc' | center(1000000000) }}"),
		row("macros", "a macro that calls itself", "{% macro m(x) %}{{ m(x) }}{{ m(x) }}{% endmacro %}{{ m(1) }}"),
		row("deep", "10,000 brackets", "{{ "+strings.Repeat("(", 10000)+"1"+strings.Repeat(")", 10000)+" }}"),
		row("replace", "a text that replace makes longer", "{% set ns = namespace(x='aa') %}{% for i in range(40) %}{% set ns.x = ns.x | replace('a', 'aaaaaaaa') %}{% endfor %}{{ ns.x }}"),
		row("large", "4 MB of text", fill("{{ text }}", largest-1024)),
	}
}
