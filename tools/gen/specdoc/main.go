// Command specdoc writes docs/reference/spec.md, the keys of a model spec, from
// its JSON Schema.
package main

import (
	"encoding/json"
	"flag"
	"fmt"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/spec"
)

//go:generate go run . -o ../../../docs/reference/spec.md

const head = `# Model spec

Generated from the types in ` + "`spec`" + ` and the parameters of [modules](../modules.md) by ` + "`go generate ./tools/gen/specdoc`" + `; do not edit.

A model spec is a YAML file. [Add a model](../add-a-model.md) shows how to write one. Most keys have a default that comes from
the model's ` + "`config.json`" + ` or from its family in [models/families](../../models/families). Below ` + "`network_structure`" + ` a value
may also be an expression over ` + "`config.json`" + `: ` + "`$num_attention_heads`" + ` or ` + "`= hidden_size / 64`" + `. ` + "`iflowc schema`" + ` prints the
JSON Schema for your editor.
`

func main() {
	out := flag.String("o", "docs/reference/spec.md", "file to write")
	flag.Parse()
	text, err := page()
	if err == nil {
		err = os.WriteFile(*out, []byte(text), 0o644)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, "specdoc:", err)
		os.Exit(1)
	}
}

// A node is a JSON Schema or a part of one.
type node struct {
	Description string
	Type        any // one name or a list of names
	Enum        []any
	Default     any
	AnyOf       []node
	Items       *node
	Properties  map[string]node
}

// page returns the text of the page.
func page() (string, error) {
	var root node
	if err := json.Unmarshal(spec.Schema(), &root); err != nil {
		return "", err
	}
	var b strings.Builder
	b.WriteString(head)
	section(&b, "Top level", root)
	return b.String(), nil
}

// section writes the table of an object's keys, then the sections of keys with object values.
func section(b *strings.Builder, title string, n node) {
	fmt.Fprintf(b, "\n## %s\n\n| key | value | default | meaning |\n|---|---|---|---|\n", title)
	keys := slices.Sorted(maps.Keys(n.Properties))
	var narrowed []string
	for _, key := range keys {
		p := n.Properties[key]
		if p.Description == spec.NarrowedDoc {
			narrowed = append(narrowed, "`"+key+"`")
			continue
		}
		value := values(p)
		if object(p) != nil {
			value = "a section: [" + key + "](#" + key + ")"
		}
		fmt.Fprintf(b, "| `%s` | %s | %s | %s |\n", key, value, initial(p), strings.ReplaceAll(p.Description, "|", `\|`))
	}
	if narrowed != nil {
		fmt.Fprintf(b, "\nFor the modules of this section alone, it may also have these keys of [network_structure](#network_structure): %s.\n", strings.Join(narrowed, ", "))
	}
	for _, key := range keys {
		if inner := object(n.Properties[key]); inner != nil {
			section(b, "`"+key+"`", *inner)
		}
	}
}

// object returns the alternative with keys of its own, or nil.
func object(n node) *node {
	if len(n.Properties) > 0 {
		return &n
	}
	for _, a := range n.AnyOf {
		if o := object(a); o != nil {
			return o
		}
	}
	return nil
}

// values describes the values of a key: names, or a type.
func values(n node) string {
	for _, a := range n.AnyOf {
		if len(a.AnyOf) == 2 && a.AnyOf[0].Items != nil {
			return values(a.AnyOf[1]) + ", or a list by layer"
		}
	}
	if names := words(n); len(names) > 0 {
		return strings.Join(names, ", ")
	}
	for _, a := range append(n.AnyOf[:len(n.AnyOf):len(n.AnyOf)], n) {
		if a.Items != nil {
			return "list of " + values(*a.Items)
		}
		if kind := kindOf(a.Type); kind != "" {
			return kind
		}
		for _, b := range a.AnyOf {
			if kind := kindOf(b.Type); kind != "" {
				return kind
			}
		}
	}
	return "any"
}

// words returns the names of an enumeration.
func words(n node) (names []string) {
	for _, e := range n.Enum {
		if s, ok := e.(string); ok && s != "" {
			names = append(names, "`"+s+"`")
		}
	}
	for _, a := range n.AnyOf {
		names = append(names, words(a)...)
	}
	return names
}

// kindOf returns the name of a type; null besides a type means that the key may be empty.
func kindOf(t any) string {
	list, ok := t.([]any)
	if !ok {
		list = []any{t}
	}
	names := map[string]string{"object": "map", "boolean": "true or false", "array": "list"}
	for _, name := range list {
		if s, ok := name.(string); ok && s != "null" {
			if better := names[s]; better != "" {
				return better
			}
			return s
		}
	}
	return ""
}

// initial returns the default of a key, or "" if there is none.
func initial(n node) string {
	if n.Default == nil {
		return ""
	}
	return fmt.Sprintf("`%v`", n.Default)
}
