package spec

import (
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"reflect"
	"regexp"
	"strings"
	"testing"

	"gopkg.in/yaml.v3"
)

// conforms validates a document against the subset of JSON Schema that Schema
// uses, and fails for other keywords.
func conforms(t *testing.T, s map[string]any, x any, path string) error {
	for key, arg := range s {
		var err error
		switch key {
		case "$schema", "title", "description", "default":
		case "type":
			err = hasType(arg, x)
		case "enum":
			if !anyOf(arg.([]any), func(w any) bool { return fmt.Sprint(w) == fmt.Sprint(x) }) {
				err = fmt.Errorf("%v is none of %v", x, arg)
			}
		case "pattern":
			if str, ok := x.(string); ok && !regexp.MustCompile(arg.(string)).MatchString(str) {
				err = fmt.Errorf("%q does not match %s", str, arg)
			}
		case "anyOf":
			if !anyOf(arg.([]any), func(w any) bool { return conforms(t, w.(map[string]any), x, path) == nil }) {
				err = fmt.Errorf("%v fits nothing of %v", x, arg)
			}
		case "items":
			for i, e := range asList(x) {
				if err := conforms(t, arg.(map[string]any), e, fmt.Sprint(path, "[", i, "]")); err != nil {
					return err
				}
			}
		case "properties", "additionalProperties":
		default:
			t.Fatalf("schema keyword %q is not known here", key)
		}
		if err != nil {
			return fmt.Errorf("%s: %w", path, err)
		}
	}
	object, _ := x.(map[string]any)
	for k, v := range object {
		props, _ := s["properties"].(map[string]any)
		p, ok := props[k].(map[string]any)
		switch more := s["additionalProperties"].(type) {
		case bool:
			if !ok && !more {
				return fmt.Errorf("%s: unknown key %q", path, k)
			}
		case map[string]any:
			if !ok {
				p = more
			}
		}
		if err := conforms(t, p, v, path+"."+k); err != nil {
			return err
		}
	}
	return nil
}

func anyOf(list []any, f func(any) bool) bool {
	for _, x := range list {
		if f(x) {
			return true
		}
	}
	return false
}

func asList(x any) []any { l, _ := x.([]any); return l }

func hasType(want, x any) error {
	have := "object"
	switch v := x.(type) {
	case nil:
		have = "null"
	case string:
		have = "string"
	case bool:
		have = "boolean"
	case []any:
		have = "array"
	case int:
		have = "integer"
	case float64:
		if have = "number"; v == float64(int64(v)) {
			have = "integer"
		}
	}
	list, ok := want.([]any)
	if !ok {
		list = []any{want}
	}
	if anyOf(list, func(w any) bool { return w == have || w == "number" && have == "integer" }) {
		return nil
	}
	return fmt.Errorf("%v is of type %s, want %v", x, have, want)
}

func readSchema(t *testing.T) map[string]any {
	t.Helper()
	var s map[string]any
	if err := json.Unmarshal(Schema(), &s); err != nil {
		t.Fatal(err)
	}
	return s
}

func asDocument(t *testing.T, text []byte) any {
	t.Helper()
	var doc any
	if err := yaml.Unmarshal(text, &doc); err != nil {
		t.Fatal(err)
	}
	return doc
}

