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
		s.extend(&now, &next, f, scale, i)
		now, next = next, now
	}
	best := &now[start]
	if err := s.errorAfter(f, scale); best.exists && best.err < err {
		s.q, s.low = best.q, best.low
	}
}

// targets returns the value to encode at place i after each sequence of i codes. The four
// sums are independent, so that the CPU adds them side by side.
func (f *blockFactor) targets(now *[4]survivor, x float32, i int) (t [4]float32) {
	t0, t1, t2, t3 := x, x, x, x
	d0, d1, d2, d3 := &now[0].d, &now[1].d, &now[2].d, &now[3].d
	for j, b := range f.before[i][:i&(trellisBlock-1)] {
		t0 += float32(b * d0[j])
		t1 += float32(b * d1[j])
		t2 += float32(b * d2[j])
		t3 += float32(b * d3[j])
	}
	return [4]float32{t0, t1, t2, t3}
}

// extend continues each sequence of i codes by both low bits, and keeps the better of the
// two that end in the same state.
func (s *trellisSearch) extend(now, next *[4]survivor, f *blockFactor, scale float32, i int) {
	var best [4]struct {
		err    float64
		d      float32
		from   uint32
		q      uint8
		exists bool
	}
	targets := f.targets(now, s.x[i], i)
	for state := range uint32(4) {
		if !now[state].exists {
			continue
		}
		x := within(float32(targets[state] / scale))
		bucket := uint8(int(x + 128))
		b, a := state&1, state>>1
		for u := range uint32(2) {
			q := s.l.near[2*(u^a)+b][bucket].of(x)
			value := scale * float32(s.l.Levels[q])
			miss := float64(targets[state]) - float64(value)
			err := now[state].err + float64(miss*miss*float64(f.weight[i]))
			if to := &best[u|b<<1]; !to.exists || err < to.err {
				to.err, to.d, to.from, to.q, to.exists = err, s.x[i]-value, state, q, true
			}
		}
	}
	for state := range next {
		to, c := &next[state], &best[state]
		if !c.exists {
			to.exists = false
			continue
		}
		*to = now[c.from]
		to.err, to.d[i], to.q[i], to.low = c.err, c.d, c.q, to.low|uint32(state&1)<<i
	}
}

// errorAfter returns the error of the best encoding so far after compensation.
func (s *trellisSearch) errorAfter(f *blockFactor, scale float32) (err float64) {
	var d [trellisBlock]float32
	for i, q := range s.q {
		d[i] = s.x[i] - float32(scale*float32(s.l.Levels[q]))
		miss := d[i]
		for j, b := range f.before[i][:i] {
			miss += float32(b * d[j])
		}
		err += float64(float64(miss) * float64(miss) * float64(f.weight[i]))
	}
	return err
}
