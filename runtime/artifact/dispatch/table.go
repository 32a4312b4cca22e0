// Package dispatch selects the implementation of each matmul by the number of rows.
// Defaults come from the compiler; a profile measured on the device overrides them
// without recompilation.
package dispatch

import (
	"fmt"
	"slices"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
)

// Rows is the number of entries per matmul in a table: 0 … 511 rows, and one entry for
// all larger counts. It equals IFL_ROWS of the step ABI.
const Rows = 513

// Table returns the dispatch table [matmuls][Rows] of implementation indices: each
// matmul's defaults, overridden by the profile's rules for its shape. A nil profile has
// no rules. A rule applies only to the matmuls of its shape with its implementation,
// because implementations also depend on the type of the activations. If no matmul has
// it, the profile was made for another version or --order, and Table returns an error.
func Table(matmuls []manifest.Matmul, p *Profile) ([]byte, error) {
	table := make([]byte, len(matmuls)*Rows)
	for i := range matmuls {
		s := &matmuls[i]
		if err := check(s); err != nil {
			return nil, err
		}
		row := table[i*Rows:][:Rows]
		for _, j := range byRows(s.Rows) {
			fill(row, s.Rows[j], byte(j))
		}
		if p == nil {
			continue
		}
		for _, rule := range p.find(s.N, s.K, s.DType) {
			j := slices.Index(s.Impls, rule.Impl)
			if j < 0 {
				if anyHas(matmuls, s, rule.Impl) {
					continue
				}
				return nil, fmt.Errorf("%s: shape [%d, %d, %s] from %d rows: no implementation %q; matmul %s has %s",
					p.name(), s.N, s.K, s.DType, rule.Rows, rule.Impl, s.Name, strings.Join(s.Impls, ", "))
			}
			fill(row, rule.Rows, byte(j))
		}
	}
	return table, nil
}

// anyHas reports whether any matmul of s's shape has an implementation.
func anyHas(matmuls []manifest.Matmul, s *manifest.Matmul, impl string) bool {
	return slices.ContainsFunc(matmuls, func(o manifest.Matmul) bool {
		return o.N == s.N && o.K == s.K && o.DType == s.DType && slices.Contains(o.Impls, impl)
	})
}

// byRows returns the implementations used by default, ordered by their first row count.
func byRows(rows []int) (order []int) {
	for j, from := range rows {
		if from >= 0 {
			order = append(order, j)
		}
	}
	slices.SortStableFunc(order, func(a, b int) int { return rows[a] - rows[b] })
	return order
}

// fill sets the entries for at least the given number of rows.
func fill(row []byte, from int, impl byte) {
	for r := min(max(from, 0), Rows-1); r < Rows; r++ {
		row[r] = impl
	}
}

// check validates a matmul of the manifest.
func check(s *manifest.Matmul) error {
	if len(s.Impls) == 0 || len(s.Impls) > 256 || len(s.Rows) != len(s.Impls) {
		return fmt.Errorf("matmul %s: %d implementations with %d bounds; compile the model again", s.Name, len(s.Impls), len(s.Rows))
	}
	return nil
}

// Describe returns a matmul's row of a table as text: "gemv, rows>=3: flat_gemm".
func Describe(s manifest.Matmul, row []byte) string {
	text := ""
	for r := 1; r < Rows; r++ {
		if r > 1 && row[r] == row[r-1] {
			continue
		}
		if r > 1 {
			text += fmt.Sprintf(", rows>=%d: ", r)
		}
		text += s.Impls[row[r]]
	}
	return text
}
