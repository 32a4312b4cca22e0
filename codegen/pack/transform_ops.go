package pack

import (
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
)

// common converts values to one type and checks that their rows have equal lengths.
func common(args []value) ([]value, error) {
	same := true
	for _, v := range args {
		if v.cols != args[0].cols || v.inner != args[0].inner || v.rank != args[0].rank {
			return nil, fmt.Errorf("rows of %d and of %d elements", args[0].inner*args[0].cols, v.inner*v.cols)
		}
		same = same && v.dt == args[0].dt
	}
	if same {
		return args, nil
	}
	out := make([]value, len(args))
	for i, v := range args {
		out[i] = v.floats()
	}
	return out, nil
}

func evalConcat(_ *tensor.Transform, args []value, _ []int) (value, error) {
	args, err := common(args)
	if err != nil {
		return value{}, err
	}
	out := args[0]
	out.raw, out.rows = nil, 0
	starts := make([]int, len(args))
	for i, a := range args {
		starts[i] = out.rows
		out.rows += a.rows
	}
	which := func(r int) (arg, row int) {
		i, found := slices.BinarySearch(starts, r)
		if !found {
			i--
		}
		for i+1 < len(starts) && starts[i+1] == r { // skip empty arguments
			i++
		}
		return i, r - starts[i]
	}
	out.row = func(r int, s *scratch) []byte {
		i, at := which(r)
		return args[i].row(at, s)
	}
	out.outliers = outliersOf(args, which)
	return out, nil
}

func evalInterleave(_ *tensor.Transform, args []value, _ []int) (value, error) {
	args, err := common(args)
	if err != nil {
		return value{}, err
	}
	if args[0].rows != args[1].rows {
		return value{}, fmt.Errorf("%d rows and %d rows", args[0].rows, args[1].rows)
	}
	if args[0].rank > 2 {
		return value{}, fmt.Errorf("a tensor of %d dimensions; expected matrices or vectors", args[0].rank)
	}
	n := args[0].rows
	out := args[0]
	out.raw, out.rows = nil, 2*((n+packed.PanelRows-1)/packed.PanelRows*packed.PanelRows)
	zero := make([]byte, rowBytes(out.dt, out.cols)) // decodes to zeros in every type
	which := func(r int) (arg, row int) {
		at := r/(2*packed.PanelRows)*packed.PanelRows + r%packed.PanelRows
		if at >= n {
			return -1, 0
		}
		return r / packed.PanelRows % 2, at
	}
	out.row = func(r int, s *scratch) []byte {
		i, at := which(r)
		if i < 0 {
			return zero
		}
		return args[i].row(at, s)
	}
	out.outliers = outliersOf(args, which)
	return out, nil
}

func evalRows(r *tensor.Transform, args []value, _ []int) (value, error) {
	v := args[0]
	lo, hi, err := interval(r.Nums[0], r.Nums[1], v.rows/v.inner)
	if err != nil {
		return value{}, err
	}
	return v.rowRange(lo, hi), nil
}

// rowRange selects rows lo…hi along axis 0.
func (v value) rowRange(lo, hi int) value {
	if v.raw == nil {
		return v.remap(hi-lo, func(r int) int { return lo + r })
	}
	size := v.inner * rowBytes(v.dt, v.cols)
	out := fromRaw(v.dt, (hi-lo)*v.inner, v.cols, v.rank, v.raw[lo*size:hi*size])
	out.inner = v.inner
	out.outliers = outliersOf([]value{v}, func(r int) (int, int) { return 0, lo*v.inner + r })
	return out
}

// evalPartRows selects one of Nums[0] equal parts of the rows by the last index.
func evalPartRows(r *tensor.Transform, args []value, index []int) (value, error) {
	v := args[0]
	lo, hi, err := part(r, v.rows/v.inner, index)
	if err != nil {
		return value{}, err
	}
	return v.rowRange(lo, hi), nil
}

// evalPartCols is like evalPartRows for columns of a matrix.
func evalPartCols(r *tensor.Transform, args []value, index []int) (value, error) {
	lo, hi, err := part(r, args[0].cols, index)
	if err != nil {
		return value{}, err
	}
	return args[0].colRange(lo, hi)
}

func part(r *tensor.Transform, n int, index []int) (lo, hi int, err error) {
	parts := int(r.Nums[0])
	if float64(parts) != r.Nums[0] || parts < 1 || n%parts != 0 {
		return 0, 0, fmt.Errorf("%d rows or columns are not %v equal parts", n, r.Nums[0])
	}
	if len(index) == 0 || index[len(index)-1] < 0 || index[len(index)-1] >= parts {
		return 0, 0, fmt.Errorf("no part of %d for index %v", parts, index)
	}
	lo = n / parts * index[len(index)-1]
	return lo, lo + n/parts, nil
}

func evalCols(r *tensor.Transform, args []value, _ []int) (value, error) {
	lo, hi, err := interval(r.Nums[0], r.Nums[1], args[0].cols)
	if err != nil {
		return value{}, err
	}
	return args[0].colRange(lo, hi)
}

// colRange selects columns lo…hi of a matrix; whole blocks are copied unchanged.
func (v value) colRange(lo, hi int) (value, error) {
	if v.rank != 2 {
		return value{}, fmt.Errorf("columns of a tensor of %d dimensions; expected a matrix", v.rank)
	}
	b := v.dt.Block()
	if lo%b != 0 || hi%b != 0 && hi != v.cols {
		v = v.floats()
	}
	row, from, size := v.row, v.dt.RowBytes(lo), rowBytes(v.dt, hi-lo)
	return value{dt: v.dt, rows: v.rows, cols: hi - lo, inner: 1, rank: 2, row: func(r int, s *scratch) []byte {
		return row(r, s)[from : from+size]
	}}, nil
}

