package ctext

import (
	"fmt"
	"strings"
)

// A Writer writes indented C code: a line that ends in "{" opens a level, one
// that starts with "}" closes it.
type Writer struct {
	tables strings.Builder // written before the lines
	text   strings.Builder
	base   int
	depth  int
}

// NewWriter returns a writer that starts at a level of indentation.
func NewWriter(depth int) *Writer { return &Writer{base: depth, depth: depth} }

// String returns the tables, then all lines.
func (w *Writer) String() string { return w.tables.String() + w.text.String() }

// P writes one line.
func (w *Writer) P(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if line == "" {
		w.text.WriteByte('\n')
		return
	}
	if strings.HasPrefix(line, "}") {
		w.depth--
	}
	indent(&w.text, w.depth, line)
	if strings.HasSuffix(line, "{") {
		w.depth++
	}
}

// Raw writes text unchanged.
func (w *Writer) Raw(text string) { w.text.WriteString(text) }

// Table defines an array of constants before the lines and returns its name:
// the proposed one, with a number if another array has it.
func (w *Writer) Table(ctype, name, body string) string {
	for base, i := name, 2; strings.Contains(w.tables.String(), " "+name+"[]"); i++ {
		name = fmt.Sprintf("%s_%d", base, i)
	}
	indent(&w.tables, w.base, fmt.Sprintf("static const %s %s[] = %s;", ctype, name, body))
	return name
}

func indent(b *strings.Builder, depth int, line string) {
	b.WriteString(strings.Repeat("  ", depth))
	b.WriteString(line)
	b.WriteByte('\n')
}

// Comment writes a block comment, wrapped at 110 columns.
func (w *Writer) Comment(text string) {
	const width = 110
	lines := wrap(text, width-2*w.depth)
	if len(lines) == 1 {
		w.P("/* %s */", lines[0])
		return
	}
	for i, l := range lines {
		switch {
		case i == 0:
			w.P("/* %s", l)
		case i == len(lines)-1:
			w.P(" * %s */", l)
		default:
			w.P(" * %s", l)
		}
	}
}

func wrap(text string, width int) []string {
	var lines []string
	line := ""
	for _, word := range strings.Fields(strings.ReplaceAll(text, "*/", "* /")) {
		if line != "" && len(line)+1+len(word) > width {
			lines = append(lines, line)
			line = ""
		}
		if line != "" {
			line += " "
		}
		line += word
	}
	return append(lines, line)
}

// Float returns a C literal that reads back as exactly this float32.
func Float(f float64) string {
	s := fmt.Sprintf("%.9g", float32(f))
	switch s {
	case "+Inf":
		return "INFINITY"
	case "-Inf":
		return "-INFINITY"
	case "NaN":
		return "NAN"
	}
	if !strings.ContainsAny(s, ".e") {
		s += ".0"
	}
	return s + "f"
}

// Floats returns the body of an array initializer.
func Floats(fs []float64) string {
	var parts []string
	for _, f := range fs {
		parts = append(parts, Float(f))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func Ints[I ~int | ~int64](ns []I) string {
	var parts []string
	for _, n := range ns {
		parts = append(parts, fmt.Sprint(n))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

// Bit returns a boolean as C code.
func Bit(b bool) int {
	if b {
		return 1
	}
	return 0
}

// Plus returns the sum of C expressions, without zeros.
func Plus(terms ...string) string {
	var kept []string
	for _, t := range terms {
		if t != "" && t != "0" {
			kept = append(kept, t)
		}
	}
	if len(kept) == 0 {
		return "0"
	}
	return strings.Join(kept, " + ")
}

// Minus returns a C expression minus a number.
func Minus(a string, n int) string {
	if n == 0 {
		return a
	}
	return fmt.Sprintf("(%s - %d)", a, n)
}

// Times returns a C expression, or a sum in parentheses, times a number.
func Times(a string, n int64) string {
	switch {
	case a == "0" || n == 0:
		return "0"
	case n == 1:
		return a
	}
	return fmt.Sprintf("%s * %s", a, Wide(n))
}

// Wide returns a 64-bit literal.
func Wide(n int64) string { return fmt.Sprintf("INT64_C(%d)", n) }
