// Package dtype defines the element types and their storage: elements and bytes per
// block. It is the part of the types that binaries need; package ir/tensor reads and
// writes blocks.
package dtype

import "fmt"

// A Type is an element type, or a block type with scales shared by the elements of a
// block.
type Type uint8

// The types. The first group is plain. The second consists of the block types that
// kernels compute with: those of Inferflow (report Table 3), trellis-coded ones, and those that hold GGUF's types with scales
// of 16 weights. The third is for KV caches. The fourth is only read from GGUF files. The last is the result of quantize_act.
const (
	Invalid Type = iota
	F32
	F16
	BF16
	F64
	I8
	I16
	I32
	I64
	U8
	Bool

	Q8B32   // 36 B / 32: f16 scale, f16 base, 32 × u8; rule A
	Q8B64   // 68 B / 64: f16 scale, f16 base, 64 × u8; rule A
	Q8B32T2 // 34 B / 32: f16 scale, 32 × i8; scale = absmax/127
	Q6B64   // 52 B / 64
	Q5B64   // 44 B / 64
	Q5B32   // 24 B / 32
	Q4B32   // 20 B / 32: f16 scale, f16 base, 16 B nibbles; rule A
	Q4B64   // 36 B / 64: f16 scale, f16 base, 32 B nibbles; rule A
	Q3HB64  // 11 levels, two weights in 7 bits
	Q3B32   // 16 B / 32; rule B
	Q2B32   // 12 B / 32; rule B
	Q6TB32  // 26 B / 32: f16 scale; this and the next are trellis-coded
	Q5TB32  // 22 B / 32: f16 scale
	Q4TB32  // 17 B / 32: scale of a byte
	Q3TB32  // 13 B / 32: scale of a byte
	Q2TB32  // 9 B / 32: scale of a byte
	Q6B16T2 // 14 B / 16: f16 scale, codes -32…31
	Q4B16T2 // 10 B / 16: f16 scale, codes -8…7
	Q2B16   // 8 B / 16: f16 scale, f16 base; rule B

	Q5RB32T2 // 22 B / 32: f16 scale, codes -16…15; keys of a KV cache, rotated
	Q4B32T2  // 18 B / 32: f16 scale, codes -8…7; values of a KV cache

	GQ4_0  // 18 B / 32
	GQ4_1  // 20 B / 32
	GQ5_0  // 22 B / 32
	GQ5_1  // 24 B / 32
	GQ8_0  // 34 B / 32
	GQ2K   // 84 B / 256
	GQ3K   // 110 B / 256
	GQ4K   // 144 B / 256
	GQ5K   // 176 B / 256
	GQ6K   // 210 B / 256
	GIQ4NL // 18 B / 32
	GIQ4XS // 136 B / 256
	GMXFP4 // 17 B / 32
	GNVFP4 // 36 B / 64
	GTQ1   // 54 B / 256
	GTQ2   // 66 B / 256
	GQ1_0  // 18 B / 128
	GQ2_0  // 18 B / 64

	GIQ1S   // 50 B / 256
	GIQ1M   // 56 B / 256
	GIQ2XXS // 66 B / 256
	GIQ2XS  // 74 B / 256
	GIQ2S   // 82 B / 256
	GIQ3XXS // 98 B / 256
	GIQ3S   // 110 B / 256

	A8B16 // activations: 16 × i8 and one f32 scale (absmax/127) per block
	A8B32 // the same, blocks of 32
	A8B64 // the same, blocks of 64

	Count // number of types
)

type layout struct {
	name       string
	block      int // elements per block
	blockBytes int // bytes per block, as stored
}

var layouts = [Count]layout{
	Invalid: {"invalid", 1, 0},
	F32:     {"f32", 1, 4}, F16: {"f16", 1, 2}, BF16: {"bf16", 1, 2}, F64: {"f64", 1, 8},
	I8: {"i8", 1, 1}, I16: {"i16", 1, 2}, I32: {"i32", 1, 4}, I64: {"i64", 1, 8}, U8: {"u8", 1, 1}, Bool: {"bool", 1, 1},
	Q8B32: {"q8_b32", 32, 36}, Q8B64: {"q8_b64", 64, 68}, Q8B32T2: {"q8_b32t2", 32, 34},
	Q6B64: {"q6_b64", 64, 52}, Q5B64: {"q5_b64", 64, 44}, Q5B32: {"q5_b32", 32, 24}, Q4B32: {"q4_b32", 32, 20}, Q4B64: {"q4_b64", 64, 36},
	Q3HB64: {"q3h_b64", 64, 32}, Q3B32: {"q3_b32", 32, 16}, Q2B32: {"q2_b32", 32, 12},
	Q6TB32: {"q6t_b32", 32, 26}, Q5TB32: {"q5t_b32", 32, 22}, Q4TB32: {"q4t_b32", 32, 17}, Q3TB32: {"q3t_b32", 32, 13}, Q2TB32: {"q2t_b32", 32, 9},
	Q6B16T2: {"q6_b16t2", 16, 14}, Q4B16T2: {"q4_b16t2", 16, 10}, Q2B16: {"q2_b16", 16, 8},
	Q5RB32T2: {"q5r_b32t2", 32, 22}, Q4B32T2: {"q4_b32t2", 32, 18},
	GQ4_0: {"q4_0", 32, 18}, GQ4_1: {"q4_1", 32, 20}, GQ5_0: {"q5_0", 32, 22}, GQ5_1: {"q5_1", 32, 24}, GQ8_0: {"q8_0", 32, 34},
	GQ2K: {"q2_k", 256, 84}, GQ3K: {"q3_k", 256, 110}, GQ4K: {"q4_k", 256, 144}, GQ5K: {"q5_k", 256, 176}, GQ6K: {"q6_k", 256, 210},
	GIQ4NL: {"iq4_nl", 32, 18}, GIQ4XS: {"iq4_xs", 256, 136}, GMXFP4: {"mxfp4", 32, 17}, GNVFP4: {"nvfp4", 64, 36}, GTQ1: {"tq1_0", 256, 54}, GTQ2: {"tq2_0", 256, 66},
	GQ1_0: {"q1_0", 128, 18}, GQ2_0: {"q2_0", 64, 18},
	GIQ1S: {"iq1_s", 256, 50}, GIQ1M: {"iq1_m", 256, 56}, GIQ2XXS: {"iq2_xxs", 256, 66}, GIQ2XS: {"iq2_xs", 256, 74}, GIQ2S: {"iq2_s", 256, 82}, GIQ3XXS: {"iq3_xxs", 256, 98}, GIQ3S: {"iq3_s", 256, 110},
	A8B16: {"a8_b16", 16, 20}, A8B32: {"a8_b32", 32, 36}, A8B64: {"a8_b64", 64, 68},
}

