package tensor

import (
	_ "embed"
	"encoding/binary"
	"math"
	"math/bits"
)

// The GGUF types of 1 to 3 bits whose codes select 4 or 8 levels at once from a grid
// (ggml's block_iq1_s … block_iq3_s). A block of 256 elements has eight sub-blocks of 32,
// with a scale for each 16 or 32.

// gridBytes holds ggml's grids one after another. An entry is a little-endian u16: the
// indices of its levels, of two bits each, or of four in grids of four levels, low bits
// first. tools/gen/reference/iq_grids.py writes it.
//
//go:embed iq_grids.bin
var gridBytes []byte

// A levelGrid is a table of groups of levels.
type levelGrid struct {
	from   int    // its first entry in gridBytes
	levels []int8 // by index; multiples of an eighth of the scale in the types of 1 bit
}

var (
	levels1   = []int8{-8, 0, 8}
	levels2   = []int8{8, 25, 43}
	levels3xx = []int8{4, 12, 20, 28, 36, 44, 52, 62}
	levels3s  = []int8{1, 3, 5, 7, 9, 11, 13, 15}

	grid1   = levelGrid{0, levels1}
	grid2xx = levelGrid{2048, levels2}
	grid2x  = levelGrid{2304, levels2}
	grid2s  = levelGrid{2816, levels2}
	grid3xx = levelGrid{3840, levels3xx}
	grid3s  = levelGrid{4096, levels3s}
)

// entry writes the 8 levels of an entry, or the 4 of a grid of more than four levels.
func (g *levelGrid) entry(codes []int8, index int) {
	word := binary.LittleEndian.Uint16(gridBytes[2*(g.from+index):])
	width := 16 / len(codes)
	for i := range codes {
		codes[i] = g.levels[word>>(width*i)&(1<<width-1)]
	}
}

// negate changes the signs of the levels whose bits are set.
func negate(codes []int8, signs uint8) {
	for i := range codes {
		if signs>>i&1 != 0 {
			codes[i] = -codes[i]
		}
	}
}

// evenSigns adds the eighth sign to seven, so that an even number of them is set.
func evenSigns(seven uint32) uint8 {
	s := uint8(seven & 127)
	return s | uint8(bits.OnesCount8(s)&1)<<7
}

// gridCodes decodes sub-block sub of a block: x = scale·code, with a scale for each half.
func gridCodes(codes *[32]int8, src []byte, st DType, sub int) (scale [2]float32) {
	switch st {
	case GIQ1S:
		return codesIQ1S(codes, src, sub)
	case GIQ1M:
		return codesIQ1M(codes, src, sub)
	case GIQ2XXS, GIQ3XXS:
		return codesXXS(codes, src, st, sub)
	case GIQ2XS:
		return codesIQ2XS(codes, src, sub)
	case GIQ2S:
		return codesIQ2S(codes, src, sub)
	}
	return codesIQ3S(codes, src, sub)
}

// codesIQ1S: f16 d, 32 B of the low bits of 11-bit indices, eight u16: three high bits of
// each of four indices, three bits of scale s, and the sign of the shift;
// x = d·(2·s + 1)·(level ± ⅛).
func codesIQ1S(codes *[32]int8, src []byte, sub int) [2]float32 {
	high := binary.LittleEndian.Uint16(src[34+2*sub:])
	for l := range 4 {
		grid1.entry(codes[8*l:8*l+8], int(src[2+4*sub+l])|int(high>>(3*l)&7)<<8)
	}
	shift(codes[:], high>>15 != 0)
	scale := f16At(src) * float32(2*(high>>12&7)+1) / 8
	return [2]float32{scale, scale}
}

// codesIQ1M: 32 B of the low bits of 11-bit indices. 16 B with the three high bits of two of
// them, and the signs of their shifts. Four u16, each with three bits of four scales of 16
// elements, and four bits of the f16 d.
func codesIQ1M(codes *[32]int8, src []byte, sub int) (scale [2]float32) {
	d := uint16(0)
	for i := range 4 {
		d |= binary.LittleEndian.Uint16(src[48+2*i:]) >> 12 << (4 * i)
	}
	for l := range 4 {
		high := src[32+2*sub+l/2] >> (l % 2 * 4)
		part := codes[8*l : 8*l+8]
		grid1.entry(part, int(src[4*sub+l])|int(high&7)<<8)
		shift(part, high&8 != 0)
	}
	for half := range scale {
		s := binary.LittleEndian.Uint16(src[48+sub/2*2:]) >> (sub%2*6 + 3*half) & 7
		scale[half] = F16ToF32(d) * float32(2*s+1) / 8
	}
	return scale
}

func shift(codes []int8, down bool) {
	for i := range codes {
		if codes[i]++; down {
			codes[i] -= 2
		}
	}
}

