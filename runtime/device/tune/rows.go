package tune

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseRows reads a list of row counts and of ranges of them, "1-16,32", in any
// order. An empty list gives none: Measure's own.
func ParseRows(list string) ([]int, error) {
	if list == "" {
		return nil, nil
	}
	var rows []int
	for _, part := range strings.Split(list, ",") {
		from, to, isRange := strings.Cut(strings.TrimSpace(part), "-")
		if !isRange {
			to = from
		}
		a, err := strconv.Atoi(from)
		b, err2 := strconv.Atoi(to)
		if err != nil || err2 != nil || a < 1 || b < a || b > 4096 {
			return nil, fmt.Errorf("--rows: %q is no row count or range between 1 and 4096", part)
		}
		for r := a; r <= b; r++ {
			rows = append(rows, r)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}
