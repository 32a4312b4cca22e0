package pack

import (
	"errors"
	"fmt"
	"slices"
	"sync"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// stackable lists the operations that move rows together with their outliers.
var stackable = map[string]bool{"concat": true, "interleave": true, "rows": true}

// checkStackable returns an error if an operation does not support values with outliers.
func checkStackable(r *tensor.Transform, args []value) error {
	for _, a := range args {
		switch {
		case a.outliers == nil:
		case !stackable[r.Op]:
			return fmt.Errorf("transform %s: %s of a matrix with sparse outliers; only concat, interleave and rows move such rows", r, r.Op)
		case slices.ContainsFunc(args, func(b value) bool { return b.dt != a.dt }):
			return fmt.Errorf("transform %s: rows of several types, and sparse outliers", r)
		}
	}
	return nil
}

// outliersOf returns a function for the outliers of a row of several values; nil if no
// value has outliers.
func outliersOf(args []value, which func(r int) (arg, row int)) func(r int) []tensor.SparseOutlier {
	none := true
	for _, a := range args {
		none = none && a.outliers == nil
	}
	if none {
		return nil
	}
	return func(r int) []tensor.SparseOutlier {
		i, at := which(r)
		if i < 0 || args[i].outliers == nil {
			return nil
		}
		return args[i].outliers(at)
	}
}

// quantizeSparse evaluates quantize_sparse(a, ratio, type). The whole matrix is
// encoded at once and held in memory, because the choice of outliers depends on all entries.
func (e *evaluator) quantizeSparse(r *tensor.Transform) (value, error) {
	if !tensor.CanEncode(r.Type) || r.Type.IsActivation() || !r.Type.IsBlock() {
		return value{}, fmt.Errorf("weights cannot be quantized to %s with sparse outliers", r.Type)
	}
	if !(r.Nums[0] > 0 && r.Nums[0] <= tensor.MaxSparseRatio) {
		return value{}, fmt.Errorf("transform %s: a fraction of %v of the entries; expected more than 0 and %v at most", r, r.Nums[0], tensor.MaxSparseRatio)
	}
	v, err := e.eval(r.Args[0])
	if err != nil {
		return value{}, err
	}
	if v.rank != 2 || v.outliers != nil {
		return value{}, fmt.Errorf("transform %s: only matrices have sparse outliers, and only once", r)
	}
	m := &faultyMatrix{set: e.src.Set, v: v}
	n := tensor.SparseCount(v.rows, v.cols, r.Nums[0])
	raw, all, err := tensor.EncodeSparse(r.Type, tensor.Matrix{Rows: v.rows, Cols: v.cols, Row: m.row}, n, e.importanceOf(r, v.cols))
	if err := errors.Join(err, m.err); err != nil {
		return value{}, fmt.Errorf("transform %s: %w", r, err)
	}
	out := fromRaw(r.Type, v.rows, v.cols, 2, raw)
	starts := make([]int, v.rows+1)
	for _, d := range all {
		starts[d.Row+1]++
	}
	for i := range v.rows {
		starts[i+1] += starts[i]
	}
	out.outliers = func(r int) []tensor.SparseOutlier { return all[starts[r]:starts[r+1]] }
	return out, nil
}

// A faultyMatrix reads rows of a value in goroutines without guardFaults. It converts
// faults from files that shrink, and keeps the first error.
type faultyMatrix struct {
	set *checkpoint.Set
	v   value

	mu  sync.Mutex
	err error
}

func (m *faultyMatrix) row(r int, x []float32) {
	err := guardFaults(m.set, func() error {
		var s scratch
		copy(x, decodeRow(m.v.dt, m.v.cols, m.v.row(r, &s), &s))
		return nil
	})
	if err != nil {
		m.mu.Lock()
		defer m.mu.Unlock()
		if m.err == nil {
			m.err = err
		}
	}
}
