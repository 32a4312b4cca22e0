//go:build unix

package main

import (
	"fmt"
	"io"
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

// tableRows are the row counts of the printed tables.
var tableRows = []int{1, 2, 4, 8, 16, 32, 64, 128, 512}

// cells reports whether there are measurements.
func (p *progress) cells(done, total int, what string) {
	p.show("measuring", fmt.Sprintf("measuring %d/%d %s", done, total, what), done == total)
}

// printShape prints a measured shape: times, the winner marked, crossover
// points and regret.
func printShape(w io.Writer, s *dispatch.Shape) {
	fmt.Fprintf(w, "[%d, %d] %s: %s\n", s.N, s.K, s.DType, rulesText(s.Rules))
	m := s.Measured
	printColumns(w, "  ", timeTable(m))
	fmt.Fprintf(w, "  M1 %s, M2 %s, regret %.1f %%\n", rowsText(m.M1), rowsText(m.M2), 100*m.Regret)
}

// bandwidthText describes the read bandwidth before and after each run.
func bandwidthText(m *dispatch.Machine) string {
	if m == nil || len(m.ReadGBs) == 0 {
		return "read bandwidth not measured"
	}
	return fmt.Sprintf("read bandwidth %.1f to %.1f GB/s, before and after measuring", slices.Min(m.ReadGBs), slices.Max(m.ReadGBs))
}

// timeTable holds the printed row counts and each implementation's times.
func timeTable(m *dispatch.Measurement) [][]string {
	columns := columnsOf(m)
	head := []string{"µs, rows"}
	for _, i := range columns {
		head = append(head, fmt.Sprint(m.Rows[i]))
	}
	lines := [][]string{head}
	for j, t := range m.Impls {
		line := []string{t.Impl}
		for _, i := range columns {
			line = append(line, timeText(t, i, m.Winner[i] == j))
		}
		lines = append(lines, line)
	}
	return lines
}

// columnsOf lists the entries of the measurement that tables show.
func columnsOf(m *dispatch.Measurement) (columns []int) {
	for i, r := range m.Rows {
		if slices.Contains(tableRows, r) {
			columns = append(columns, i)
		}
	}
	if len(columns) == 0 {
		for i := range m.Rows {
			columns = append(columns, i)
		}
	}
	return columns
}

// timeText returns a median with half its interval, starred if it is the
// fastest.
func timeText(t dispatch.Time, i int, wins bool) string {
	if t.Us[i] == 0 {
		return "–"
	}
	text := number(t.Us[i]) + "±" + number((t.High[i]-t.Low[i])/2)
	if wins {
		text += "*"
	}
	return text
}

// number formats a number with about three digits.
func number(x float64) string {
	digits := 2 - int(math.Floor(math.Log10(math.Max(x, 0.1))))
	return fmt.Sprintf("%.*f", min(max(digits, 0), 1), x)
}

func rowsText(rows int) string {
	if rows == 0 {
		return "nowhere"
	}
	return fmt.Sprintf("at %d rows", rows)
}

// rulesText formats rules as annotations do: "gemv, rows>=3: flat_gemm".
func rulesText(rules []dispatch.Rule) string {
	var parts []string
	for i, r := range rules {
		if i == 0 {
			parts = append(parts, r.Impl)
		} else {
			parts = append(parts, fmt.Sprintf("rows>=%d: %s", r.Rows, r.Impl))
		}
	}
	return strings.Join(parts, ", ")
}

// printColumns aligns columns, the first one to the left.
func printColumns(w io.Writer, indent string, lines [][]string) {
	widths := make([]int, len(lines[0]))
	for _, l := range lines {
		for i, c := range l {
			widths[i] = max(widths[i], len([]rune(c)))
		}
	}
	for _, l := range lines {
		text := indent
		for i, c := range l {
			pad := strings.Repeat(" ", widths[i]-len([]rune(c)))
			if i == 0 {
				text += c + pad
			} else {
				text += "  " + pad + c
			}
		}
		fmt.Fprintln(w, strings.TrimRight(text, " "))
	}
}
