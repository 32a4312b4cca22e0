package templates

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"strconv"
	"strings"
	"unsafe"

	"github.com/iflowc/iflowc/ir/tensor"
)

// aligned is a byte slice that begins at a multiple of 64.
func aligned(n int) []byte {
	b := make([]byte, n+64)
	off := int(-uintptr(unsafe.Pointer(&b[0])) & 63)
	return b[off : off+n : off+n]
}

func floats(b []byte) []float32 { return unsafe.Slice((*float32)(unsafe.Pointer(&b[0])), len(b)/4) }

// A matrix is packed weights with the values they stand for, and what bounds
// the rounding error of a product with them.
type matrix struct {
	rows, k int
	packed  []byte
	value   []float64 // [rows][k]
	size    []float64 // [rows][k]: |scale·code| + |base|, or |value|
}

// randomMatrix makes n rows (a multiple of 16) of k columns in panels of 16,
// by the layout of ifl_kernel.h, one number after the other.
func randomMatrix(r *rand.Rand, dt tensor.DType, n, k int) *matrix {
	m := &matrix{rows: n, k: k, value: make([]float64, n*k), size: make([]float64, n*k)}
	if !dt.IsBlock() {
		m.plain(r, dt)
		return m
	}
	blocks := (k + dt.Block() - 1) / dt.Block()
	for p := range n / 16 {
		for b := range blocks {
			m.block(r, dt, p, b)
		}
	}
	// A library may load whole vectors, so the end must be where it really is.
	m.packed = append(aligned(len(m.packed))[:0], m.packed...)
	return m
}

func (m *matrix) plain(r *rand.Rand, dt tensor.DType) {
	size := dt.BlockBytes()
	m.packed = aligned(m.rows * m.k * size)
	for row := range m.rows {
		for c := range m.k {
			at := m.packed[((row/16*m.k+c)*16+row%16)*size:]
			v := float32(r.NormFloat64())
			switch dt {
			case tensor.F32:
				binary.LittleEndian.PutUint32(at, math.Float32bits(v))
			case tensor.F16:
				h := uint16(r.UintN(0x4800)) | uint16(r.UintN(2))<<15
				binary.LittleEndian.PutUint16(at, h)
				v = tensor.F16ToF32(h)
			case tensor.BF16:
				h := uint16(math.Float32bits(v) >> 16)
				binary.LittleEndian.PutUint16(at, h)
				v = tensor.BF16ToF32(h)
			}
			m.value[row*m.k+c], m.size[row*m.k+c] = float64(v), math.Abs(float64(v))
		}
	}
}

// block appends one tile-block: 16 rows of one block of columns.
func (m *matrix) block(r *rand.Rand, dt tensor.DType, panel, b int) {
	bs := dt.Block()
	codes := make([]byte, 16*bs)
	scales, bases := make([]byte, 32), make([]byte, 32)
	if trellis := tensor.TrellisOf(dt); trellis != nil {
		m.trellisBlock(r, dt, trellis, panel, b)
		return
	}
	for row := range 16 {
		scale, base := uint16(0x2000+r.UintN(0x400)), uint16(0xa000+r.UintN(0x1000))
		binary.LittleEndian.PutUint16(scales[2*row:], scale)
		binary.LittleEndian.PutUint16(bases[2*row:], base)
		s, z := float64(tensor.F16ToF32(scale)), float64(tensor.F16ToF32(base))
		for c := range bs {
			code := r.IntN(tensor.MaxCode(dt) + 1)
			codes[row*bs+c] = byte(code)
			col := b*bs + c
			if col >= m.k {
				continue
			}
			at := (panel*16+row)*m.k + col
			if tensor.HasBase(dt) {
				m.value[at], m.size[at] = z+s*float64(code), math.Abs(z)+s*float64(code)
			} else {
				m.value[at] = s * float64(code-int(tensor.Zero(dt)))
				m.size[at] = math.Abs(m.value[at])
			}
		}
	}
	m.packed = append(m.packed, packCodes(dt, codes)...)
	m.packed = append(m.packed, scales...)
	if tensor.HasBase(dt) {
		m.packed = append(m.packed, bases...)
	}
}

