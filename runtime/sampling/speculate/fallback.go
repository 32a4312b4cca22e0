package speculate

import "github.com/iflowc/iflowc/runtime/sampling/decode"

// A fallback tries several drafters in order.
type fallback []Drafter

// Fallback returns a drafter that uses the first non-empty draft of a list of drafters.
func Fallback(list ...Drafter) Drafter {
	if len(list) == 1 {
		return list[0]
	}
	return fallback(list)
}

// Propose implements Drafter.
func (f fallback) Propose(history []int32, room Room) (d Draft) {
	for _, one := range f {
		if d = one.Propose(history, room); d.Len() > 0 {
			break
		}
	}
	return d
}

// Observe implements Drafter.
func (f fallback) Observe(tokens []int32) {
	for _, one := range f {
		one.Observe(tokens)
	}
}

// Reads implements RowReader.
func (f fallback) Reads() bool {
	for _, one := range f {
		if r, ok := one.(RowReader); ok && r.Reads() {
			return true
		}
	}
	return false
}

// ReadRows implements RowReader.
func (f fallback) ReadRows(row func(output int) []float32) {
	for _, one := range f {
		if r, ok := one.(RowReader); ok {
			r.ReadRows(row)
		}
	}
}

// Chain implements Chainer.
func (f fallback) Chain(run ChainRun) {
	for _, one := range f {
		if c, ok := one.(Chainer); ok {
			c.Chain(run)
		}
	}
}

// DrawBy implements Drawer.
func (f fallback) DrawBy(draw func(logits []float32) (int32, []decode.TokenProb, error)) {
	for _, one := range f {
		DrawBy(one, draw)
	}
}

// DrawBy sets the function that a drafter samples its tokens with, if it is a Drawer.
func DrawBy(d Drafter, draw func(logits []float32) (int32, []decode.TokenProb, error)) {
	if one, ok := d.(Drawer); ok {
		one.DrawBy(draw)
	}
}
