package jinja

import (
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"
)

// TestHostile checks that templates that need unbounded time or memory return errors.
func TestHostile(t *testing.T) {
	t.Parallel()
	for _, source := range []string{
		"{% for a in range(99999) %}{% for b in range(99999) %}{% endfor %}{% endfor %}",
		"{% set ns = namespace(s='xxxxxxxxxxxxxxxx') %}{% for a in range(99) %}{% set ns.s = ns.s ~ ns.s %}{% endfor %}",
		"{% set ns = namespace(l=[1]) %}{% for a in range(99) %}{% set ns.l = ns.l + ns.l %}{% endfor %}",
		"{% macro m() %}{{ m() }}{% endmacro %}{{ m() }}",
		"{% set ns = namespace(l=[]) %}{% for a in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l }}",
		"{% set ns = namespace(l=[]) %}{% for a in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l == [ns.l] }}",
		"{% set ns = namespace(l=[]) %}{% for a in range(9999) %}{% set ns.l = [ns.l] %}{% endfor %}{{ ns.l | tojson }}",
		"{% set ns = namespace(l=()) %}{% for a in range(9999) %}{% set ns.l = (ns.l,) %}{% endfor %}{{ {ns.l: 1} }}",
		"{{ 'x' * 99999999999 }}", "{{ [0] * 99999999999 }}", "{{ 'x'.center(99999999999) }}", "{{ '%99999999d' % 1 }}", "{{ '{:99999999}'.format(1) }}",
		"{{ 'x' | indent(99999999999) }}", "{{ [1] | batch(99999999999, 0) | list }}", "{{ [1] | slice(99999999999, 0) | list }}",
		"{{ 'aaaa'.replace('', 'x' * 60000000) }}", "{{ ('x' * 9999999) | tojson(indent=99999999) }}", "{{ [[1]] | tojson(indent=99999999999) }}",
		"{{ 10 ** 99 }}", "{{ 1.5 | round(999999) }}", "{% for a in xs recursive %}{{ loop([[1]]) }}{% endfor %}",
		strings.Repeat("{% if 1 %}", 300), "{{ " + strings.Repeat("(", 9999) + " }}", "{{ " + strings.Repeat("[", 9999), "{{ a" + strings.Repeat("[a", 999),
		"{{ " + strings.Repeat("-", 9999) + "1 }}", "{{ " + strings.Repeat("not ", 9999) + "1 }}", "{{ 1" + strings.Repeat("+1", 99999) + " }}", "{{ a" + strings.Repeat(".b", 99999) + " }}",
	} {
		begin := time.Now()
		tmpl, err := Parse(source)
		if err == nil {
			vars := NewDict()
			vars.Set("xs", NewList(NewList(int64(1))))
			_, err = tmpl.Render(vars, Options{Limits: Limits{Steps: 300_000, Bytes: 1 << 20}})
		}
		if err == nil {
			t.Errorf("%.80s: no error", source)
		}
		if took := time.Since(begin); took > 5*time.Second {
			t.Errorf("%.80s: took %v", source, took)
		}
	}
}

// TestOrigin checks that strings track user bytes through operations.
func TestOrigin(t *testing.T) {
	t.Parallel()
	for source, want := range map[string]string{
		"{{ 'a' + u + 'b' }}":                               "<user>",
		"{{ u[1:] ~ u.upper() }}":                           "<ser><USER>",
		"{{ u.replace('s', 'xx') }}":                        "<u><er>",
		"{{ 'x-y'.replace('-', u) }}":                       "<user>",
		"{{ u.split('s') | join('|') }}":                    "<u><er>",
		"{{ [u, 'q'] | tojson }}":                           "<user>",
		"{{ '%s!' % u }}{{ '{}'.format(u) }}":               "<user><user>",
		"{{ '  ' ~ (u | trim) }}{{ u.strip('u') }}":         "<user><ser>",
		"{% set x %}a{{ u }}{% endset %}{{ x }}":            "<user>",
		"{% macro m(v) %}[{{ v }}]{% endmacro %}{{ m(u) }}": "<user>",
		"{{ [u] }}{{ {u: 1} }}":                             "<user><user>",
		"{{ u | indent(2, true) }}{{ u | title }}":          "<user><User>",
		"{{ u is string }}{{ u | length }}{{ 'user' }}":     "",
	} {
		tmpl, err := Parse(source)
		if err != nil {
			t.Fatal(err)
		}
		vars := NewDict()
		vars.Set("u", UserText("user"))
		out, err := tmpl.Render(vars, Options{})
		if err != nil {
			t.Fatal(err)
		}
		got := ""
		for _, s := range out.User() {
			got += "<" + out.String()[s.From:s.To] + ">"
		}
		got, want = strings.ReplaceAll(got, "><", ""), strings.ReplaceAll(want, "><", "")
		if got != want {
			t.Errorf("%s: user bytes %s, want %s", source, got, want)
		}
	}
}

// FuzzRender checks that no template or context panics or exceeds its limits.
func FuzzRender(f *testing.F) {
	files, err := filepath.Glob("../chat/testdata/templates/*.jinja")
	if err != nil {
		f.Fatal(err)
	}
	for _, name := range files {
		data, err := os.ReadFile(name)
		if err != nil {
			f.Fatal(err)
		}
		f.Add(string(data), `{"messages": [{"role": "user", "content": "x"}], "bos_token": "<s>"}`)
	}
	f.Add("{% for x in xs %}{{ loop.index ~ x | tojson(indent=2) }}{% else %}e{% endfor %}", `{"xs": [1, "a", null, {"b": [2.5, true]}]}`)
	f.Add("{% macro m(x) %}{{ '%5.2f' % x }}{{ caller() }}{% endmacro %}{% call m(1) %}{{ 'é'[::-1].title() }}{% endcall %}", `{}`)
	f.Add("{{ '{:>5}'.format(a) }}{{ xs | sort | groupby(0) | map('first') | list }}", `{"a": 1, "xs": [[1], [2]]}`)
	f.Add("{{ '\xb9\xb9 ' | sort | map('upper') | list }}{{ '\xb9' | title }}", `{}`)
	f.Fuzz(func(t *testing.T, source, context string) {
		tmpl, err := Parse(source)
		if err != nil {
			return
		}
		vars, err := FromJSON([]byte(context))
		if err != nil {
			return
		}
		d, ok := vars.(*Dict)
		if !ok {
			return
		}
		out, err := tmpl.Render(d, Options{Limits: Limits{Steps: 100_000, Bytes: 1 << 20}})
		if err != nil {
			return
		}
		if spans := out.User(); !slices.IsSortedFunc(spans, func(a, b Span) int { return a.From - b.From }) {
			t.Fatalf("ranges out of order: %v", spans)
		}
	})
}
