package tensor

import (
	"encoding/binary"
	"fmt"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// Decode decodes stored elements of any type to float32: the exact dequantization of the
// published formula, evaluated in float32. len(dst) is the number of elements. It
// returns an error unless src is whole blocks of exactly that many elements.
func Decode(dst []float32, dt DType, src []byte) error {
	if err := checkSizes("decode", dt, len(dst), len(src)); err != nil {
		return err
	}
	if f := plainDecoders[dt]; f != nil {
		f(dst, src)
		return nil
	}
	block, size := dt.Block(), dt.BlockBytes()
	f := blockDecoders[dt]
	for len(dst) > 0 {
		f(dst[:block], dt, src[:size])
		dst, src = dst[block:], src[size:]
	}
	return nil
}

func checkSizes(what string, dt DType, n, bytes int) error {
	if dt == Invalid || dt >= dtype.Count {
		return fmt.Errorf("%s: %s is not a stored type", what, dt)
	}
	if n%dt.Block() != 0 {
		return fmt.Errorf("%s %s: %d elements are not whole blocks of %d", what, dt, n, dt.Block())
	}
	if want := dt.RowBytes(n); want != bytes {
		return fmt.Errorf("%s %s: %d elements take %d bytes, found %d", what, dt, n, want, bytes)
	}
	return nil
}

var plainDecoders = [dtype.Count]func(dst []float32, src []byte){
	F32: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = math.Float32frombits(binary.LittleEndian.Uint32(src[4*i:]))
		}
	},
	F16: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = F16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	},
	BF16: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = BF16ToF32(binary.LittleEndian.Uint16(src[2*i:]))
		}
	},
	F64: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = float32(math.Float64frombits(binary.LittleEndian.Uint64(src[8*i:])))
		}
	},
	I8: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = float32(int8(src[i]))
		}
	},
	I16: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = float32(int16(binary.LittleEndian.Uint16(src[2*i:])))
		}
	},
	I32: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = float32(int32(binary.LittleEndian.Uint32(src[4*i:])))
		}
	},
	I64: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = float32(int64(binary.LittleEndian.Uint64(src[8*i:])))
		}
	},
	U8: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = float32(src[i])
		}
	},
	Bool: func(dst []float32, src []byte) {
		for i := range dst {
			dst[i] = 0
			if src[i] != 0 {
				dst[i] = 1
			}
		}
	},
}

// A blockDecoder decodes one block.
type blockDecoder func(dst []float32, dt DType, src []byte)

var blockDecoders = [dtype.Count]blockDecoder{
	Q8B32: decodeAffine, Q8B64: decodeAffine, Q6B64: decodeAffine, Q5B64: decodeAffine, Q5B32: decodeAffine,
	Q4B32: decodeAffine, Q4B64: decodeAffine, Q3HB64: decodeAffine, Q3B32: decodeAffine, Q2B32: decodeAffine,
	Q6TB32: decodeTrellis, Q5TB32: decodeTrellis, Q4TB32: decodeTrellis, Q3TB32: decodeTrellis, Q2TB32: decodeTrellis,
	Q2B16: decodeAffine, Q8B32T2: decodeSigned, Q6B16T2: decodeSigned, Q4B16T2: decodeSigned, Q5RB32T2: decodeSigned, Q4B32T2: decodeSigned, GQ8_0: decodeQ8_0,
	A8B16: decodeActivation, A8B32: decodeActivation, A8B64: decodeActivation,
	GQ4_0: decodeQ4_0, GQ4_1: decodeQ4_1, GQ5_0: decodeQ5_0, GQ5_1: decodeQ5_1,
	GQ2K: decodeSixteen, GQ3K: decodeSixteen, GQ4K: decodeQ4K, GQ5K: decodeQ5K, GQ6K: decodeSixteen,
	GIQ4NL: decodeLevels, GIQ4XS: decodeLevels, GMXFP4: decodeLevels, GNVFP4: decodeSixteen,
	GTQ1: decodeTernary, GTQ2: decodeTernary, GQ1_0: decodeTernary, GQ2_0: decodeTernary,
	GIQ1S: decodeGrid, GIQ1M: decodeGrid, GIQ2XXS: decodeGrid, GIQ2XS: decodeGrid, GIQ2S: decodeGrid, GIQ3XXS: decodeGrid, GIQ3S: decodeGrid,
}

func f16At(b []byte) float32 { return F16ToF32(binary.LittleEndian.Uint16(b)) }

// The explicit float32 conversions of products prevent fused multiply-adds, so that
// all targets return the same bits.

func decodeAffine(dst []float32, dt DType, src []byte) {
	var buf [64]uint8
	codes := buf[:len(dst)]
	s, b := BlockCodes(dt, src, codes)
	scale, base := F16ToF32(s), F16ToF32(b)
	for i, c := range codes {
		dst[i] = base + float32(scale*float32(c))
	}
}

func decodeActivation(dst []float32, _ DType, src []byte) {
	scale := math.Float32frombits(binary.LittleEndian.Uint32(src[len(dst):]))
	for i := range dst {
		dst[i] = scale * float32(int8(src[i]))
	}
}