// trellisBlock is block for a trellis-coded type.
func (m *matrix) trellisBlock(r *rand.Rand, dt tensor.DType, t *tensor.Trellis, panel, b int) {
	codes, scales := make([]byte, 16*32), make([]byte, 32)
	size := 2
	if t.ByteScale {
		scales, size = scales[:16], 1
	}
	for row := range 16 {
		code := codes[32*row:][:32]
		for c := range code {
			code[c] = byte(r.IntN(1 << t.Bits))
		}
		var scale float64
		if t.ByteScale { // exponent 15 is 2⁻⁸
			x := 7<<3 + r.UintN(4<<3)
			scales[row] = byte(x)
			scale = math.Ldexp(1+float64(x&7)/8, int(x>>3)-15-8)
		} else {
			x := uint16(0x2000 + r.UintN(0x400))
			binary.LittleEndian.PutUint16(scales[size*row:], x)
			scale = float64(tensor.F16ToF32(x))
		}
		before := func(c, n int) byte { // the code n places before that of column c
			place := (c%4*8 + c/4 + 32 - n) % 32
			return code[place%8*4+place/8]
		}
		for c := range min(32, m.k-32*b) {
			at := (panel*16+row)*m.k + 32*b + c
			m.value[at] = scale * float64(t.Levels[2*(code[c]^before(c, 2)&1)+before(c, 1)&1])
			m.size[at] = math.Abs(m.value[at])
		}
	}
	m.packed = append(append(m.packed, packCodes(dt, codes)...), scales...)
}

// packCodes is the reference of the code layouts: codes are [16][Block], the
// result is vectors of 64 bytes, byte 4r+i of which belongs to row r.
func packCodes(dt tensor.DType, codes []byte) []byte {
	bs := dt.Block()
	var out []byte
	put := func(z, lane int, b byte) {
		for len(out) <= z*64+63 {
			out = append(out, 0)
		}
		out[z*64+lane] |= b
	}
	for row := range 16 {
		for i := range 4 {
			lane := 4*row + i
			c := func(j int) byte { return codes[row*bs+4*j+i] }
			switch dt {
			case tensor.Q8B32, tensor.Q8B64, tensor.Q8B32T2:
				for j := range bs / 4 {
					put(j, lane, c(j))
				}
			case tensor.Q4B32, tensor.Q4B64, tensor.Q4TB32, tensor.Q4B16T2:
				for j := range bs / 8 {
					put(j, lane, c(2*j)|c(2*j+1)<<4)
				}
			case tensor.Q6B64, tensor.Q6TB32, tensor.Q6B16T2:
				for t := range bs / 16 {
					x := c(4*t + 3)
					put(3*t, lane, c(4*t)|x>>4<<6)
					put(3*t+1, lane, c(4*t+1)|x>>2<<6)
					put(3*t+2, lane, c(4*t+2)|x<<6)
				}
			case tensor.Q5B64, tensor.Q5B32, tensor.Q5TB32:
				for t := range bs / 32 {
					x, y, z := c(8*t+5), c(8*t+6), c(8*t+7)
					put(5*t, lane, c(8*t)|x<<5)
					put(5*t+1, lane, c(8*t+1)|x>>3<<6|z>>3&1<<5)
					put(5*t+2, lane, c(8*t+2)|y<<5)
					put(5*t+3, lane, c(8*t+3)|y>>3<<6|z>>4<<5)
					put(5*t+4, lane, c(8*t+4)|z<<5)
				}
			case tensor.Q3HB64:
				last := c(14)*11 + c(15)
				for j := range 7 {
					put(j, lane, c(2*j)*11+c(2*j+1)|last>>j<<7)
				}
			case tensor.Q3B32, tensor.Q3TB32:
				x, y := c(6), c(7)
				put(0, lane, c(0)|c(1)<<3|x<<6)
				put(1, lane, c(2)|c(3)<<3|x>>2<<6|y>>2<<7)
				put(2, lane, c(4)|c(5)<<3|y<<6)
			case tensor.Q2B32, tensor.Q2TB32, tensor.Q2B16:
				for j := range bs / 16 {
					put(j, lane, c(4*j)|c(4*j+1)<<2|c(4*j+2)<<4|c(4*j+3)<<6)
				}
			}
		}
	}
	return out
}

// outlierBytes is the size of ifl_outlier, of which a tile has room for four of
// each row, behind their count.
const outlierBytes = 16

// outliersOf splits a kind of activations, such as a8_b64+2, into the kind
// without outliers and their number.
func outliersOf(act string) (kind string, count int) {
	kind, n, _ := strings.Cut(act, "+")
	count, _ = strconv.Atoi(n)
	return kind, count
}

