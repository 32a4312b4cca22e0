package packed

import (
	"encoding/binary"
	"fmt"
	"math"
	"strings"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// A values turns random bits into values of an item. Plain types keep the bits of keep
// in every 64, and set is added, so that sign, mantissa and the exponent's last bit are
// random. Block types
// get codes from the bits and one of the scales for each row and block.
type values struct {
	it        *Item
	keep, set uint64
	scales    [scaleCount]scalePair // of block types
}

// A scalePair is an f16 scale and the f16 base that centers the codes.
type scalePair struct{ scale, base uint16 }

// scaleCount is the number of scales that the blocks of an item choose from. A power of
// two, so that six random bits choose one.
const scaleCount = 64

// maxCodes are the largest codes of the block types with a base; 0: no base.
var maxCodes = [dtype.Count]int{
	dtype.Q8B32: 255, dtype.Q8B64: 255, dtype.Q6B64: 63, dtype.Q5B64: 31, dtype.Q5B32: 31,
	dtype.Q4B32: 15, dtype.Q4B64: 15, dtype.Q3HB64: 10, dtype.Q3B32: 7, dtype.Q2B32: 3, dtype.Q2B16: 3,
}

// levelMeans are the root mean squares of the values of all codes of trellis-coded types and
// of symmetric types with codes of fewer than 8 bits, for a scale of 1.
var levelMeans = [dtype.Count]float64{
	dtype.Q6TB32: 44, dtype.Q5TB32: 22, dtype.Q4TB32: 30, dtype.Q3TB32: 32, dtype.Q2TB32: 37, dtype.Q6B16T2: 18.5, dtype.Q4B16T2: 4.6,
}

// valuesOf returns the random values of an item, or an error for types that hold no
// weights.
func valuesOf(it *Item) (*values, error) {
	v := &values{it: it}
	deviation := 1 / math.Sqrt(float64(it.Cols))
	gain := strings.Contains(it.Name, "norm") && !strings.Contains(it.Name, "bias")
	switch dt := it.DType; {
	case dt == dtype.F32:
		v.keep, v.set = floats(32, 8, deviation, gain)
	case dt == dtype.F16:
		v.keep, v.set = floats(16, 5, deviation, gain)
	case dt == dtype.BF16:
		v.keep, v.set = floats(16, 8, deviation, gain)
	case dt == dtype.Q8B32T2 || dt < dtype.Count && maxCodes[dt]+int(levelMeans[dt]) > 0:
		v.scales = scalesOf(dt, deviation)
	default:
		return nil, fmt.Errorf("%s%v: there are no random weights of type %s", it.Name, it.Index, dt)
	}
	return v, nil
}

// floats returns the masks for floating-point types with the given widths in bits. The
// magnitudes fill two octaves; with the lower one from 2^(e-1), their root mean square
// is 1.2·2^e. Gains are between 1 and 1⅛.
func floats(width, exponent int, deviation float64, gain bool) (keep, set uint64) {
	mantissa := width - 1 - exponent
	bias := 1<<(exponent-1) - 1
	if gain {
		keep, set = 1<<(mantissa-3)-1, uint64(bias)<<mantissa
	} else {
		e := max(int(math.Round(math.Log2(deviation/1.2)))-1, 2-bias)
		keep, set = 1<<(width-1)|1<<(mantissa+1)-1, uint64(e+bias)<<mantissa
	}
	for at := width; at < 64; at += width {
		keep, set = keep|keep<<at, set|set<<at
	}
	return keep, set
}

// scalesOf returns scales for codes that are uniform: values in [-r, r] have the
// standard deviation r/√3. The scales differ by up to a quarter, as the blocks of a
// matrix do.
func scalesOf(dt dtype.Type, deviation float64) (out [scaleCount]scalePair) {
	codes := 255.0 // of q8_b32t2, from -127 to 127
	if c := maxCodes[dt]; c > 0 {
		codes = float64(c)
	}
	mean := codes / (2 * math.Sqrt(3)) // root mean square of the codes around the middle
	if levelMeans[dt] > 0 {
		mean = levelMeans[dt]
	}
	for i := range out {
		s := deviation / mean * (0.75 + 0.5*float64(i)/scaleCount)
		if dt.ByteScale() {
			s *= 256 // see ByteScale
		}
		out[i] = scalePair{half(s), half(-s * codes / 2)}
	}
	return out
}

// half returns the f16 that is nearest to a finite x within its range.
func half(x float64) uint16 {
	sign := uint16(0)
	if x < 0 {
		sign, x = 1<<15, -x
	}
	if x < 0x1p-14 {
		return sign | uint16(math.Round(x*0x1p24))
	}
	m, e := math.Frexp(x)
	return sign | (uint16((e+14)<<10) + uint16(math.Round((2*m-1)*1024)))
}

// shape turns the noise in a panel or a row into values. index is the panel's or row's.
func (v *values) shape(unit []byte, index int) {
	dt := v.it.DType
	rows := min(PanelRows, v.it.Rows-index*PanelRows) // of a panel
	if !dt.IsBlock() {
		mask(unit, v.keep, v.set)
		if v.it.Layout == LayoutRow {
			clear(unit[v.it.Cols*dt.BlockBytes():])
			return
		}
		row := dt.BlockBytes()
		for at := 0; rows < PanelRows && at < len(unit); at += PanelRows * row {
			clear(unit[at+rows*row : at+PanelRows*row])
		}
		return
	}
	size := dt.BlockBytes()
	if v.it.Layout == LayoutPanel16 {
		size = TileBytes(dt)
	}
	for ; len(unit) >= size; unit = unit[size:] {
		if v.it.Layout == LayoutRow {
			v.block(unit[:size])
		} else {
			v.tile(unit[:size], rows)
		}
	}
}

// mask applies keep and set to every 64 bits. No sum carries into the next element.
func mask(b []byte, keep, set uint64) {
	for ; len(b) >= 8; b = b[8:] {
		binary.LittleEndian.PutUint64(b, binary.LittleEndian.Uint64(b)&keep+set)
	}
}

// tile makes a tile of panel16: codes, scales, bases. Rows from the matrix's last on get
// zero scales.
func (v *values) tile(b []byte, rows int) {
	const pairs = 2 * PanelRows
	dt := v.it.DType
	size := pairs
	switch {
	case maxCodes[dt] > 0:
		size = 2 * pairs
	case dt.ByteScale():
		size = PanelRows
	}
	codes, meta := b[:len(b)-size], b[len(b)-size:]
	if dt == dtype.Q8B32T2 {
		mask(codes, 0xfefefefefefefefe, 0x0101010101010101) // odd: -127, -125, …, 127
	}
	if dt == dtype.Q3HB64 {
		pairsBelow121(codes)
	}
	for r := range PanelRows {
		s := v.scales[meta[r*size/PanelRows]%scaleCount]
		if r >= rows {
			s = scalePair{}
		}
		if size == PanelRows {
			meta[r] = byte(s.scale >> 7)
			continue
		}
		binary.LittleEndian.PutUint16(meta[2*r:], s.scale)
		if size > pairs {
			binary.LittleEndian.PutUint16(meta[pairs+2*r:], s.base)
		}
	}
}

// pairsBelow121 makes valid codes of q3h_b64, which are pairs of digits in base 11: of 64
// and more it clears bit 5, which keeps the mean. The seven stored vectors hold a pair
// in the low bits of each byte; their top bits are the bits of an eighth one.
func pairsBelow121(codes []byte) {
	const vector = 64
	for at := range len(codes) / 8 {
		w := binary.LittleEndian.Uint64(codes[8*at:])
		w &^= w & 0x4040404040404040 >> 1
		binary.LittleEndian.PutUint64(codes[8*at:], w)
	}
	for i := range vector {
		codes[5*vector+i] &^= codes[6*vector+i] & 0x80
	}
}

// block makes a block of a row: base, scale and planes of codes; for q8_b32t2, scale and
// codes.
func (v *values) block(b []byte) {
	dt := v.it.DType
	s := v.scales[b[0]%scaleCount]
	if dt == dtype.Q8B32T2 {
		binary.LittleEndian.PutUint16(b, s.scale)
		for i := range b[2:] {
			b[2+i] |= 1
		}
		return
	}
	switch {
	case dt.ByteScale():
		b[0] = byte(s.scale >> 7)
		return
	case levelMeans[dt] > 0:
		binary.LittleEndian.PutUint16(b, s.scale)
		return
	}
	binary.LittleEndian.PutUint16(b, s.base)
	binary.LittleEndian.PutUint16(b[2:], s.scale)
	if dt == dtype.Q3HB64 { // planes of 1 bit, 2 bits and 4 bits for 32 pairs; see pairsBelow121
		for i := range 32 {
			if top := b[4+i/8] >> (i % 8) & 1; top == 1 {
				b[8+i/4] &^= 2 << (i % 4 * 2)
			}
		}
	}
}
