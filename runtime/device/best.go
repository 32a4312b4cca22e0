//go:build unix

package device

// NoToken is the entry of Step.Greedy for a row with unknown argmax.
const NoToken = -1

// A Best mirrors struct ifl_best of ifl_step.h: the argmax of some columns of a row.
type Best struct {
	Value float32
	At    int32 // column, BestNone or BestUnsure
}

// Values of Best.At that are no column.
const (
	BestNone   = -1
	BestUnsure = -2 // a number is not finite
)

// Argmax returns the column of the largest of parts[0], parts[stride], …, each of which
// covers some columns of a row. Of equal numbers the lowest column wins. It returns
// NoToken if a number is not finite, or if all parts are empty.
func Argmax(parts []Best, stride int) int32 {
	top := Best{At: BestNone}
	for i := 0; i < len(parts); i += stride {
		switch b := parts[i]; {
		case b.At == BestUnsure:
			return NoToken
		case b.At == BestNone:
		case top.At == BestNone, b.Value > top.Value, b.Value == top.Value && b.At < top.At:
			top = b
		}
	}
	return top.At // NoToken if all are none
}
