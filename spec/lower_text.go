package spec

import (
	"fmt"
	"regexp"
	"strconv"
	"strings"
)

// A text is the body of a graph being written, one op per line. It omits types,
// which the IR parser infers.
type text struct {
	b      strings.Builder
	indent int
	used   map[string]int
}

func newText() *text { return &text{indent: 2, used: map[string]int{}} }

// fresh returns an unused value name: %q, %q_2, …
func (t *text) fresh(hint string) string {
	t.used[hint]++
	if n := t.used[hint]; n > 1 {
		return fmt.Sprintf("%%%s_%d", hint, n)
	}
	return "%" + hint
}

func (t *text) line(format string, args ...any) {
	t.b.WriteString(strings.Repeat("  ", t.indent))
	fmt.Fprintf(&t.b, format, args...)
	t.b.WriteByte('\n')
}

// op writes `%hint = op args {attrs}` and returns the value's name.
func (t *text) op(hint, op string, args []string, a attrs) string {
	name := t.fresh(hint)
	t.line("%s = %s %s%s", name, op, strings.Join(args, ", "), a)
	return name
}

// rename renames the value from to to. If another value has that name already,
// the two names are swapped.
func (t *text) rename(from, to string) {
	if from == to {
		return
	}
	names := regexp.MustCompile(regexp.QuoteMeta(from) + `\b|` + regexp.QuoteMeta(to) + `\b`)
	s := names.ReplaceAllStringFunc(t.b.String(), func(have string) string {
		if have == from {
			return to
		}
		return from
	})
	t.b.Reset()
	t.b.WriteString(s)
}

// effect writes an op without results.
func (t *text) effect(op string, args []string) {
	t.line("%s %s", op, strings.Join(args, ", "))
}

// attrs are attributes in the order in which they were added.
type attrs []string

func (a attrs) num(name string, v float64) attrs { return append(a, name+"="+float(v)) }
func (a attrs) int(name string, v int) attrs     { return append(a, fmt.Sprintf("%s=%d", name, v)) }
func (a attrs) word(name, v string) attrs        { return append(a, name+"="+v) }
func (a attrs) flag(name string) attrs           { return append(a, name) }

func (a attrs) nums(name string, v []float64) attrs {
	var s []string
	for _, x := range v {
		s = append(s, float(x))
	}
	return append(a, name+"=["+strings.Join(s, ", ")+"]")
}

func (a attrs) ints(name string, v []int) attrs {
	return append(a, name+"=["+joinInts(v)+"]")
}

func joinInts(v []int) string {
	s := make([]string, len(v))
	for i, n := range v {
		s[i] = strconv.Itoa(n)
	}
	return strings.Join(s, ", ")
}

// String returns " {a=1, b}", or "" if there are no attributes.
func (a attrs) String() string {
	if len(a) == 0 {
		return ""
	}
	return " {" + strings.Join(a, ", ") + "}"
}

// float returns the shortest decimal that parses to v.
func float(v float64) string { return strings.ToLower(strconv.FormatFloat(v, 'g', -1, 64)) }

// float32s widens values computed in float32, so that their shortest decimal form
// is that of the float32.
func float32s(v []float32) []float64 {
	out := make([]float64, len(v))
	for i, x := range v {
		f, err := strconv.ParseFloat(strconv.FormatFloat(float64(x), 'g', -1, 32), 64)
		if err != nil {
			panic("bug: " + err.Error())
		}
		out[i] = f
	}
	return out
}
