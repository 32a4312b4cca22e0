package tensor

import "math"

// A blockFactor describes the squared error of the columns of one block after
// compensation by the columns after the block, as Σ weight[i]·(d[i] + Σ before[i][j]·d[j],
// j < i)², with the differences d in the order of a trellis' codes.
type blockFactor struct {
	before [trellisBlock][trellisBlock]float32
	weight [trellisBlock]float32
}

// factorBlock changes the order of columns c … of a square of n columns to that of codes.
func factorBlock(follow, weight []float32, n, c int) (f blockFactor) {
	// In the order of columns, the error after compensation is e[i] = d[i] − Σ follow[j][i]·e[j]:
	// e = t·d with a lower triangular t.
	size := min(trellisBlock, n-c)
	var t, m [trellisBlock][trellisBlock]float64
	for i := range size {
		t[i][i] = 1
		for j := range i {
			for k := range j + 1 {
				t[i][k] -= float64(float64(follow[(c+j)*n+c+i]) * t[j][k])
			}
		}
	}
	place := func(i int) int { return i%4*8 + i/4 }
	for i := range size {
		for j := range i + 1 {
			for k := range i + 1 {
				m[place(j)][place(k)] += float64(float64(float64(weight[i])*t[i][j]) * t[i][k])
			}
		}
	}
	for i := trellisBlock - 1; i >= 0; i-- {
		w := m[i][i]
		f.weight[i] = float32(w)
		if w == 0 {
			continue // beyond the last column
		}
		for j := range i {
			b := m[i][j] / w
			f.before[i][j] = float32(b)
			for k := range i {
				m[j][k] -= float64(b * m[i][k])
			}
		}
	}
	return f
}

// trellisBlock encodes columns c … of square p, whose weights are w, and updates the
// later columns.
func (f *Feedback) trellisBlock(out []byte, dt DType, w []float32, p, c int, how rounding) {
	s := trellisSearch{l: trellis[dt], err: math.Inf(1)}
	s.search(w[c:c+trellisBlock], how)
	s.compensate(&f.blocks[(p*f.square+c)/trellisBlock])
	s.put(out)
	var values [trellisBlock]float32
	decodeTrellis(values[:], dt, out)
	n, follow := len(w), f.follow[p]
	for i, v := range values {
		if miss := w[c+i] - v; miss != 0 {
			subtract(w[c+i+1:], miss, follow[(c+i)*n+c+i+1:(c+i+1)*n])
		}
	}
}

// A survivor is the best sequence of codes that ends in a state.
type survivor struct {
	err    float64
	d      [trellisBlock]float32 // differences between values and levels
	q      [trellisBlock]uint8
	low    uint32
	exists bool
}

// compensate encodes the block with the chosen scale again, from the state that was
// chosen: for each state it keeps the best sequence, and its errors change the values to
// come. The result is used if the block's error is smaller.
func (s *trellisSearch) compensate(f *blockFactor) {
	scale := s.l.scaleOf(s.scale)
	if math.IsInf(s.err, 1) || scale == 0 {
		return
	}
	start := s.low>>31 | s.low>>30&1<<1 // b + 2·a
	var now, next [4]survivor
	now[start].exists = true
	for i := range trellisBlock {
		for state := range next {
			next[state].exists = false
		}
		for state := range uint32(4) {
			from := &now[state]
			if from.exists {
				s.extend(from, &next, f, scale, state, i)
			}
		}
		now, next = next, now
	}
	best := &now[start]
	if err := s.errorAfter(f, scale); best.exists && best.err < err {
		s.q, s.low = best.q, best.low
	}
}

// extend continues a sequence of i codes by both low bits.
func (s *trellisSearch) extend(from *survivor, next *[4]survivor, f *blockFactor, scale float32, state uint32, i int) {
	target := s.x[i]
	for j, b := range f.before[i][:i] {
		target += float32(b * from.d[j])
	}
	x := within(float32(target / scale))
	bucket := uint8(int(x + 128))
	b, a := state&1, state>>1
	for u := range uint32(2) {
		q := s.l.near[2*(u^a)+b][bucket].of(x)
		value := scale * float32(s.l.Levels[q])
		miss := float64(target) - float64(value)
		err := from.err + float64(miss*miss*float64(f.weight[i]))
		to := &next[u|b<<1]
		if to.exists && to.err <= err {
			continue
		}
		*to = *from
		to.err, to.d[i], to.q[i], to.low = err, s.x[i]-value, q, from.low|u<<i
	}
}

// errorAfter returns the error of the best encoding so far after compensation.
func (s *trellisSearch) errorAfter(f *blockFactor, scale float32) (err float64) {
	var d [trellisBlock]float32
	for i, q := range s.q {
		d[i] = s.x[i] - scale*float32(s.l.Levels[q])
		miss := d[i]
		for j, b := range f.before[i][:i] {
			miss += float32(b * d[j])
		}
		err += float64(float64(miss) * float64(miss) * float64(f.weight[i]))
	}
	return err
}
