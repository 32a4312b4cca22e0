package jinja

import (
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/iflowc/iflowc/ir/irtest"
)

// hugeInputs are inputs of n bytes or items, each the worst of some operation.
func hugeInputs(n int) map[string]Value {
	var ints, texts, pairs []Value
	for i := range n / 16 {
		ints = append(ints, int64(i%7))
		texts = append(texts, Text(fmt.Sprint("text ", i%5)))
		pairs = append(pairs, newTuple(Text(fmt.Sprint(i)), int64(i)))
	}
	lists := make([]Value, n/16)
	for i := range lists {
		lists[i] = NewList(int64(i))
	}
	dict := NewDict()
	for i := range n / 16 {
		dict.Set(fmt.Sprint(i), int64(i))
	}
	return map[string]Value{
		"words": Text(strings.Repeat("a ", n/2)), "word": Text(strings.Repeat("a", n)), "spaces": Text(strings.Repeat(" ", n)), "lines": Text(strings.Repeat("\n", n)),
		"tabs": Text(strings.Repeat("a\t", n/2)), "wide": Text(strings.Repeat("é", n/2)), "upper": Text(strings.Repeat("Σ.", n/3)), "digits": Text(strings.Repeat("9", n)),
		"percents": Text(strings.Repeat("%%", n/2)), "braces": Text(strings.Repeat("{{", n/2)), "quotes": Text(strings.Repeat(`"'`, n/2)), "control": Text(strings.Repeat("\x01", n)),
		"user": UserText(strings.Repeat("a ", n/2)), "ints": NewList(ints...), "texts": NewList(texts...), "pairs": NewList(pairs...), "lists": NewList(lists...), "dict": dict,
	}
}

// operations are templates of everything that the registries list, with x as the input.
// Each has the arguments that let it work; unknown ones have none.
func operations() (list []string) {
	arguments := map[string][]string{
		"replace": {"'a', 'bb'", "'', '-'", "x, 'b'"}, "indent": {"", "x, true, true"}, "wordwrap": {"1", "79", "79, false", "9999999, false"}, "truncate": {"9", "length=99999, killwords=true"},
		"center": {"99"}, "ljust": {"99"}, "rjust": {"99"}, "zfill": {"99"}, "batch": {"1", "3"}, "slice": {"9"}, "groupby": {"0"}, "map": {"'string'", "attribute='a'"}, "join": {"", "', '"},
		"select": {"", "'in', [1]"}, "reject": {""}, "selectattr": {"'a'"}, "rejectattr": {"'a'"}, "sum": {"", "start=[]"}, "attr": {"'a'"}, "format": {"", "x"}, "divisibleby": {"3"}, "sort": {"", "attribute='a.b'"},
		"tojson": {"", "indent=1", "ensure_ascii=true", "sort_keys=true"}, "split": {"", "'a'", "x"}, "rsplit": {"", "'a'", "x"}, "partition": {"' '", "x"}, "rpartition": {"' '"},
		"strip": {"", "x", "'é' ~ x"}, "trim": {"", "x"}, "find": {"'b'", "'a', 9"}, "rfind": {"'b'"}, "index": {"'a'", "0"}, "rindex": {"'a'"}, "count": {"'a'", "x", "0"}, "startswith": {"'a'", "x", "(x, x)"}, "endswith": {"x"},
		"removeprefix": {"x"}, "removesuffix": {"x"}, "get": {"'a'", "(x, x)"}, "default": {"''"}, "d": {"''"}, "urlencode": {""}, "unique": {""}, "int": {"", "base=16"},
	}
	add := func(names []string, form string) {
		slices.Sort(names)
		for _, name := range names {
			all := arguments[name]
			if all == nil {
				all = []string{""}
			}
			for _, a := range all {
				list = append(list, fmt.Sprintf(form, name, a))
			}
		}
	}
	add(slices.Collect(maps.Keys(allFilters())), "{{ (x|%s(%s))|list|length }}")
	add(slices.Collect(maps.Keys(strMethods)), "{{ x.%s(%s) is none }}")
	add(slices.Collect(maps.Keys(dictMethods)), "{{ x.%s(%s) is none }}")
	add(slices.Collect(maps.Keys(listMethods)), "{{ x.%s(%s) is none }}")
	for name := range tests {
		if isIdentifier(name) {
			list = append(list, "{{ x is "+name+" }}", "{{ x is "+name+"(x) }}", "{{ x is "+name+"('b') }}")
		}
	}
	for _, op := range []string{"+", "~", "%", "==", "!=", "<", "<=", ">", ">=", "in", "not in", "and", "or"} {
		list = append(list, "{{ (x "+op+" x) is none }}")
	}
	return append(list, "{{ x[-1] }}{{ x[1:] is none }}{{ x[::-1] is none }}", "{{ {(x, x): 1} is none }}", "{{ [x, x]|string|length }}", "{{ dict(x) is none }}", "{{ strftime_now(x)|length }}",
		"{{ x.format(x) is none }}", "{{ '{0:{1}}'.format(x, 9) is none }}", "{{ x * 2 is none }}", "{% for a in x %}{% endfor %}", "{% set a, b = x %}", "{% filter indent %}{{ x }}{% endfilter %}")
}

// TestLinear runs every filter, test, method and operator on inputs of a million bytes,
// with the limits of templates that clients send. Each counts its steps before it takes
// them, so it ends soon, and ends when Tick returns an error.
func TestLinear(t *testing.T) {
	t.Parallel()
	inputs := hugeInputs(1 << 20)
	names := slices.Sorted(maps.Keys(inputs))
	gone := errors.New("gone")
	type operation struct{ source, input string }
	var all []operation
	for _, source := range operations() {
		for _, name := range names {
			all = append(all, operation{source, name})
		}
	}
	for _, o := range irtest.Sample(t, 300, all) {
		tmpl, err := Parse(o.source)
		if err != nil {
			t.Fatalf("%s: %v", o.source, err)
		}
		vars := NewDict()
		vars.Set("x", inputs[o.input])
		run := func(limits Limits) (int, time.Duration, error) {
			s, begin := newState(Options{Limits: limits}), time.Now()
			_, err := tmpl.render(s, vars)
			return s.steps, time.Since(begin), err
		}
		steps, took, err := run(Limits{Steps: 100_000, Bytes: 1 << 20})
		if took > 500*time.Millisecond || took > 20*time.Millisecond && took > 20*time.Duration(steps)*time.Microsecond {
			t.Errorf("%s of %s: %v for %d steps (%v)", o.source, o.input, took, steps, err)
		}
		steps, again, err := run(Limits{Tick: func() error { return gone }})
		if steps > 2*tickSteps && !errors.Is(err, gone) || again > took+100*time.Millisecond {
			t.Errorf("%s of %s: ends after %v and %d steps: %v", o.source, o.input, again, steps, err)
		}
	}
}
