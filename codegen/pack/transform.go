package pack

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// A Dense is an evaluated transform: Rows × Cols elements. Rows are computed on demand,
// so that a weight larger than memory can be processed row by row. A vector (rank 1 or
// 0) has one row. It is safe for concurrent use, and valid until the set is closed.
//
// A row of a block type holds whole blocks; if Cols is not a multiple of the block
// size, the elements beyond Cols are unspecified.
type Dense struct {
	DType      tensor.DType
	Rows, Cols int
	row        rowFunc
	outliers   func(r int) []tensor.SparseOutlier // added to the rows; nil: none
}

// A rowFunc returns the bytes of a row: a view of the file, or memory of s that is
// valid until s is reset.
type rowFunc func(r int, s *scratch) []byte

// RowBytes returns the size of a row in bytes.
func (d *Dense) RowBytes() int { return rowBytes(d.DType, d.Cols) }

// Row returns the bytes of row r; they must not be written to.
func (d *Dense) Row(r int) []byte { return d.row(r, &scratch{}) }

// SparseOutliers returns the corrections to entries of row r; nil for most matrices.
func (d *Dense) SparseOutliers(r int) []tensor.SparseOutlier {
	if d.outliers == nil {
		return nil
	}
	return d.outliers(r)
}

// Bytes returns all rows, without their outliers.
func (d *Dense) Bytes() []byte {
	out := make([]byte, 0, d.Rows*d.RowBytes())
	var s scratch
	for r := range d.Rows {
		s.reset()
		out = append(out, d.row(r, &s)...)
	}
	return out
}

// Float32 returns the Rows·Cols decoded values, row-major, including outliers.
func (d *Dense) Float32() []float32 {
	out := make([]float32, d.Rows*d.Cols)
	var s scratch
	for r := range d.Rows {
		s.reset()
		copy(out[r*d.Cols:(r+1)*d.Cols], decodeRow(d.DType, d.Cols, d.row(r, &s), &s))
		for _, x := range d.SparseOutliers(r) {
			out[r*d.Cols+x.Col] += x.Value
		}
	}
	return out
}

// Eval evaluates a transform over the stored tensors. "{i}" and "{j}" in source
// names stand for index[0] and index[1]. Operations that only move rows keep stored
// blocks: a quantized matrix stays exact through concat, interleave, rows, group_rows
// and permute_rows, and quantize transcodes it. Operations on values compute in
// float32. Rows of matrices are axis 0; for vectors the row operations work on
// elements. Only transpose and reshape hold a weight in memory.
func Eval(src Source, r *tensor.Transform, index []int) (*Dense, error) {
	return evalTo(src, r, index, tensor.Invalid)
}

// evalTo is Eval for a result that is wanted in type dt, which it need not have.
func evalTo(src Source, r *tensor.Transform, index []int, dt tensor.DType) (*Dense, error) {
	e := evaluator{src: src, index: index}
	v, err := e.evalTo(r, dt)
	if err != nil {
		return nil, err
	}
	if v.rank < 2 {
		v = v.asRow()
	}
	return &Dense{DType: v.dt, Rows: v.rows, Cols: v.cols, row: v.row, outliers: v.outliers}, nil
}

// A value is an intermediate result. Vectors are columns: rows elements, one
// column, so that operations on rows work on their elements. Of tensors with
// more than two dimensions cols is the last one; inner rows make a step along
// axis 0 (inner is 1 for matrices and vectors).
type value struct {
	dt         tensor.DType
	rows, cols int
	inner      int
	rank       int
	row        rowFunc
	raw        []byte                             // all rows, when they are one run of bytes
	outliers   func(r int) []tensor.SparseOutlier // of row r; nil: none
}

func rowBytes(dt tensor.DType, cols int) int {
	b := dt.Block()
	return (cols + b - 1) / b * dt.BlockBytes()
}

func decodeRow(dt tensor.DType, cols int, raw []byte, s *scratch) []float32 {
	n := len(raw) / dt.BlockBytes() * dt.Block()
	out := s.floats(n)
	if err := tensor.Decode(out, dt, raw); err != nil {
		panic("bug: " + err.Error())
	}
	return out[:cols]
}

// fromRaw returns a value with contiguous rows.
func fromRaw(dt tensor.DType, rows, cols, rank int, raw []byte) value {
	size := rowBytes(dt, cols)
	return value{dt: dt, rows: rows, cols: cols, inner: 1, rank: rank, raw: raw,
		row: func(r int, _ *scratch) []byte { return raw[r*size : (r+1)*size : (r+1)*size] }}
}

