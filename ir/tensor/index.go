package tensor

import (
	"fmt"
	"math"
	"strconv"
)

// An Index is an integer expression that selects one weight or state of an array of
// them, such as that of a layer, or occurs in the name of a stored tensor. It is a constant or a formula over variables,
// such as 2*i+1. The variables are the indices of the enclosing repeat and par regions,
// or, in a name, the indices of the weight's element. An Index is immutable.
type Index struct {
	Op   IndexOp
	N    int    // IndexConst: the value; IndexVar: the number of the variable, 0 for i
	X, Y *Index // operands of the other operations
}

// An IndexOp is the operation of an Index.
type IndexOp byte

// The operations of an Index. The operands of / and % must be such that all rounding
// rules agree: the first is at least 0, the second above 0.
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
	maxIndexOps   = 32            // maximum number of operations of one index
	maxIndexValue = math.MaxInt32 // maximum of every intermediate result, because C computes in an int
)

// ConstIndex returns the constant n.
func ConstIndex(n int) Index { return Index{N: n} }

// VarIndex returns variable n, counted from 0; variables are written i, j, k, ….
func VarIndex(n int) Index { return Index{Op: IndexVar, N: n} }

// At returns the value of the index for the given values of the variables.
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
		n = a * b // cannot overflow: both have 32 bits
	case IndexDiv, IndexRem:
		switch {
		case b == 0:
			return 0, fmt.Errorf("%s divides by zero", x)
		case a < 0 || b < 0:
			return 0, fmt.Errorf("%s divides %d by %d; want a non-negative dividend and a positive divisor", x, a, b)
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

// Constant reports whether the index contains no variable.
func (x Index) Constant() bool {
	switch x.Op {
	case IndexConst:
		return true
	case IndexVar:
		return false
	}
	return x.X.Constant() && x.Y.Constant()
}

// Reads reports whether the index contains variable n.
func (x Index) Reads(n int) bool {
	switch x.Op {
	case IndexConst:
		return false
	case IndexVar:
		return x.N == n
	}
	return x.X.Reads(n) || x.Y.Reads(n)
}

// String returns the index in IR syntax, with the minimum of parentheses.
func (x Index) String() string { return x.Text(IndexName) }

// IndexName returns the letter of variable n: i for 0.
func IndexName(n int) string { return string(rune('i' + n)) }

// Text returns the index with the caller's names of variables. The result is also a C
// expression.
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

// binds returns the precedence of the outermost operation.
func (x Index) binds() int {
	switch x.Op {
	case IndexAdd, IndexSub:
		return 1
	case IndexMul, IndexDiv, IndexRem:
		return 2
	}
	return 3
}
