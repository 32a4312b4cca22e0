package codegen

import (
	"fmt"
	"strings"
)

// A cWriter writes indented C: a line that ends in "{" opens a level, one that
// begins with "}" closes it.
type cWriter struct {
	b     strings.Builder
	depth int
}

// p writes one line.
func (w *cWriter) p(format string, args ...any) {
	line := fmt.Sprintf(format, args...)
	if line == "" {
		w.b.WriteByte('\n')
		return
	}
	if strings.HasPrefix(line, "}") {
		w.depth--
	}
	w.b.WriteString(strings.Repeat("  ", w.depth))
	w.b.WriteString(line)
	w.b.WriteByte('\n')
	if strings.HasSuffix(line, "{") {
		w.depth++
	}
}

// comment writes a block comment, wrapped at 110 columns.
func (w *cWriter) comment(text string) {
	const width = 110
	lines := wrap(text, width-2*w.depth)
	if len(lines) == 1 {
		w.p("/* %s */", lines[0])
		return
	}
	for i, l := range lines {
		switch {
		case i == 0:
			w.p("/* %s", l)
		case i == len(lines)-1:
			w.p(" * %s */", l)
		default:
			w.p(" * %s", l)
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

// cFloat is a C literal that reads back as exactly this float32.
func cFloat(f float64) string {
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

// cFloats is the body of an array initialiser.
func cFloats(fs []float64) string {
	var parts []string
	for _, f := range fs {
		parts = append(parts, cFloat(f))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func cInts[I ~int | ~int64](ns []I) string {
	var parts []string
	for _, n := range ns {
		parts = append(parts, fmt.Sprint(n))
	}
	return "{" + strings.Join(parts, ", ") + "}"
}

func round16(n int) int { return (n + 15) &^ 15 }

func round64(n int64) int64 { return (n + 63) &^ 63 }