// codesXXS: f16 d. iq2_xxs has for each sub-block 4 B of indices and a u32 of four times
// seven signs and four bits of scale s; x = d·(s + ½)/4·level. iq3_xxs has 64 B of indices of
// four levels, then the eight u32; x = d·(s + ½)/2·level.
func codesXXS(codes *[32]int8, src []byte, st DType, sub int) [2]float32 {
	g, size, index, signs, unit := &grid2xx, 8, src[2+8*sub:], src[6+8*sub:], float32(0.25)
	if st == GIQ3XXS {
		g, size, index, signs, unit = &grid3xx, 4, src[2+8*sub:], src[66+4*sub:], 0.5
	}
	word := binary.LittleEndian.Uint32(signs)
	for l := range 32 / size {
		g.entry(codes[size*l:size*l+size], int(index[l]))
	}
	for l := range 4 {
		negate(codes[8*l:8*l+8], evenSigns(word>>(7*l)))
	}
	scale := f16At(src) * (float32(word>>28) + 0.5) * unit
	return [2]float32{scale, scale}
}

// codesIQ2XS: f16 d, 32 u16 of an index and seven signs, 8 B of scales s of two halves;
// x = d·(s + ½)/4·level.
func codesIQ2XS(codes *[32]int8, src []byte, sub int) [2]float32 {
	for l := range 4 {
		word := binary.LittleEndian.Uint16(src[2+8*sub+2*l:])
		grid2x.entry(codes[8*l:8*l+8], int(word&511))
		negate(codes[8*l:8*l+8], evenSigns(uint32(word>>9)))
	}
	return halves(f16At(src), src[66+sub])
}

// codesIQ2S: f16 d, 32 B of the low bits of indices, 32 B of signs, 8 B of the two high bits
// of four indices each, 8 B of scales as in iq2_xs.
func codesIQ2S(codes *[32]int8, src []byte, sub int) [2]float32 {
	for l := range 4 {
		grid2s.entry(codes[8*l:8*l+8], int(src[2+4*sub+l])|int(src[66+sub]>>(2*l)&3)<<8)
		negate(codes[8*l:8*l+8], src[34+4*sub+l])
	}
	return halves(f16At(src), src[74+sub])
}

func halves(d float32, scales uint8) [2]float32 {
	return [2]float32{d * (float32(scales&15) + 0.5) / 4, d * (float32(scales>>4) + 0.5) / 4}
}

// codesIQ3S: f16 d, 64 B of the low bits of indices of four levels, 8 B of their ninth bits,
// 32 B of signs, 4 B of scales s of two sub-blocks; x = d·(2·s + 1)·level.
func codesIQ3S(codes *[32]int8, src []byte, sub int) [2]float32 {
	for l := range 8 {
		grid3s.entry(codes[4*l:4*l+4], int(src[2+8*sub+l])|int(src[66+sub]>>l&1)<<8)
	}
	for l := range 4 {
		negate(codes[8*l:8*l+8], src[74+4*sub+l])
	}
	s := src[106+sub/2] >> (sub % 2 * 4) & 15
	scale := f16At(src) * float32(2*s+1)
	return [2]float32{scale, scale}
}

func decodeGrid(dst []float32, dt DType, src []byte) {
	var codes [32]int8
	for sub := range 8 {
		scale := gridCodes(&codes, src, dt, sub)
		for i, c := range codes {
			dst[32*sub+i] = scale[i/16] * float32(c)
		}
	}
}

// recodeGrid stores levels as codes: level = base + unit·code. Only scales are rounded, to
// f16; but of iq2_xs and iq2_s, whose level 43 becomes code 31, the levels 8 and 25 become 8.3
// and 25.0, because no type has codes of more than 6 bits in blocks of 16.
func recodeGrid(dst []byte, dt DType, src []byte, st DType) {
	var levels [32]int8
	var codes [32]uint8
	size, n := dt.BlockBytes(), dt.Block()
	for sub := range 8 {
		scales := gridCodes(&levels, src, st, sub)
		unit, base := 1.0, -32.0 // signed codes of 6 bits
		switch st {
		case GIQ1S:
			unit, base = 8, -7
			if levels[0]&7 == 7 {
				base = -9
			}
		case GIQ3S:
			unit, base = 2, -15
		case GIQ3XXS:
			unit, base = 2, -64
		case GIQ2XS, GIQ2S:
			unit, base = 43.0/31, -32*43.0/31
		}
		for i, l := range levels {
			codes[i] = uint8(math.RoundToEven((float64(l) - base) / unit))
		}
		for at := 0; at < len(codes); at += n {
			scale := float64(scales[at/16])
			PutBlockCodes(dt, dst[:size], saturateF16(scale*unit), saturateF16(scale*base), codes[at:at+n])
			dst = dst[size:]
		}
	}
}
