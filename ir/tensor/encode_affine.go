package tensor

import (
	"math"
	"slices"
)

// A blockFit is a candidate encoding of one block: the stored numbers, and their squared
// error after Decode, weighted by importance.
type blockFit struct {
	scale, base uint16
	err         float64
	codes       [64]uint8
}

// encodeAffine starts from rule A (report eq. 1 and 3: scale = (max−min)/maxCode, base =
// min) or rule B (scale = (max−min)/(maxCode+1), base = min + scale/2, the centers of
// equal cells), then searches for a better scale and base.
func encodeAffine(dst []byte, dt DType, src []float32, how rounding) {
	l := affine[dt]
	var clean [64]float32
	src = finiteBlock(src, &clean)
	var best blockFit
	best.scale, best.base = l.fit(src)
	best.round(src, how.importance, l.maxCode)
	if !how.plain && best.err > 0 {
		l.search(&best, src, how.importance)
		if len(src) == 64 && l.maxCode > 15 {
			l.searchLadders(&best, src, how.importance)
		}
	}
	l.putBlock(dst, best.scale, best.base, best.codes[:len(src)])
}

// fit returns scale and base of a block of finite values by the type's rule, as finite
// f16 bits.
func (l *affineLayout) fit(src []float32) (scale, base uint16) {
	low, high := extremes(src)
	if l.cells {
		s := (high - low) / float64(l.maxCode+1)
		return saturateF16(s), saturateF16(low + s/2)
	}
	return saturateF16((high - low) / float64(l.maxCode)), saturateF16(low)
}

func extremes(src []float32) (low, high float64) {
	lo, hi := src[0], src[0]
	for _, x := range src {
		if x < lo {
			lo = x
		}
		if x > hi {
			hi = x
		}
	}
	return float64(lo), float64(hi)
}

// round assigns each value its nearest code under the fit's scale and base, and computes
// the error.
func (f *blockFit) round(src, importance []float32, maxCode int) {
	scale, base := F16ToF32(f.scale), F16ToF32(f.base)
	s, b := float64(scale), float64(base)
	sum := 0.0
	for i, x := range src {
		q := nearestCode(float64(x), s, b, maxCode)
		f.codes[i] = q
		d := float64(x) - float64(base+float32(scale*float32(q)))
		if importance != nil {
			d *= d * float64(importance[i])
			sum += d
			continue
		}
		sum += d * d
	}
	f.err = sum
}

func nearestCode(x, scale, base float64, maxCode int) uint8 {
	if scale == 0 {
		return 0
	}
	q := (x-base)/scale + 0.5 // clamped to at least 0 below, so that the conversion rounds down
	if q >= float64(maxCode) {
		return uint8(maxCode)
	}
	if q > 0 {
		return uint8(q)
	}
	return 0
}

// cuts are the distances, in steps, by which the lower and the upper end of the grid are
// moved inside the range of the values. At half a step the outermost code is the center
// of its values. The other cuts try other phases of the grid; search keeps the best.
var cuts = [...]struct{ lower, upper float32 }{{0, 0}, {0.3, 0.3}, {0.6, 0.6}, {0.1, 0.5}, {0.5, 0.1}}

// A grid is a candidate value = origin + step·code, in units of rule A's step above the
// block's minimum.
type grid struct{ origin, step float32 }

// search looks for a better scale and base. For each of the cuts it moves the ends of the
// grid and fits the grid to the resulting codes by least squares. It refits the best
// candidate until it converges and rounds it to f16. The candidate replaces best if its
// actual error is smaller.
func (l *affineLayout) search(best *blockFit, src, importance []float32) {
	low, high := extremes(src)
	if high == low || high > MaxF16 || low < -MaxF16 {
		return // all values are equal, or saturated
	}
	top := float32(l.maxCode)
	unit := (high - low) / float64(l.maxCode)
	var b fitBlock
	b.load(src, importance, low, unit)
	leastSquares, chosen, mean := float32(-1), grid{}, float32(0)
	try := func(g grid) bool {
		r, refit, m := b.refit(g, top)
		if leastSquares >= 0 && !(r < leastSquares) {
			return false
		}
		leastSquares, chosen, mean = r, refit, m
		return true
	}
	for _, c := range cuts {
		try(grid{c.lower, (top - c.lower - c.upper) / top})
	}
	for range 2 {
		if !try(chosen) {
			break
		}
	}
	best.improve(chosen.stored(mean, low, unit), src, importance, l.maxCode)
}

// stored returns the grid rounded to f16.
func (g grid) stored(meanCode float32, low, unit float64) (f blockFit) {
	f.scale = saturateF16(float64(g.step) * unit)
	// The base compensates for the rounding of the scale at the mean code.
	lost := float64(g.step)*unit - float64(F16ToF32(f.scale))
	f.base = saturateF16(low + float64(g.origin)*unit + lost*float64(meanCode))
	return f
}

// improve replaces best by f if f has a smaller error.
func (best *blockFit) improve(f blockFit, src, importance []float32, maxCode int) {
	if f.round(src, importance, maxCode); f.err < best.err {
		*best = f
	}
}

