package tensor

import (
	"fmt"
	"math"
	"strconv"
)

// An Index is a whole number that picks an element of an array weight or state,
// or stands in the name of a stored tensor: a constant, or a formula over other
// indices, such as 2*i+1. Those are of the enclosing repeat and par regions, or
// in a name the element's own. An Index is never changed once it is made.
type Index struct {
	Op   IndexOp
	N    int    // IndexConst: the number; IndexVar: which of the other indices, 0 for i
	X, Y *Index // operands of the others
}

// IndexOp is what an Index computes.
type IndexOp byte

// The operations of an Index. Both operands of / and % must be such that
// every rounding rule gives the same: the first at least 0, the second
// above 0.
const (
	IndexConst IndexOp = 0
	IndexVar   IndexOp = 'i'
	IndexAdd   IndexOp = '+'
	IndexSub   IndexOp = '-'
	IndexMul   IndexOp = '*'
	IndexDiv   IndexOp = '/'
	IndexRem   IndexOp = '%'
)

const (
	maxIndexOps   = 32            // operations of one index
	maxIndexValue = math.MaxInt32 // of every intermediate result, which C computes in an int
)

// ConstIndex returns the constant n.
func ConstIndex(n int) Index { return Index{N: n} }

// VarIndex is one of the other indices, counted from 0; it is written i, j, k, ….
func VarIndex(n int) Index { return Index{Op: IndexVar, N: n} }

// At returns the number that the index is where the other indices are those given.
func (x Index) At(vars []int) (int, error) {
	switch x.Op {
	case IndexConst:
		return x.N, nil
	case IndexVar:
		if x.N >= len(vars) {
			return 0, fmt.Errorf("%s is index number %d, but there are only %d here", x, x.N+1, len(vars))
		}
		return vars[x.N], nil
	}
	a, err := x.X.At(vars)
	if err != nil {
		return 0, err
	}
	b, err := x.Y.At(vars)
	if err != nil {
		return 0, err
	}
	n := 0
	switch x.Op {
	case IndexAdd:
		n = a + b
	case IndexSub:
		n = a - b
	case IndexMul:
		n = a * b // of two numbers of 32 bits
	case IndexDiv, IndexRem:
		switch {
		case b == 0:
			return 0, fmt.Errorf("%s divides by zero", x)
		case a < 0 || b < 0:
			return 0, fmt.Errorf("%s divides %d by %d; only numbers from 0 on divide", x, a, b)
		case x.Op == IndexDiv:
			n = a / b
		default:
			n = a % b
		}
	}
	if n > maxIndexValue || n < -maxIndexValue {
		return 0, fmt.Errorf("%s is %d, beyond %d", x, n, maxIndexValue)
	}
	return n, nil
}

// Constant reports whether the index depends on no other index.
func (x Index) Constant() bool {
	switch x.Op {
	case IndexConst:
		return true
	case IndexVar:
		return false
	}
	return x.X.Constant() && x.Y.Constant()
}

// Reads reports whether the index depends on one of the others.
func (x Index) Reads(n int) bool {
	switch x.Op {
	case IndexConst:
		return false
	case IndexVar:
		return x.N == n
	}
	return x.X.Reads(n) || x.Y.Reads(n)
}

// String returns the index as it stands in the IR, with no more brackets than it
// needs.
func (x Index) String() string { return x.Text(IndexName) }

// IndexName returns the letter of index number n: i for 0.
func IndexName(n int) string { return string(rune('i' + n)) }

// Text writes the index with names of the caller's for the others. It is an
// expression of C as well.
func (x Index) Text(name func(int) string) string {
	switch x.Op {
	case IndexConst:
		return strconv.Itoa(x.N)
	case IndexVar:
		return name(x.N)
	}
	a, b := x.X.Text(name), x.Y.Text(name)
	if x.X.binds() < x.binds() {
		a = "(" + a + ")"
	}
	if x.Y.binds() <= x.binds() {
		b = "(" + b + ")"
	}
	return a + string(rune(x.Op)) + b
}

// binds is how strongly the outermost operation holds its operands.
func (x Index) binds() int {
	switch x.Op {
	case IndexAdd, IndexSub:
		return 1
	case IndexMul, IndexDiv, IndexRem:
		return 2
	}
	return 3
}
