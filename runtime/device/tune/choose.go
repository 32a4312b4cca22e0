package tune

import (
	"math"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

// A Cell holds the times of a shape's implementations at one row count.
type Cell struct {
	Rows int
	// Blocks[i] holds the times of implementation i, in seconds, one per block. Blocks
	// are interleaved (A B C C B A), so entries of the same index are paired samples.
	// An empty list means not measured.
	Blocks [][]float64

	rough bool // all samples were disturbed
}

// tie is the relative difference below which two implementations count as equal.
const tie = 0.01

// With fewer than provable samples there is no useful confidence interval; then a
// relative difference above unproven counts as significant.
const (
	provable = 3
	unproven = 0.1
)

// better reports whether implementation a is significantly faster than b: the
// confidence interval of the paired log ratios lies above zero. settled reports whether
// more samples would not change the result: a is faster, slower or equal within tie.
func (c *Cell) better(a, b int) (faster, settled bool) {
	d := c.ratios(a, b)
	n := len(d)
	if n == 0 {
		return len(c.Blocks[b]) == 0 && len(c.Blocks[a]) > 0, true
	}
	if n < provable {
		return median(d) > unproven, false
	}
	low, high := interval(d)
	return low > 0, low > 0 || high < 0 || low > -tie && high < tie
}

// ratios returns the paired log ratios of b's times to a's.
func (c *Cell) ratios(a, b int) []float64 {
	d := make([]float64, min(len(c.Blocks[a]), len(c.Blocks[b])))
	for i := range d {
		d[i] = math.Log(c.Blocks[b][i] / c.Blocks[a][i])
	}
	return d
}

// time returns the median time of implementation i in seconds, or +Inf without samples.
func (c *Cell) time(i int) float64 {
	if len(c.Blocks[i]) == 0 {
		return math.Inf(1)
	}
	return median(c.Blocks[i])
}

// best returns the implementation with the lowest median time.
func (c *Cell) best() int {
	best := 0
	for i := range c.Blocks {
		if c.time(i) < c.time(best) {
			best = i
		}
	}
	return best
}

// Crossing returns the lowest row count at which implementation b is significantly
// faster than a, there and at the next measured row count; the last row count needs no
// confirmation. It returns 0 if there is none. Ties keep a. Where a was no longer
// measured, b counts as faster.
func Crossing(cells []Cell, a, b int) int {
	for i := range cells {
		if faster, _ := cells[i].better(b, a); !faster {
			continue
		}
		if i+1 < len(cells) {
			if faster, _ := cells[i+1].better(b, a); !faster {
				continue
			}
		}
		return cells[i].Rows
	}
	return 0
}

// takesOver reports whether implementation b replaces a from the first cell on: b is
// significantly faster there, and its median is not higher at the next row count. This
// is weaker than Crossing, because a rule that required significance twice would keep
// the slower implementation for longer.
func takesOver(cells []Cell, a, b int) bool {
	if faster, _ := cells[0].better(b, a); !faster {
		return false
	}
	return len(cells) < 2 || cells[1].time(b) <= cells[1].time(a)
}

// Rules chooses an implementation for every row count: the current one stays until
// another takes over. It starts with the implementation for the fewest rows (index 0)
// unless another is significantly faster. cells are in ascending order of rows.
func Rules(impls []string, cells []Cell) []dispatch.Rule {
	var rules []dispatch.Rule
	now := 0
	for i := range cells {
		next := now
		for b := range impls {
			if b != now && takesOver(cells[i:], now, b) && cells[i].time(b) < cells[i].time(next) {
				next = b
			}
		}
		if math.IsInf(cells[i].time(next), 1) {
			next = cells[i].best()
		}
		if i == 0 || next != now {
			rows := cells[i].Rows
			if i == 0 {
				rows = 1
			}
			rules = append(rules, dispatch.Rule{Rows: rows, Impl: impls[next]})
		}
		now = next
	}
	return rules
}

// Regret returns the largest slowdown of the rules against the fastest implementation
// over the measured row counts: the median paired ratio minus one. Differences that are
// not significant count as zero, as do row counts with too few samples.
func Regret(impls []string, cells []Cell, rules []dispatch.Rule) float64 {
	worst := 0.0
	for i := range cells {
		used := 0
		for _, r := range rules {
			if r.Rows <= cells[i].Rows {
				used = indexOf(impls, r.Impl)
			}
		}
		best := cells[i].best()
		if cells[i].rough || len(cells[i].Blocks[best]) < provable {
			continue
		}
		if faster, _ := cells[i].better(best, used); faster {
			worst = max(worst, math.Expm1(median(cells[i].ratios(best, used))))
		}
	}
	return worst
}

func indexOf(names []string, name string) int {
	for i, n := range names {
		if n == name {
			return i
		}
	}
	return 0
}

// Summarize returns a shape's entry of a profile.
func Summarize(s Shape, cells []Cell) dispatch.Shape {
	var names []string
	for _, c := range s.Candidates {
		names = append(names, c.Impl)
	}
	rules := Rules(names, cells)
	m := &dispatch.Measurement{Regret: round(Regret(names, cells, rules), 1e-4)}
	for _, n := range names {
		m.Impls = append(m.Impls, dispatch.Time{Impl: n})
	}
	gemv, flat, gemm := family(names, "gemv"), family(names, "flat_gemm"), family(names, "gemm", "cublaslt")
	if len(gemv) > 0 && len(flat) > 0 {
		m.M1 = Crossing(cells, gemv[len(gemv)-1], flat[0])
	}
	if len(flat) > 0 && len(gemm) > 0 {
		m.M2 = Crossing(cells, flat[len(flat)-1], gemm[0])
	}
	for i := range cells {
		c := &cells[i]
		m.Rows = append(m.Rows, c.Rows)
		m.Winner = append(m.Winner, c.best())
		for j := range names {
			t := &m.Impls[j]
			low, high := interval(c.Blocks[j])
			t.Us = append(t.Us, micro(median(c.Blocks[j])))
			t.Low, t.High = append(t.Low, micro(low)), append(t.High, micro(high))
			t.Samples = append(t.Samples, len(c.Blocks[j]))
		}
	}
	return dispatch.Shape{N: s.N, K: s.K, DType: s.DType, Rules: rules, Measured: m}
}

// family returns the names of the given kinds. The name of an implementation for
// several rows per block is its kind followed by a number.
func family(names []string, kinds ...string) (out []int) {
	for i, n := range names {
		if slices.Contains(kinds, strings.TrimRight(n, "0123456789")) {
			out = append(out, i)
		}
	}
	return out
}

// micro converts seconds to microseconds, rounded to four significant digits.
func micro(seconds float64) float64 {
	us := seconds * 1e6
	if us <= 0 {
		return 0
	}
	return round(us, math.Pow(10, math.Floor(math.Log10(us))-3))
}

func round(x, unit float64) float64 {
	if unit < 1 {
		return math.Round(x/unit) / math.Round(1/unit)
	}
	return math.Round(x/unit) * unit
}