// collect makes the rows contiguous.
func (v value) collect() value {
	if v.raw != nil {
		return v
	}
	d := Dense{DType: v.dt, Rows: v.rows, Cols: v.cols, row: v.row}
	out := fromRaw(v.dt, v.rows, v.cols, v.rank, d.Bytes())
	out.inner = v.inner
	return out
}

// asRow converts a column of elements to one row.
func (v value) asRow() value {
	v = v.collect()
	return fromRaw(v.dt, 1, v.rows, v.rank, v.raw)
}

// floats decodes to float32, row by row.
func (v value) floats() value {
	if v.dt == tensor.F32 {
		return v
	}
	return v.mapFloats(func([]float32) {})
}

// mapFloats applies a function to the float32 values of each row.
func (v value) mapFloats(f func(x []float32)) value {
	row, dt, cols := v.row, v.dt, v.cols
	return value{dt: tensor.F32, rows: v.rows, cols: cols, inner: v.inner, rank: v.rank, row: func(r int, s *scratch) []byte {
		x := decodeRow(dt, cols, row(r, s), s)
		f(x)
		return encodeFloats(x, s)
	}}
}

// remap returns a value of n rows along axis 0; row r is row from(r) of v.
func (v value) remap(n int, from func(r int) int) value {
	row, inner := v.row, v.inner
	outliers := outliersOf([]value{v}, func(r int) (int, int) { return 0, from(r/inner)*inner + r%inner })
	return value{dt: v.dt, rows: n * inner, cols: v.cols, inner: inner, rank: v.rank, outliers: outliers, row: func(r int, s *scratch) []byte {
		return row(from(r/inner)*inner+r%inner, s)
	}}
}

// A Source is the input of weight transforms.
type Source struct {
	Set         *checkpoint.Set // the stored tensors
	Calibration *Calibration    // weights of quantization errors; may be nil
}

type evaluator struct {
	src   Source
	index []int
	exact bool // sources are the values that the files store, not rounded to a type
}

// A transformOp evaluates one operation on evaluated arguments.
type operation struct {
	args, nums int // numbers of them; -1 for one or more
	eval       func(r *tensor.Transform, args []value, index []int) (value, error)
}

var operations = map[string]operation{
	"concat":       {-1, 0, evalConcat},
	"interleave":   {2, 0, evalInterleave},
	"rows":         {1, 2, evalRows},
	"cols":         {1, 2, evalCols},
	"part_rows":    {1, 1, evalPartRows},
	"part_cols":    {1, 1, evalPartCols},
	"transpose":    {1, 0, evalTranspose},
	"reshape":      {1, -1, evalReshape},
	"permute_rows": {1, 1, evalPermuteRows},
	"group_rows":   {1, 4, evalGroupRows},
	"repeat_rows":  {1, 1, evalRepeatRows},
	"scale":        {1, 1, evalScale},
	"add":          {1, 1, evalAdd},
	"l2norm_rows":  {1, 0, evalL2NormRows},
	"softplus":     {1, 0, evalSoftplus},
	"exp":          {1, 0, evalExp},
	"sub":          {2, 0, evalSub},
	"dot":          {2, 0, evalDot},
	"linear":       {-1, 0, evalLinear},
	"layernorm":    {3, 1, evalLayerNorm},
	"fill":         {1, 1, evalFill},
	"quantize":     {1, 0, nil}, // evaluator.quantize

	"quantize_sparse": {1, 1, nil}, // evaluator.quantizeSparse
}

func (e *evaluator) eval(r *tensor.Transform) (value, error) {
	if r.Op == "source" {
		return e.source(r.Name)
	}
	op, ok := operations[r.Op]
	if !ok {
		return value{}, fmt.Errorf("transform %s: unknown operation %q", r, r.Op)
	}
	if !fits(op.args, len(r.Args)) || !fits(op.nums, len(r.Nums)) {
		return value{}, fmt.Errorf("transform %s: %s with %d arguments and %d numbers", r, r.Op, len(r.Args), len(r.Nums))
	}
	switch r.Op {
	case "quantize":
		return e.quantize(r)
	case "quantize_sparse":
		return e.quantizeSparse(r)
	}
	args := make([]value, len(r.Args))
	for i, a := range r.Args {
		v, err := e.eval(a)
		if err != nil {
			return value{}, err
		}
		args[i] = v
	}
	if err := checkStackable(r, args); err != nil {
		return value{}, err
	}
	v, err := op.eval(r, args, e.index)
	if err != nil {
		return value{}, fmt.Errorf("transform %s: %w", r, err)
	}
	return v, nil
}