// interval reads lo ≤ x < hi within n.
func interval(a, b float64, n int) (lo, hi int, err error) {
	lo, hi = int(a), int(b)
	if float64(lo) != a || float64(hi) != b || lo < 0 || hi <= lo || hi > n {
		return 0, 0, fmt.Errorf("range %v to %v of %d", a, b, n)
	}
	return lo, hi, nil
}

func evalTranspose(_ *tensor.Transform, args []value, _ []int) (value, error) {
	v := args[0]
	if v.rank != 2 {
		return value{}, fmt.Errorf("a tensor of %d dimensions; expected a matrix", v.rank)
	}
	if v.dt.IsBlock() {
		v = v.floats()
	}
	size := v.dt.BlockBytes()
	out := make([]byte, v.rows*v.cols*size)
	var s scratch
	for r := range v.rows {
		s.reset()
		row := v.row(r, &s)
		for c := range v.cols {
			copy(out[(c*v.rows+r)*size:], row[c*size:(c+1)*size])
		}
	}
	return fromRaw(v.dt, v.cols, v.rows, 2, out), nil
}

func evalReshape(r *tensor.Transform, args []value, _ []int) (value, error) {
	v := args[0]
	n, rows, cols := 1, 1, 1
	for i, d := range r.Nums {
		if d != math.Trunc(d) || d < 1 || d > float64(v.rows*v.cols) || float64(n)*d > float64(v.rows*v.cols) {
			return value{}, fmt.Errorf("%d elements do not have shape %v", v.rows*v.cols, r.Nums)
		}
		n *= int(d)
		if i == len(r.Nums)-1 {
			cols = int(d)
		} else {
			rows *= int(d)
		}
	}
	if n != v.rows*v.cols {
		return value{}, fmt.Errorf("%d elements do not have shape %v", v.rows*v.cols, r.Nums)
	}
	if len(r.Nums) == 1 {
		rows, cols = cols, 1
	}
	if b := v.dt.Block(); v.cols%b != 0 || cols%b != 0 {
		v = v.floats()
	}
	out := fromRaw(v.dt, rows, cols, len(r.Nums), v.collect().raw)
	if len(r.Nums) > 2 {
		out.inner = rows / int(r.Nums[0])
	}
	return out, nil
}

// evalPermuteRows reverses a permutation of rows. "gguf_rope": GGUF files of the llama
// family interleave the rotary pairs of a query or key head: (0, d/2, 1, d/2+1, …) of
// the half-split order. Row t·d/2+i of a head is stored row 2i+t.
func evalPermuteRows(r *tensor.Transform, args []value, _ []int) (value, error) {
	v := args[0]
	n := v.rows / v.inner
	if r.Word != "gguf_rope" {
		return value{}, fmt.Errorf("unknown permutation %q; gguf_rope is known", r.Word)
	}
	heads := int(r.Nums[0])
	if float64(heads) != r.Nums[0] || heads < 1 || n%heads != 0 || n/heads%2 != 0 {
		return value{}, fmt.Errorf("%d rows are not %v heads of even width", n, r.Nums[0])
	}
	d := n / heads
	return v.remap(n, func(r int) int {
		head, t, i := r/d, r%d/(d/2), r%(d/2)
		return head*d + 2*i + t
	}), nil
}

// evalGroupRows selects rows lo…hi of each of `groups` groups of `group` rows.
func evalGroupRows(r *tensor.Transform, args []value, _ []int) (value, error) {
	v := args[0]
	n := v.rows / v.inner
	groups, group := int(r.Nums[0]), int(r.Nums[1])
	if float64(groups) != r.Nums[0] || float64(group) != r.Nums[1] || groups < 1 || group < 1 || groups > n || group > n || groups*group != n {
		return value{}, fmt.Errorf("%d rows are not %v groups of %v", n, r.Nums[0], r.Nums[1])
	}
	lo, hi, err := interval(r.Nums[2], r.Nums[3], group)
	if err != nil {
		return value{}, err
	}
	take := hi - lo
	return v.remap(groups*take, func(r int) int { return r/take*group + lo + r%take }), nil
}

// evalRepeatRows repeats each row.
func evalRepeatRows(r *tensor.Transform, args []value, _ []int) (value, error) {
	v, n := args[0], int(r.Nums[0])
	if n < 1 || float64(n) != r.Nums[0] {
		return value{}, fmt.Errorf("each row %v times; want a whole number above 0", r.Nums[0])
	}
	return v.remap(v.rows/v.inner*n, func(row int) int { return row / n }), nil
}

// evalFill repeats the only element of a vector.
func evalFill(r *tensor.Transform, args []value, _ []int) (value, error) {
	v, n := args[0], int(r.Nums[0])
	if v.rank > 1 || v.rows != 1 || n < 1 {
		return value{}, fmt.Errorf("%d of %d rows; want some of a vector of one element", n, v.rows)
	}
	return v.remap(n, func(int) int { return 0 }), nil
}

// evalL2NormRows divides by max(‖row‖₂, 10⁻¹²), as torch's normalize does.
func evalL2NormRows(_ *tensor.Transform, args []value, _ []int) (value, error) {
	if args[0].rank != 2 {
		return value{}, errors.New("a tensor that is not a matrix")
	}
	return args[0].mapFloats(func(x []float32) {
		var sum float64
		for _, v := range x {
			sum += float64(v) * float64(v)
		}
		norm := max(math.Sqrt(sum), 1e-12)
		for i, v := range x {
			x[i] = float32(float64(v) / norm)
		}
	}), nil
}