// searchLadders handles values that are already quantized, as in most files with 4 or 5
// bits per weight. If the first or second 32 values of a block lie on a grid, it tries
// grids with a step that divides that grid's step. These values are then exact, or nearly
// exact.
func (l *affineLayout) searchLadders(best *blockFit, src, importance []float32) {
	low, high := extremes(src)
	if high == low || high > MaxF16 || low < -MaxF16 {
		return
	}
	before := best.err
	for _, run := range [][]float32{src[:32], src[32:]} {
		bottom, step := ladder(run)
		if step == 0 {
			continue
		}
		most := int(float64(l.maxCode) * step / (high - low) * 1.03) // the ends may be clipped slightly
		for parts := most; parts > 0 && parts >= most-1; parts-- {
			f := blockFit{scale: saturateF16(step / float64(parts))}
			scale := float64(F16ToF32(f.scale))
			if scale == 0 {
				continue
			}
			under := math.Round((bottom - low) / scale)
			for _, more := range [...]float64{0, 1, -1} {
				f.base = saturateF16(bottom - (under+more)*scale)
				best.improve(f, src, importance, l.maxCode)
			}
		}
	}
	if best.err == before {
		return
	}
	var b fitBlock
	unit := (high - low) / float64(l.maxCode)
	b.load(src, importance, low, unit)
	g := grid{float32((float64(F16ToF32(best.base)) - low) / unit), float32(float64(F16ToF32(best.scale)) / unit)}
	for range 2 { // gives up exact values for a smaller error of the others
		var mean float32
		_, g, mean = b.refit(g, float32(l.maxCode))
		best.improve(g.stored(mean, low, unit), src, importance, l.maxCode)
	}
}

// ladder returns the lowest value and the step of values that are base plus integer
// multiples of the step, at most 31. It returns step 0 if there is no such step.
func ladder(values []float32) (bottom, step float64) {
	twice := false
	for i := range 17 { // two of 17 values share one of 16 levels
		for _, x := range values[:i] {
			twice = twice || x == values[i]
		}
	}
	if !twice {
		return 0, 0
	}
	low, high := extremes(values)
	var sorted [32]float32
	copy(sorted[:], values)
	slices.Sort(sorted[:])
	least := float64(high - low)
	for i := range 31 {
		if gap := float64(sorted[i+1]) - float64(sorted[i]); gap > 1e-4*(high-low) {
			least = min(least, gap)
		}
	}
	rungs := math.Round((high - low) / least)
	if !(rungs >= 1 && rungs <= 31) {
		return 0, 0
	}
	step = (high - low) / rungs
	for _, x := range sorted {
		if at := (float64(x) - low) / step; math.Abs(at-math.Round(at)) > 0.02 {
			return 0, 0
		}
	}
	return low, step
}

// A fitBlock holds a block's values in steps of rule A above its minimum (0 … maxCode),
// so that float32 is precise enough for values of any size.
type fitBlock struct {
	n      int
	t, w   [64]float32
	weight float32 // sum of w
}

func (b *fitBlock) load(src, importance []float32, low, unit float64) {
	b.n = len(src)
	inverse := 1 / unit
	for i, x := range src {
		b.t[i] = float32((float64(x) - low) * inverse)
		b.w[i] = 1
	}
	b.weight = float32(b.n)
	if importance == nil {
		return
	}
	var sum, largest float32
	for _, w := range importance {
		largest = max(largest, w)
	}
	if largest == 0 {
		return
	}
	for i, w := range importance {
		b.w[i] = w / largest // at most 1, so that sums do not overflow
		sum += b.w[i]
	}
	b.weight = sum
}

// refit assigns codes under g and returns the grid that fits them best: weighted linear
// regression of the values on the codes. The residual is that of these codes, before the
// new grid changes them.
func (b *fitBlock) refit(g grid, top float32) (residual float32, fit grid, meanCode float32) {
	inverse := 1 / g.step
	offset := 0.5 - g.origin*inverse
	var s1, s2, d1, d2, dq float32 // sums of w times: code, code², miss, miss², code·miss
	t, ws, last := b.t[:b.n], b.w[:b.n], int32(top)
	for i, x := range t {
		v := x*inverse + offset
		q := float32(max(0, min(last, int32(v)))) // clamped as integers, without unpredictable branches
		d := v - 0.5 - q
		w := ws[i]
		wq, wd := w*q, w*d
		s1 += wq
		s2 += wq * q
		d1 += wd
		d2 += wd * d
		dq += wd * q
	}
	// miss ≈ shift + stretch·code, in steps of g.
	sum := float64(b.weight)
	var shift, stretch float64
	if det := sum*float64(s2) - float64(s1)*float64(s1); det > 1e-6*sum*sum {
		stretch = (sum*float64(dq) - float64(s1)*float64(d1)) / det
		shift = (float64(d1) - stretch*float64(s1)) / sum
	} else {
		shift = float64(d1) / sum
	}
	left := float64(d2) - shift*float64(d1) - stretch*float64(dq)
	step := float64(g.step)
	fit = grid{origin: g.origin + float32(shift*step), step: float32(step * (1 + stretch))}
	if !(fit.step > 0) {
		fit = g
	}
	return float32(left * step * step), fit, s1 / b.weight
}