// String returns the type's name in the IR, on the command line and in files.
func (d Type) String() string {
	if d >= Count {
		return fmt.Sprintf("dtype(%d)", uint8(d))
	}
	return layouts[d].name
}

// Block returns the number of elements per block, 1 for plain types.
func (d Type) Block() int { return layouts[d].block }

// BlockBytes returns the size of a block as stored in files.
func (d Type) BlockBytes() int { return layouts[d].blockBytes }

// RowBytes returns the size in bytes of a row of n elements, a multiple of Block.
func (d Type) RowBytes(n int) int { return n / layouts[d].block * layouts[d].blockBytes }

// IsBlock reports whether the elements of a block share scales.
func (d Type) IsBlock() bool { return layouts[d].block > 1 }

// IsFloat reports whether the type is a plain floating-point type.
func (d Type) IsFloat() bool { return d == F32 || d == F16 || d == BF16 || d == F64 }

// IsActivation reports whether the type is a result of quantize_act.
func (d Type) IsActivation() bool { return A8B16 <= d && d <= A8B64 }

// IsWeight reports whether kernels compute with weights of the type: float types of up to
// 32 bits and the block types for computation.
func (d Type) IsWeight() bool { return d == F32 || d == F16 || d == BF16 || Q8B32 <= d && d <= Q2B16 }

// OfKeys returns the type of the keys of a KV cache whose values have the type.
func (d Type) OfKeys() Type {
	if d == Q4B32T2 {
		return Q5RB32T2
	}
	return d
}

// ByteScale reports whether the blocks of the type store their scale in a byte: bits 7 to
// 14 of the f16 number 2⁸·scale, which are 5 bits of exponent and 3 of mantissa.
func (d Type) ByteScale() bool { return d == Q4TB32 || d == Q3TB32 || d == Q2TB32 }

// A Size is a short name for the best weight type of about that many bits per weight.
type Size struct {
	Name string
	Type Type
}

// Sizes lists the short names, largest first. A better type of the same size replaces
// the one listed here; docs/quantization.md has measurements.
var Sizes = []Size{{"q8", Q8B32T2}, {"q6", Q6TB32}, {"q5", Q5TB32}, {"q4", Q4TB32}, {"q3", Q3TB32}, {"q2", Q2TB32}}

// Bits returns the number of bits per element, block scales included.
func (d Type) Bits() float64 { return 8 * float64(d.BlockBytes()) / float64(d.Block()) }

// OfHead returns the type of an output head whose model's other matrices have the type: the
// smallest of Sizes with at least one bit per weight more, up to q8. It is the type itself
// from 8 bits on.
func (d Type) OfHead() Type {
	if !d.IsBlock() || d.Bits() >= 8 {
		return d
	}
	for i := len(Sizes) - 1; i > 0; i-- {
		if Sizes[i].Type.Bits() >= d.Bits()+1 {
			return Sizes[i].Type
		}
	}
	return Sizes[0].Type
}

// aliases are other names of types in lower case: PyTorch's and Inferflow's.
var aliases = map[string]Type{
	"fp32": F32, "float32": F32, "fp16": F16, "float16": F16, "half": F16, "bfloat16": BF16,
	"q8_b32t1": Q8B32, "q6_b64t1": Q6B64, "q5_b64t1": Q5B64, "q5_b32t1": Q5B32,
	"q4_b32t1": Q4B32, "q4_b32t1a": Q4B32, "q4_b64t1": Q4B64, "q3h": Q3HB64, "q3h_b64t1": Q3HB64,
	"q3_b32t1": Q3B32, "q3_b32t1b": Q3B32, "q2_b32t1": Q2B32, "q2_b32t1b": Q2B32,
}

// Parse returns the type with the given name, size or alias, in any case.
func Parse(s string) (Type, bool) {
	s = lower(s)
	for _, size := range Sizes {
		if size.Name == s {
			return size.Type, true
		}
	}
	if d, ok := aliases[s]; ok {
		return d, true
	}
	for d := F32; d < Count; d++ {
		if layouts[d].name == s {
			return d, true
		}
	}
	return Invalid, false
}

func lower(s string) string {
	b := []byte(s)
	for i, c := range b {
		if 'A' <= c && c <= 'Z' {
			b[i] = c + 'a' - 'A'
		}
	}
	return string(b)
}

// Limits of the sparse f32 outliers of a matrix of a block type. Column indices are
// stored in 16 bits. At this fraction of all entries, outliers need as much memory as
// three more bits per weight.
const (
	MaxSparseCols  = 1 << 16
	MaxSparseRatio = 0.05
)
