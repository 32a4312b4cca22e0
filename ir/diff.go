package ir

import "strings"

// Diff returns the line differences of two texts with two lines of context. Lines
// only in a start with "-", lines only in b with "+". It is empty if the texts are
// equal.
func Diff(a, b string) string {
	if a == b {
		return ""
	}
	x, y := strings.Split(a, "\n"), strings.Split(b, "\n")
	common := commonLines(x, y)
	var lines []string
	var changed []bool
	add := func(mark, text string) {
		lines = append(lines, mark+text)
		changed = append(changed, mark != " ")
	}
	i, j := 0, 0
	for i < len(x) || j < len(y) {
		switch {
		case i < len(x) && j < len(y) && x[i] == y[j]:
			add(" ", x[i])
			i, j = i+1, j+1
		case j == len(y) || i < len(x) && common[i+1][j] >= common[i][j+1]:
			add("-", x[i])
			i++
		default:
			add("+", y[j])
			j++
		}
	}
	return nearChanges(lines, changed)
}

// commonLines[i][j] is the length of the longest common subsequence of x[i:] and
// y[j:].
func commonLines(x, y []string) [][]int {
	out := make([][]int, len(x)+1)
	for i := range out {
		out[i] = make([]int, len(y)+1)
	}
	for i := len(x) - 1; i >= 0; i-- {
		for j := len(y) - 1; j >= 0; j-- {
			if x[i] == y[j] {
				out[i][j] = out[i+1][j+1] + 1
			} else {
				out[i][j] = max(out[i+1][j], out[i][j+1])
			}
		}
	}
	return out
}

func nearChanges(lines []string, changed []bool) string {
	const context = 2
	var b strings.Builder
	skipped := false
	for i, line := range lines {
		show := false
		for k := max(0, i-context); k <= min(len(lines)-1, i+context); k++ {
			show = show || changed[k]
		}
		if show {
			if skipped {
				b.WriteString("…\n")
			}
			b.WriteString(line + "\n")
		}
		skipped = !show
	}
	return b.String()
}

// Equal reports whether two modules have the same canonical text.
func Equal(a, b *Module) bool { return a.String() == b.String() }