// evalTo evaluates a transform whose result is wanted in type dt. Of values that files store
// and their type only approximates, it takes the approximation if the result then has that
// type, and otherwise the values.
func (e *evaluator) evalTo(r *tensor.Transform, dt tensor.DType) (value, error) {
	v, err := e.eval(r)
	if err != nil || e.exact || v.dt == dt && dt != tensor.F32 {
		return v, err
	}
	for _, pattern := range r.Sources() {
		if name, err := tensor.SourceName(pattern, e.index); err == nil && e.src.Set.Values(name) != nil {
			exact := *e
			exact.exact = true
			return exact.eval(r)
		}
	}
	return v, nil
}

func fits(want, got int) bool { return want == got || want < 0 && got > 0 }

func (e *evaluator) source(pattern string) (value, error) {
	name, err := tensor.SourceName(pattern, e.index)
	if err != nil {
		return value{}, err
	}
	info, _ := e.src.Set.Lookup(name)
	if values := e.src.Set.Values(name); values != nil && e.exact {
		return computedRows(info, values), nil
	}
	if decode := e.src.Set.RowDecoder(name); decode != nil {
		return decodedRows(info, decode), nil
	}
	raw, err := e.src.Set.Bytes(name)
	if err != nil {
		return value{}, err
	}
	n, rank := info.Elements(), len(info.Shape)
	if n == 0 {
		return value{}, fmt.Errorf("%s: tensor %q of shape %v is empty", info.File, name, info.Shape)
	}
	if rank >= 2 {
		cols := info.Shape[rank-1]
		rows := 1
		for _, d := range info.Shape[:rank-1] {
			rows *= d
		}
		v := fromRaw(info.DType, rows, cols, rank, raw)
		v.inner = rows / info.Shape[0]
		return v, nil
	}
	if !info.DType.IsBlock() {
		return fromRaw(info.DType, n, 1, 1, raw), nil
	}
	x, err := e.src.Set.Float32(name)
	if err != nil {
		return value{}, err
	}
	decoded := make([]byte, 4*n)
	if err := tensor.Encode(decoded, tensor.F32, x); err != nil {
		return value{}, err
	}
	return fromRaw(tensor.F32, n, 1, 1, decoded), nil
}

// decodedRows returns a tensor with rows that are decoded one by one.
func decodedRows(t checkpoint.Info, decode func(r int, out []byte)) value {
	rank := len(t.Shape)
	cols := t.Shape[rank-1]
	rows := t.Elements() / cols
	return value{dt: t.DType, rows: rows, cols: cols, inner: rows / t.Shape[0], rank: rank, row: func(r int, s *scratch) []byte {
		out := s.bytes(rowBytes(t.DType, cols))
		decode(r, out)
		return out
	}}
}

// computedRows returns the float32 values of a tensor, computed row by row.
func computedRows(t checkpoint.Info, values func(r int, x []float32)) value {
	cols := t.Shape[len(t.Shape)-1]
	t.DType = tensor.F32
	return decodedRows(t, func(r int, out []byte) {
		x := make([]float32, cols)
		values(r, x)
		for i, v := range x {
			binary.LittleEndian.PutUint32(out[4*i:], math.Float32bits(v))
		}
	})
}

// A scratch is memory for rows in progress, used by one goroutine.
type scratch struct {
	b     []byte
	f     []float32
	usedB int
	usedF int
	needB int
	needF int
}

// reset invalidates all allocations and keeps the memory.
func (s *scratch) reset() {
	if s.needB > len(s.b) {
		s.b = make([]byte, s.needB)
	}
	if s.needF > len(s.f) {
		s.f = make([]float32, s.needF)
	}
	s.usedB, s.usedF, s.needB, s.needF = 0, 0, 0, 0
}

func (s *scratch) bytes(n int) []byte {
	s.needB += n
	if s.usedB+n > len(s.b) {
		return make([]byte, n)
	}
	s.usedB += n
	return s.b[s.usedB-n : s.usedB : s.usedB]
}

func (s *scratch) floats(n int) []float32 {
	s.needF += n
	if s.usedF+n > len(s.f) {
		return make([]float32, n)
	}
	s.usedF += n
	return s.f[s.usedF-n : s.usedF : s.usedF]
}