// TestSchemaAccepts checks that every model spec of the library, of Inferflow and
// as printed for each family's model conforms to the schema.
func TestSchemaAccepts(t *testing.T) {
	t.Parallel()
	s := readSchema(t)
	checked := 0
	for _, glob := range []string{"../models/*.yaml", "testdata/inferflow/*", "testdata/inferflow/*/*"} {
		files, err := filepath.Glob(glob)
		if err != nil {
			t.Fatal(err)
		}
		for _, f := range files {
			if ext := filepath.Ext(f); ext != ".yaml" && ext != ".json" {
				continue
			}
			text, err := os.ReadFile(f)
			if err != nil {
				t.Fatal(err)
			}
			if err := conforms(t, s, asDocument(t, text), ""); err != nil {
				t.Errorf("%s: %v", f, err)
			}
			checked++
		}
	}
	folders, err := filepath.Glob("testdata/families/*/config.json")
	if err != nil {
		t.Fatal(err)
	}
	for _, f := range folders {
		m, err := Load(filepath.Dir(f), Options{})
		if err != nil {
			t.Fatal(err)
		}
		text, err := m.YAML()
		if err != nil {
			t.Fatal(err)
		}
		if err := conforms(t, s, asDocument(t, text), ""); err != nil {
			t.Errorf("%s: %v\n%s", f, err, text)
		}
		checked++
	}
	if checked < 100 {
		t.Errorf("%d model specs were checked, want more than 100", checked)
	}
}

// TestSchemaLikeParse checks that the schema and the parser accept the same documents.
func TestSchemaLikeParse(t *testing.T) {
	t.Parallel()
	s := readSchema(t)
	for _, c := range []struct {
		text string
		good bool
	}{
		{"{}", true},
		{"quant: q8_b32", true},
		{"quant: Q8", true},
		{"quant: [1]", false},
		{"iflow: 2", false},
		{"ifow: 1", false},
		{"model_file_format: safetensor", false},
		{"model_files: [a, b]", true},
		{"model_files: a", false},
		{"types: {a: f16}", true},
		{"network_structure: {type: transformer.llama}", true},
		{"network_structure: {type: LLAMA}", true},
		{"network_structure: {type: lama}", false},
		{"network_structure: {type: llama, norm_eps: $rms_norm_eps}", true},
		{"network_structure: {type: llama, norm_eps: small}", false},
		{"network_structure: {type: llama, norm_epsilon: 1}", false},
		{"network_structure: {type: llama, rope_dim: 1.5}", false},
		{"network_structure: {type: llama, attention_pattern: [full, local]}", true},
		{"network_structure: {type: llama, attention_pattern: [full, none]}", false},
		{"network_structure: {type: llama, rope_scaling: {rope_type: yarn, factor: 4}}", true},
		{"network_structure: {type: llama, rope_scaling: {rope_type: spiral}}", false},
		{"network_structure: 3", false},
	} {
		_, _, err := parse("spec.yaml", []byte(c.text))
		if err == nil {
			_, err = Parse("spec.yaml", []byte(c.text), nil, Options{})
			if err != nil && c.text == "{}" {
				err = nil // without a network, Load checks the rest later
			}
		}
		fit := conforms(t, s, asDocument(t, []byte(c.text)), "")
		if (fit == nil) != c.good {
			t.Errorf("%s: schema says %v", c.text, fit)
		}
		if !c.good && err == nil {
			t.Errorf("%s: the parser accepts it, the schema does not", c.text)
		}
	}
}

// TestSchemaDescribes checks that the schema contains every key with its comment.
func TestSchemaDescribes(t *testing.T) {
	t.Parallel()
	top := readSchema(t)["properties"].(map[string]any)
	network := top["network_structure"].(map[string]any)["properties"].(map[string]any)
	for _, c := range []struct {
		of    reflect.Type
		props map[string]any
	}{{reflect.TypeFor[Spec](), top}, {reflect.TypeFor[Network](), network}} {
		for i := range c.of.NumField() {
			key := c.of.Field(i).Tag.Get("yaml")
			if _, ok := c.props[key]; !ok && key != "" && key != "-" {
				t.Errorf("%s: no key %s", c.of, key)
			}
		}
	}
	for key, want := range map[string]string{"rope_dim": "rotated channels of a head", "attn_softcap": "bound c on attention scores"} {
		if doc, _ := network[key].(map[string]any)["description"].(string); !strings.Contains(doc, want) {
			t.Errorf("%s: described as %q, want %q", key, doc, want)
		}
	}
	if d := network["norm_eps"].(map[string]any)["default"]; d != 1e-5 {
		t.Errorf("norm_eps: default %v", d)
	}
}
