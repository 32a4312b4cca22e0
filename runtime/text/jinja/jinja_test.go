package jinja

import (
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"strings"
	"testing"
)

// TestSnippets compares small templates with Jinja in transformers' configuration.
// tools/gen/reference/jinja.py writes the file.
func TestSnippets(t *testing.T) {
	t.Parallel()
	data, err := os.ReadFile("testdata/snippets.json")
	if err != nil {
		t.Fatal(err)
	}
	var file struct {
		Context json.RawMessage
		Cases   []struct{ Template, Out, Error string }
	}
	if err := json.Unmarshal(data, &file); err != nil {
		t.Fatal(err)
	}
	vars, err := FromJSON(file.Context)
	if err != nil {
		t.Fatal(err)
	}
	for _, c := range file.Cases {
		tmpl, err := Parse(c.Template)
		var out Str
		if err == nil {
			out, err = tmpl.Render(vars.(*Dict), Options{})
		}
		switch {
		case err != nil && c.Error == "":
			t.Errorf("%s\n    got error %v\n    want %q", c.Template, err, c.Out)
		case err == nil && c.Error != "":
			t.Errorf("%s\n    got %q\n    want error %s", c.Template, out.String(), c.Error)
		case err != nil && c.Error != "":
			if got, want := message(err), wantedError(c.Template, c.Error); got != want {
				t.Errorf("%s\n    got error  %s\n    want error %s", c.Template, got, want)
			}
		case err == nil && out.String() != c.Out:
			t.Errorf("%s\n    got  %q\n    want %q", c.Template, out.String(), c.Out)
		}
	}
}

// message returns an error's text without its line number.
func message(err error) string {
	var e *Error
	if errors.As(err, &e) {
		return e.Message
	}
	return err.Error()
}

// wantedError returns the expected error: one of ownErrors, or Python's error, without
// the class for Jinja's own errors.
func wantedError(template, python string) string {
	if own, ok := ownErrors[template]; ok {
		return own
	}
	class, text, _ := strings.Cut(python, ": ")
	if class == "UndefinedError" || strings.HasPrefix(class, "Template") {
		return text
	}
	return python
}

// ownErrors are the errors that differ from Python's, mostly where Jinja names the
// tokens of its lexer.
var ownErrors = map[string]string{
	`{{ s.startswith(1) }}`:                                `TypeError: startswith(): expected a str, not int`,
	`{{ none | last }}`:                                    `TypeError: 'NoneType' object is not iterable`,
	`{{ a is defined if t }}`:                              `unexpected 't'; expected the end of the tag`,
	`{{ d.items | length }}`:                               `TypeError: object of type 'function' has no len()`,
	`{% for a, b in xs %}{{ a }}{% endfor %}`:              `TypeError: 'int' object is not iterable`,
	`{% macro m(x) %}{{ x }}{% endmacro %}{{ m(1, x=2) }}`: `TypeError: macro 'm' got multiple values for argument 'x'`,
	`{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}`:      `RecursionError: calls nested deeper than 200`,
	`{{ s`:                    `}} is missing`,
	`{% if t %}`:              `unexpected end of the template; expected {% endif %}`,
	`{{ }}`:                   `expected an expression, found the end of the tag`,
	`{{ a b }}`:               `unexpected 'b'; expected the end of the tag`,
	`{% for x %}{% endfor %}`: `expected 'in', found the end of the tag`,
	`{# open`:                 `the comment does not end: #} is missing`,
	`{% raw %}x`:              `{% raw %} does not end: {% endraw %} is missing`,
	`{{ 'open }}`:             `the string does not end: "'open }}"`,
	`{{ (1 }}`:                `unexpected "}", expected ")"`,
	`{{ [1, }}`:               `unexpected "}", expected "]"`,
	`{% set 1 = 2 %}`:         `expected a name, found '1'`,
	`{% set true = 2 %}`:      `can't assign to "true"`,
	`{% break %}`:             `{% break %} stands outside of a loop`,
	`{{ a ? b }}`:             `unexpected char '?'`,
	`{{ 1 if }}`:              `expected an expression, found the end of the tag`,
	`{% if %}x{% endif %}`:    `expected an expression, found the end of the tag`,
	`{% include 'x' %}`:       `Encountered unknown tag 'include'.`,
	`{% extends 'x' %}`:       `Encountered unknown tag 'extends'.`,
	`{% import 'x' as y %}`:   `Encountered unknown tag 'import'.`,
}

// TestErrorItems checks the items of the loops that contain an error.
func TestErrorItems(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"{% for a in [1, 2] %}{% for b in [3, 4] if b < 4 %}{% if a == 2 %}{{ raise_exception('x') }}{% endif %}{% endfor %}{% endfor %}":              "[2 3]",
		"{% macro m(v) %}{{ raise_exception('x') }}{% endmacro %}{% for a in [5] %}{% for b in [6, 7] %}{% break %}{% endfor %}{{ m(a) }}{% endfor %}": "[5]",
		"{% for a in [1] %}{% endfor %}{{ raise_exception('x') }}":                                                                                     "[]",
		"{% for a in [8, 9] if a < 9 or raise_exception('x') %}{% endfor %}":                                                                           "[9]",
	} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		_, err = tmpl.Render(NewDict(), Options{})
		e, ok := err.(*Error)
		if !ok {
			t.Errorf("%s: %v", source, err)
			continue
		}
		if got := fmt.Sprint(e.Items); got != want {
			t.Errorf("%s: %s, expected %s", source, got, want)
		}
	}
}