// packOutliers takes the outliers out of row m of a tile and stores them as the
// tile does; it gives what remains. value[c] gets what they stand for.
func packOutliers(count, block int, tile []byte, x []float32, value []float64, m int) (rest []float32, taken []tensor.OutlierColumns) {
	rest = append(append([]float32(nil), x...), 0, 0, 0)
	rest = rest[:len(rest)/4*4]
	taken = tensor.TakeOutlierColumns(rest, count)
	binary.LittleEndian.PutUint64(tile, uint64(count))
	for i, o := range taken {
		at := tile[8+outlierBytes*(count*m+i):]
		binary.LittleEndian.PutUint16(at, uint16(4*o.Group/block))
		binary.LittleEndian.PutUint16(at[2:], uint16(o.Group%(block/4)))
		for j, q := range o.Codes {
			at[4+j] = byte(q)
			if c := 4*o.Group + j; c < len(x) {
				value[c] += float64(o.Scale) * float64(q)
			}
		}
		binary.LittleEndian.PutUint32(at[8:], uint32(-128*codeSum(o)))
		binary.LittleEndian.PutUint32(at[12:], math.Float32bits(o.Scale))
	}
	return rest[:len(x)], taken
}

func codeSum(o tensor.OutlierColumns) (sum int32) {
	for _, q := range o.Codes {
		sum += int32(q)
	}
	return sum
}

// actBlock is the number of columns that share an activation scale; 1 for f32.
func actBlock(act string) int {
	act, _ = outliersOf(act)
	switch act {
	case "a8_b16":
		return 16
	case "a8_b32":
		return 32
	case "a8_b64":
		return 64
	}
	return 1
}

func round64(n int) int { return (n + 63) &^ 63 }

// tileBytes is ifl_tile_bytes.
func tileBytes(act string, k, mt int) int {
	b := actBlock(act)
	if act == "bf16" {
		return round64(4 * ((k + 1) / 2) * mt)
	}
	if b == 1 {
		return round64(4 * k * mt)
	}
	nb := (k + b - 1) / b
	return round64(nb*b*mt) + 3*round64(nb*mt*4) + round64(8+4*outlierBytes*mt)
}

// packRows packs rows of activations into tiles of tm rows, one number after
// the other, and gives the values they stand for after quantization.
func packRows(act string, x []float32, rows, k, tm int) (packed []byte, value []float64) {
	size := tileBytes(act, k, tm)
	packed = aligned((rows + tm - 1) / tm * size)
	value = make([]float64, rows*k)
	for t := range rows {
		mt := min(tm, rows-t/tm*tm)
		packRow(act, packed[t/tm*size:], x[t*k:(t+1)*k], value[t*k:], mt, t%tm)
	}
	return packed, value
}

func packRow(act string, tile []byte, x []float32, value []float64, mt, m int) {
	k, bs := len(x), actBlock(act)
	if act == "bf16" {
		for i, v := range x {
			h := tensor.F32ToBF16(v)
			binary.LittleEndian.PutUint16(tile[4*(i/2*mt+m)+i%2*2:], h)
			value[i] = float64(tensor.BF16ToF32(h))
		}
		return
	}
	if bs == 1 {
		for i, v := range x {
			binary.LittleEndian.PutUint32(tile[4*(i*mt+m):], math.Float32bits(v))
			value[i] = float64(v)
		}
		return
	}
	nb := (k + bs - 1) / bs
	scales := tile[round64(nb*bs*mt):]
	sums := scales[round64(nb*mt*4):]
	corrs := sums[round64(nb*mt*4):]
	var taken []tensor.OutlierColumns
	if _, n := outliersOf(act); n > 0 {
		x, taken = packOutliers(n, bs, corrs[round64(nb*mt*4):], x, value, m)
	}
	for b := range nb {
		part := x[b*bs : min(k, (b+1)*bs)]
		var top float32
		for _, v := range part {
			top = max(top, float32(math.Abs(float64(v))))
		}
		scale, inv := top/127, float32(0)
		if top > 0 {
			inv = 127 / top
		}
		sum := int32(0)
		for i, v := range part {
			q := int32(math.RoundToEven(float64(v * inv)))
			sum += q
			c := b*bs + i
			tile[(c/4*mt+m)*4+c%4] = byte(int8(q))
			value[c] += float64(scale) * float64(q)
		}
		binary.LittleEndian.PutUint32(scales[4*(b*mt+m):], math.Float32bits(scale))
		binary.LittleEndian.PutUint32(sums[4*(b*mt+m):], math.Float32bits(scale*float32(sum)))
		binary.LittleEndian.PutUint32(corrs[4*(b*mt+m):], uint32(-128*sum))
	}
	for _, o := range taken {
		at := sums[4*(4*o.Group/bs*mt+m):]
		sum := math.Float32frombits(binary.LittleEndian.Uint32(at)) + float32(o.Scale*float32(codeSum(o)))
		binary.LittleEndian.PutUint32(at, math.Float32bits(sum))
	}
}
