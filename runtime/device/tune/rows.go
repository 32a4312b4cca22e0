package tune

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
)

// ParseRows parses a list of row counts and ranges, such as "1-16,32", in any order. It
// returns nil for an empty list; Measure then uses DefaultRows.
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
			return nil, fmt.Errorf("--rows: %q is not a row count or range between 1 and 4096", part)
		}
		for r := a; r <= b; r++ {
			rows = append(rows, r)
		}
	}
	slices.Sort(rows)
	return slices.Compact(rows), nil
}
