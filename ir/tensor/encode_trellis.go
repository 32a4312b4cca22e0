package tensor

import "math"

// A trellisSearch holds the values of one block and the weights of their errors in the
// order of the codes, and the best encoding so far.
type trellisSearch struct {
	l     *Trellis
	x, w  [trellisBlock]float32
	cost  [trellisBlock]float32 // of an error of one squared step
	scale uint16                // as BlockCodes returns it
	err   float64
	q     [trellisBlock]uint8 // the levels
	low   uint32              // low bits of the codes, the first code's lowest
}

// encodeTrellis tries scales around the one that maps the largest magnitude to the
// largest level. For each it finds the codes with the smallest squared error.
func encodeTrellis(dst []byte, dt DType, src []float32, how rounding) {
	s := trellisSearch{l: trellis[dt]}
	var clean [64]float32
	src = finiteBlock(src, &clean)
	s.search(src, how)
	s.put(dst)
}

func (s *trellisSearch) search(src []float32, how rounding) {
	top := s.load(src, how.importance)
	for i, x := range s.x { // of a scale of zero, which tiny values may need
		s.err += float64(x) * float64(x) * float64(s.w[i])
	}
	if top == 0 {
		return
	}
	around := float64(top / s.l.reach)
	s.try(s.stored(around)) // with equal weights
	if how.plain {
		return
	}
	s.weigh()
	for _, scale := range s.scales(around) {
		s.try(scale)
	}
	if !s.l.ByteScale {
		for range 2 {
			s.try(s.stored(s.refit()))
		}
	}
}

// farthest is more steps than there are between a value and the nearest level of a subset.
const farthest = 96

// load returns the largest magnitude. All costs are equal.
func (s *trellisSearch) load(src, importance []float32) (top float32) {
	var heaviest float32
	for _, w := range importance {
		heaviest = max(heaviest, w)
	}
	for place := range s.x {
		c := s.l.column(place)
		s.x[place], s.w[place], s.cost[place] = src[c], 1, equalCost
		if heaviest > 0 {
			s.w[place] = importance[c]
		}
		top = max(top, src[c], -src[c])
	}
	return top
}

// equalCost is the cost of an error of one squared step if all weights are equal.
const equalCost = (1 << 31) / (farthest * farthest * trellisBlock)

// weigh sets the costs of errors in proportion to their weights, such that the costs of a
// block fit into 31 bits.
func (s *trellisSearch) weigh() {
	var heaviest, sum float32
	for _, w := range s.w {
		heaviest = max(heaviest, w)
	}
	for _, w := range s.w {
		sum += w / heaviest
	}
	for place, w := range s.w {
		s.cost[place] = w / heaviest * ((1 << 31) / (farthest * farthest * sum))
	}
}

// stored returns a scale as BlockCodes returns it, rounded or, if it is a byte, cut off.
func (s *trellisSearch) stored(scale float64) uint16 {
	if s.l.ByteScale {
		return min(saturateF16(scale/byteScaleUnit)>>7, 0xf7) << 7
	}
	return saturateF16(scale)
}

// scales returns the candidates around a scale. They are at least three quarters of it:
// magnitudes beyond the largest level are cut off.
func (s *trellisSearch) scales(around float64) (out []uint16) {
	if !s.l.ByteScale {
		for _, r := range [...]float64{0.78, 0.84, 0.9, 0.96, 1.02, 1.08, 1.14} {
			out = append(out, s.stored(around*r))
		}
		return out
	}
	const step = 1 << 7
	for c := s.stored(around * 0.75); c <= s.stored(around*1.15); c += step {
		out = append(out, c)
	}
	return out
}

// refit returns the scale with the smallest squared error for the best codes.
func (s *trellisSearch) refit() float64 {
	var xl, ll float32
	for i, q := range s.q {
		level := float32(s.l.Levels[q])
		xl += float32(float32(s.w[i]*s.x[i]) * level)
		ll += float32(float32(s.w[i]*level) * level)
	}
	if ll == 0 {
		return 0
	}
	return float64(xl) / float64(ll)
}

// try encodes the block with a scale, and keeps the result if its error is smaller than
// that of the best so far.
func (s *trellisSearch) try(stored uint16) {
	scale := s.l.scaleOf(stored)
	if !(scale > 0) {
		return
	}
	inverse := 1 / scale
	var costs [trellisBlock][4]uint64 // in the upper half
	var q [trellisBlock][4]uint8
	for i, x := range s.x {
		x = within(float32(x * inverse))
		bucket, w := uint8(int(x+128)), s.cost[i]
		for d := range 4 {
			level := s.l.near[d][bucket].of(x)
			miss := x - float32(s.l.Levels[level])
			q[i][d], costs[i][d] = level, uint64(miss*miss*w)<<32
		}
	}
	low := viterbi(&costs)
	before := func(i, n int) uint32 { return low >> (uint(i-n) % trellisBlock) & 1 }
	err := 0.0
	var chosen [trellisBlock]uint8
	for i := range q {
		chosen[i] = q[i][2*(before(i, 0)^before(i, 2))+before(i, 1)]
		miss := float64(s.x[i]) - float64(scale*float32(s.l.Levels[chosen[i]]))
		err += float64(miss * miss * float64(s.w[i]))
	}
	if err < s.err {
		s.err, s.scale, s.low, s.q = err, stored, low, chosen
	}
}

// within limits a value in steps to the range of the tables of nearest levels.
func within(x float32) float32 { return max(-127, min(127, x)) }

// of returns the level closest to x.
func (n *nearest) of(x float32) uint8 {
	if x > n.middle {
		return n.q + 4
	}
	return n.q
}

// viterbi returns the cyclic sequence of low bits with the smallest sum of costs, the
// first bit lowest: Viterbi's algorithm, once for each of the four states that the
// sequence may begin and must end in. The cost of a bit u is that of the subset
// 2·(u ⊕ a) + b, with the bits b and a before it. Paths are kept in the lower halves of
// the sums.
func viterbi(costs *[trellisBlock][4]uint64) uint32 {
	const far = 1 << 63
	best := uint64(math.MaxUint64)
	for start := range 4 {
		s := [4]uint64{far, far, far, far} // by b + 2·a
		s[start] = 0
		s0, s1, s2, s3 := s[0], s[1], s[2], s[3]
		for i := range costs {
			c := &costs[i]
			bit := uint64(1) << i
			n0 := min(s0+c[0], s2+c[2])
			n1 := min(s0+c[2], s2+c[0]) | bit
			n2 := min(s1+c[1], s3+c[3])
			n3 := min(s1+c[3], s3+c[1]) | bit
			s0, s1, s2, s3 = n0, n1, n2, n3
		}
		s = [4]uint64{s0, s1, s2, s3}
		best = min(best, s[start])
	}
	return uint32(best)
}

// put stores the best encoding; zeros if there is none.
func (s *trellisSearch) put(dst []byte) {
	var codes [trellisBlock]uint8
	for i, q := range s.q {
		codes[s.l.column(i)] = q>>1 ^ uint8(s.low>>(uint(i-2)%trellisBlock)&1)
	}
	s.l.putBlock(dst, s.scale, codes[:])
}
