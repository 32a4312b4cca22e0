//go:build unix

package device

import "cmp"

// A Best mirrors struct ifl_best of ifl_step.h: the argmax of some columns of a row, or
// one of its largest numbers.
type Best struct {
	Value float32
	At    int32 // column, BestNone or BestUnsure
}

// Values of Best.At that are no column.
const (
	BestNone   = -1
	BestUnsure = -2 // a number is not finite
)

// Order sorts by descending value and, of equal ones, by column.
func (b Best) Order(o Best) int {
	return cmp.Or(cmp.Compare(o.Value, b.Value), cmp.Compare(b.At, o.At))
}

// Argmax returns the largest of parts[0], parts[stride], …, each of which covers some
// columns of a row. Of equal numbers the lowest column wins. It returns false if a
// number is not finite, or if all parts are empty.
func Argmax(parts []Best, stride int) (Best, bool) {
	top := Best{At: BestNone}
	for i := 0; i < len(parts); i += stride {
		switch b := parts[i]; {
		case b.At == BestUnsure:
			return b, false
		case b.At == BestNone:
		case top.At == BestNone, b.Order(top) < 0:
			top = b
		}
	}
	return top, top.At != BestNone
}
