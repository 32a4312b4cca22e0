package tensor

import (
	"encoding/binary"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// A plane holds some bits of every code of a block, packed from the low bit of each
// byte: code i is at bit i·bits of the plane.
type plane struct {
	bits  uint // 1, 2, 4 or 8
	shift uint // position of the bits in the code
}

// An affineLayout describes a block type with values base + scale·code. A block is
// stored as f16 base, f16 scale, then the planes, high bits first.
type affineLayout struct {
	maxCode int  // codes are 0…maxCode
	cells   bool // rule B: codes are cells of the range, values their centers
	paired  bool // a stored code is 11·q[2i] + q[2i+1] (report eq. 4)
	planes  []plane
}

// affine lists the affine block types: Inferflow's block structures with its byte order.
// The order within a pair is that of the report.
var affine = [dtype.Count]*affineLayout{
	Q8B32:  {maxCode: 255, planes: []plane{{8, 0}}},
	Q8B64:  {maxCode: 255, planes: []plane{{8, 0}}},
	Q6B64:  {maxCode: 63, planes: []plane{{2, 4}, {4, 0}}},
	Q5B64:  {maxCode: 31, planes: []plane{{1, 4}, {4, 0}}},
	Q5B32:  {maxCode: 31, planes: []plane{{1, 4}, {4, 0}}},
	Q4B32:  {maxCode: 15, planes: []plane{{4, 0}}},
	Q4B64:  {maxCode: 15, planes: []plane{{4, 0}}},
	Q3HB64: {maxCode: 10, paired: true, planes: []plane{{1, 6}, {2, 4}, {4, 0}}},
	Q3B32:  {maxCode: 7, cells: true, planes: []plane{{1, 2}, {2, 0}}},
	Q2B32:  {maxCode: 3, cells: true, planes: []plane{{2, 0}}},
	Q2B16:  {maxCode: 3, cells: true, planes: []plane{{2, 0}}},
}

// affineHead is the size in bytes of base and scale before the codes.
const affineHead = 4

// MaxCode returns the largest code that kernels compute with: values are base +
// scale·code with codes 0…MaxCode, or scale·(code − Zero) for types without a base. For
// types that are not block types for computation it is 0.
func MaxCode(d DType) int {
	switch {
	case signed[d] != nil:
		return 2*int(signed[d].zero) - 1
	case affine[d] != nil:
		return affine[d].maxCode
	case trellis[d] != nil:
		return 2*int(trellis[d].Zero) - 1
	}
	return 0
}

// Zero returns the code of zero that kernels compute with, for block types without a
// base; 0 for those with one.
func Zero(d DType) uint8 {
	switch {
	case signed[d] != nil:
		return signed[d].zero
	case trellis[d] != nil:
		return trellis[d].Zero
	}
	return 0
}

// HasBase reports whether the blocks of a type store a base besides the scale.
func HasBase(d DType) bool { return affine[d] != nil }

// BlockCodes unpacks one block into codes (len(codes) = Block()) and the f16 bits of
// scale and base. The codes of symmetric types are returned plus Zero(d), with base 0; see
// Trellis for the types that it describes. It panics for types without such codes.
func BlockCodes(d DType, block []byte, codes []uint8) (scale, base uint16) {
	if l := trellis[d]; l != nil {
		return l.blockCodes(block, codes), 0
	}
	if l := signed[d]; l != nil {
		return l.blockCodes(block, codes), 0
	}
	l := affine[d]
	if l == nil {
		panic("bug: BlockCodes of " + d.String())
	}
	l.unpack(block[affineHead:], codes)
	return binary.LittleEndian.Uint16(block[2:]), binary.LittleEndian.Uint16(block)
}

// PutBlockCodes stores one block of a type with scale and base, or of a symmetric one: the
// inverse of BlockCodes. The Block() codes are 0…MaxCode and are overwritten.
func PutBlockCodes(d DType, block []byte, scale, base uint16, codes []uint8) {
	if l := signed[d]; l != nil {
		l.putBlock(block, scale, codes)
		return
	}
	affine[d].putBlock(block, scale, base, codes)
}

// putBlock stores one block of an affine type. It overwrites codes if the type stores
// pairs.
func (l *affineLayout) putBlock(block []byte, scale, base uint16, codes []uint8) {
	binary.LittleEndian.PutUint16(block, base)
	binary.LittleEndian.PutUint16(block[2:], scale)
	if l.paired {
		for i := 0; i < len(codes); i += 2 {
			codes[i/2] = 11*codes[i] + codes[i+1]
		}
		codes = codes[:len(codes)/2]
	}
	packPlanes(l.planes, block[affineHead:], codes)
}

func packPlanes(planes []plane, data []byte, codes []uint8) {
	for _, p := range planes {
		n := len(codes) * int(p.bits) / 8
		p.pack(data[:n], codes)
		data = data[n:]
	}
}

func unpackPlanes(planes []plane, data []byte, codes []uint8) {
	clear(codes)
	for _, p := range planes {
		n := len(codes) * int(p.bits) / 8
		p.unpack(data[:n], codes)
		data = data[n:]
	}
}

func (l *affineLayout) unpack(data []byte, codes []uint8) {
	stored := codes
	if l.paired {
		stored = codes[:len(codes)/2]
	}
	unpackPlanes(l.planes, data, stored)
	if l.paired {
		for i := len(stored) - 1; i >= 0; i-- {
			// Values above 120 are never written, but a damaged file may contain them.
			v := min(stored[i], 120)
			codes[2*i], codes[2*i+1] = v/11, v%11
		}
	}
}

func (p plane) pack(data []byte, codes []uint8) {
	if p.bits == 4 {
		for i := range data {
			data[i] = codes[2*i]>>p.shift&15 | codes[2*i+1]>>p.shift<<4
		}
		return
	}
	clear(data)
	mask := uint8(1<<p.bits - 1)
	per := 8 / int(p.bits)
	for i, c := range codes {
		data[i/per] |= c >> p.shift & mask << (uint(i%per) * p.bits)
	}
}

func (p plane) unpack(data []byte, codes []uint8) {
	switch p.bits {
	case 8:
		copy(codes, data)
	case 4:
		for i, b := range data {
			codes[2*i] |= b & 15 << p.shift
			codes[2*i+1] |= b >> 4 << p.shift
		}
	default:
		mask := uint8(1<<p.bits - 1)
		per := 8 / int(p.bits)
		for i := range codes {
			codes[i] |= data[i/per] >> (uint(i%per) * p.bits) & mask << p.shift
		}
	}
}
