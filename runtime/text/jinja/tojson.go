package jinja

import (
	"fmt"
	"math"
	"sort"
	"unicode/utf16"
)

// jsonWriter encodes values like Python's json.dumps.
type jsonWriter struct {
	s        *state
	b        builder
	ascii    bool
	sortKeys bool
	indent   Str // of one level
	lines    bool
	comma    Str
	colon    Str
}

// tojson is transformers' filter: json.dumps without HTML escapes.
func tojson(s *state, a args) Value {
	p := a.bind("tojson", "value", "ensure_ascii=", "indent=", "separators=", "sort_keys=")
	w := jsonWriter{s: s, ascii: p[1] != nil && truth(p[1]), sortKeys: truth(p[4]), comma: Text(", "), colon: Text(": ")}
	switch indent := p[2].(type) {
	case nil:
	case Str:
		w.lines, w.indent = true, indent
	default:
		n := toInt(indent)
		w.lines, w.indent = true, repeatStr(s, Text(" "), n)
	}
	if w.lines {
		w.comma = Text(",")
	}
	if p[3] != nil {
		pair := items(s, p[3])
		if len(pair) != 2 {
			fail("ValueError: separators: expected 2 values, found %d", len(pair))
		}
		w.comma, w.colon = toStr(s, pair[0]), toStr(s, pair[1])
	}
	w.value(p[0], 0)
	return w.b.str()
}

func (w *jsonWriter) value(v Value, depth int) {
	if depth > maxNesting {
		fail("ValueError: a value is nested deeper than %d", maxNesting)
	}
	w.s.charge(1)
	switch v := v.(type) {
	case nil:
		w.b.lit("null")
	case bool:
		if v {
			w.b.lit("true")
		} else {
			w.b.lit("false")
		}
	case int64, bigInt:
		w.b.lit(fmt.Sprint(v))
	case float64:
		w.b.lit(jsonFloat(v))
	case Str:
		w.str(v)
	case *List:
		w.block('[', ']', len(v.items), depth, func(i int) { w.value(v.items[i], depth+1) })
	case *Dict:
		w.dict(v, depth)
	default:
		fail("TypeError: Object of type %s is not JSON serializable", typeName(v))
	}
	w.s.checkLen(len(w.b.b))
}

func (w *jsonWriter) dict(v *Dict, depth int) {
	order := make([]int, len(v.keys))
	for i := range order {
		order[i] = i
	}
	if w.sortKeys {
		sort.SliceStable(order, func(i, j int) bool { return less(w.s, v.keys[order[i]], v.keys[order[j]]) })
	}
	w.block('{', '}', len(v.keys), depth, func(i int) {
		w.key(v.keys[order[i]])
		w.b.add(w.colon)
		w.value(v.vals[order[i]], depth+1)
	})
}

// key writes a key of an object as a JSON string.
func (w *jsonWriter) key(k Value) {
	switch k := k.(type) {
	case Str:
		w.str(k)
		return
	case nil:
		w.b.lit(`"null"`)
		return
	case bool:
		w.b.lit(fmt.Sprintf(`"%v"`, k))
		return
	case int64, bigInt:
		w.b.lit(fmt.Sprintf(`"%v"`, k))
		return
	case float64:
		w.b.lit(`"` + jsonFloat(k) + `"`)
		return
	}
	fail("TypeError: keys must be str, int, float, bool or None, not %s", typeName(k))
}

// block writes the items of a list or an object between brackets.
func (w *jsonWriter) block(open, end byte, n, depth int, member func(i int)) {
	w.b.lit(string(open))
	for i := range n {
		if i > 0 {
			w.b.add(w.comma)
		}
		w.line(depth + 1)
		member(i)
	}
	if n > 0 {
		w.line(depth)
	}
	w.b.lit(string(end))
}

func (w *jsonWriter) line(depth int) {
	if !w.lines {
		return
	}
	w.b.lit("\n")
	for range depth {
		w.b.add(w.indent)
	}
	w.s.checkLen(len(w.b.b))
}

func jsonFloat(f float64) string {
	switch {
	case math.IsNaN(f):
		return "NaN"
	case math.IsInf(f, 1):
		return "Infinity"
	case math.IsInf(f, -1):
		return "-Infinity"
	}
	return formatFloat(f)
}

func (w *jsonWriter) str(v Str) {
	w.s.charge(len(v.s) / 8)
	w.b.lit(`"`)
	w.b.add(v.mapRunes(func(r rune) string {
		switch r {
		case '"':
			return `\"`
		case '\\':
			return `\\`
		case '\n':
			return `\n`
		case '\r':
			return `\r`
		case '\t':
			return `\t`
		case '\f':
			return `\f`
		case '\b':
			return `\b`
		}
		switch {
		case r < ' ':
			return hexRune(`\u`, r, 4)
		case r < 0x7f || !w.ascii:
			return string(r)
		case r < 0x10000:
			return hexRune(`\u`, r, 4)
		}
		hi, lo := utf16.EncodeRune(r)
		return hexRune(`\u`, hi, 4) + hexRune(`\u`, lo, 4)
	}))
	w.b.lit(`"`)
}
