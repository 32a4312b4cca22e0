// Package tensor defines the byte formats of block-quantized types, host tensors and
// weight transforms.
package tensor

import "github.com/iflowc/iflowc/runtime/artifact/dtype"

// A DType is an element type; it is an alias of dtype.Type.
type DType = dtype.Type

// The element types; see package dtype.
const (
	Invalid = dtype.Invalid
	F32     = dtype.F32
	F16     = dtype.F16
	BF16    = dtype.BF16
	F64     = dtype.F64
	I8      = dtype.I8
	I16     = dtype.I16
	I32     = dtype.I32
	I64     = dtype.I64
	U8      = dtype.U8
	Bool    = dtype.Bool

	Q8B32   = dtype.Q8B32
	Q8B64   = dtype.Q8B64
	Q8B32T2 = dtype.Q8B32T2
	Q6B64   = dtype.Q6B64
	Q5B64   = dtype.Q5B64
	Q5B32   = dtype.Q5B32
	Q4B32   = dtype.Q4B32
	Q4B64   = dtype.Q4B64
	Q3HB64  = dtype.Q3HB64
	Q3B32   = dtype.Q3B32
	Q2B32   = dtype.Q2B32
	Q6TB32  = dtype.Q6TB32
	Q5TB32  = dtype.Q5TB32
	Q4TB32  = dtype.Q4TB32
	Q3TB32  = dtype.Q3TB32
	Q2TB32  = dtype.Q2TB32
	Q6B16T2 = dtype.Q6B16T2
	Q4B16T2 = dtype.Q4B16T2
	Q2B16   = dtype.Q2B16

	Q5RB32T2 = dtype.Q5RB32T2
	Q4B32T2  = dtype.Q4B32T2

	GQ4_0  = dtype.GQ4_0
	GQ4_1  = dtype.GQ4_1
	GQ5_0  = dtype.GQ5_0
	GQ5_1  = dtype.GQ5_1
	GQ8_0  = dtype.GQ8_0
	GQ2K   = dtype.GQ2K
	GQ3K   = dtype.GQ3K
	GQ4K   = dtype.GQ4K
	GQ5K   = dtype.GQ5K
	GQ6K   = dtype.GQ6K
	GIQ4NL = dtype.GIQ4NL
	GIQ4XS = dtype.GIQ4XS
	GMXFP4 = dtype.GMXFP4
	GNVFP4 = dtype.GNVFP4
	GTQ1   = dtype.GTQ1
	GTQ2   = dtype.GTQ2
	GQ1_0  = dtype.GQ1_0
	GQ2_0  = dtype.GQ2_0

	GIQ1S   = dtype.GIQ1S
	GIQ1M   = dtype.GIQ1M
	GIQ2XXS = dtype.GIQ2XXS
	GIQ2XS  = dtype.GIQ2XS
	GIQ2S   = dtype.GIQ2S
	GIQ3XXS = dtype.GIQ3XXS
	GIQ3S   = dtype.GIQ3S

	A8B16 = dtype.A8B16
	A8B32 = dtype.A8B32
	A8B64 = dtype.A8B64
)

// ParseDType returns the type with the given name or alias, case-insensitively.
func ParseDType(s string) (DType, bool) { return dtype.Parse(s) }
