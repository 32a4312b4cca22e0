package tensor

import (
	"encoding/binary"
	"math"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

// Lossless reports whether every value stored as src is exactly a value of dst and
// Transcode preserves it. float32 represents the values of all file types, except wide
// integers and float64.
func Lossless(dst, src DType) bool {
	if dst == src {
		return true
	}
	switch dst {
	case F32:
		return src != F64 && src != I32 && src != I64 && src != Invalid
	case F64:
		return src != I64 && src != Invalid
	}
	_, ok := recoders[pair{dst, src}]
	return ok && exact(src)
}

// exact reports whether the recoder of src does not round scales.
func exact(src DType) bool {
	switch src {
	case GQ2K, GQ3K, GQ4K, GQ5K, GQ6K, GIQ4XS, GMXFP4, GIQ1S, GIQ1M, GIQ2XXS, GIQ2XS, GIQ2S, GIQ3XXS, GIQ3S:
		return false
	}
	return true
}

// ComputeType returns the type in which a stored type is computed by default: the type
// itself if iflowc computes with it, otherwise the smallest type that holds it without
// loss, otherwise the closest block type of at least the same precision.
//
// All types keep their codes, or have integers as levels: q2_k, q3_k, q6_k and nvfp4, whose
// scales belong to 16 weights, in blocks of 16, iq4_nl, iq4_xs, iq2_xxs and mxfp4 in
// q8_b32t2. Only the products of scales of k-quants and IQ types are rounded to f16, with an
// error of at most 2⁻¹¹ of the block's range. For iq2_xs and iq2_s see recodeGrid.
func ComputeType(stored DType) DType {
	switch stored {
	case GQ4_0, GQ4_1, GQ4K, GIQ3S:
		return Q4B32
	case GTQ1, GTQ2, GQ1_0, GQ2_0, GIQ1S:
		return Q2B32
	case GQ5_0, GQ5_1, GQ5K:
		return Q5B32
	case GQ2K:
		return Q2B16
	case GQ3K:
		return Q4B16T2
	case GQ6K, GNVFP4, GIQ1M, GIQ2XS, GIQ2S, GIQ3XXS:
		return Q6B16T2
	case GIQ4NL, GIQ4XS, GMXFP4, GQ8_0, GIQ2XXS:
		return Q8B32T2
	case F64, I8, I16, I32, I64, U8, Bool:
		return F32
	}
	return stored
}

type pair struct{ dst, src DType }

// A recoder converts one block of type st to blocks of type dt.
type recoder func(dst []byte, dt DType, src []byte, st DType)

// recoders preserve the stored codes. Encoding the decoded values by rule A would choose
// other scales than those of the file.
var recoders = map[pair]recoder{
	{Q8B32T2, GQ8_0}: func(dst []byte, _ DType, src []byte, _ DType) { copy(dst, src) },
	{Q8B32T2, GQ4_0}: recodeSigned, {Q8B32T2, GQ5_0}: recodeSigned,
	{Q4B32, GQ4_0}: recodeAffine, {Q4B32, GQ4_1}: recodeAffine,
	{Q5B32, GQ4_0}: recodeAffine, {Q5B32, GQ4_1}: recodeAffine,
	{Q5B32, GQ5_0}: recodeAffine, {Q5B32, GQ5_1}: recodeAffine,
	{Q8B32, GQ4_0}: recodeAffine, {Q8B32, GQ4_1}: recodeAffine,
	{Q8B32, GQ5_0}: recodeAffine, {Q8B32, GQ5_1}: recodeAffine,
	{Q4B32, GQ4K}: recodeK, {Q5B32, GQ4K}: recodeK, {Q5B32, GQ5K}: recodeK,
	{Q8B32T2, GIQ4NL}: recodeLevels, {Q8B32T2, GIQ4XS}: recodeLevels, {Q8B32T2, GMXFP4}: recodeLevels, {Q8B32T2, GIQ2XXS}: recodeLevels,
	{Q2B16, GQ2K}: recodeSixteen, {Q4B16T2, GQ3K}: recodeSixteen, {Q6B16T2, GQ6K}: recodeSixteen, {Q6B16T2, GNVFP4}: recodeSixteen,
	{Q2B32, GTQ1}: recodeTernary, {Q2B32, GTQ2}: recodeTernary, {Q2B32, GQ1_0}: recodeTernary, {Q2B32, GQ2_0}: recodeTernary,
	{Q2B32, GIQ1S}: recodeGrid, {Q6B16T2, GIQ1M}: recodeGrid, {Q6B16T2, GIQ2XS}: recodeGrid, {Q6B16T2, GIQ2S}: recodeGrid,
	{Q6B16T2, GIQ3XXS}: recodeGrid, {Q4B32, GIQ3S}: recodeGrid,
}

// Transcode converts stored elements to another type. It is exact if Lossless reports
// true; otherwise the decoded values are encoded with dt's rounding rule. Both buffers
// must hold the same number of elements in whole blocks of both types.
//
// There is one exception to exactness: a q4_0 or q5_0 scale that is so large (8·|d| >
// 65504 or 16·|d| > 65504) that its offset exceeds f16. Such a block is encoded again.
func Transcode(dst []byte, dt DType, src []byte, st DType) error {
	if st == Invalid || st >= dtype.Count {
		return checkSizes("transcode", st, 0, 0)
	}
	n := len(src) / st.BlockBytes() * st.Block()
	if err := checkSizes("transcode from", st, n, len(src)); err != nil {
		return err
	}
	if err := checkSizes("transcode to", dt, n, len(dst)); err != nil {
		return err
	}
	if dt == st {
		copy(dst, src)
		return nil
	}
	if f := recoders[pair{dt, st}]; f != nil {
		size, out := st.BlockBytes(), dt.RowBytes(st.Block())
		for ; len(src) > 0; src, dst = src[size:], dst[out:] {
			f(dst[:out], dt, src[:size], st)
		}
		return nil
	}
	return transcodeValues(dst, dt, src, st, n)
}

// transcodeValues converts via float32 in pieces of whole blocks of any type.
func transcodeValues(dst []byte, dt DType, src []byte, st DType, n int) error {
	var buf [256]float32
	for n > 0 {
		k := min(n, len(buf))
		in, out := st.RowBytes(k), dt.RowBytes(k)
		if err := Decode(buf[:k], st, src[:in]); err != nil {
			return err
		}
		if err := Encode(dst[:out], dt, buf[:k]); err != nil {
			return err
		}
		n, src, dst = n-k, src[in:], dst[out:]
	}
	return nil
}

// ggmlCodes returns the codes and f16 numbers of a q4_0, q4_1, q5_0 or q5_1 block. m is
// the offset of zero-based codes: the stored minimum, or −8·d or −16·d.
func ggmlCodes(codes *[32]uint8, src []byte, st DType) (d uint16, m float64) {
	d = binary.LittleEndian.Uint16(src)
	scale := float64(F16ToF32(d))
	m = -8 * scale
	data := src[2:]
	if st == GQ5_0 {
		m = -16 * scale
	}
	if st == GQ4_1 || st == GQ5_1 {
		m = float64(f16At(data))
		data = data[2:]
	}
	var high uint32
	if st == GQ5_0 || st == GQ5_1 {
		high = binary.LittleEndian.Uint32(data)
		data = data[4:]
	}
	for i, b := range data[:16] {
		codes[i] = b&15 | uint8(high>>i&1)<<4
		codes[i+16] = b>>4 | uint8(high>>(i+16)&1)<<4
	}
	return d, m
}

func recodeAffine(dst []byte, dt DType, src []byte, st DType) {
	var codes [32]uint8
	d, m := ggmlCodes(&codes, src, st)
	if math.Abs(m) > MaxF16 && (st == GQ4_0 || st == GQ5_0) {
		var values [32]float32
		blockDecoders[st](values[:], st, src)
		encodeAffine(dst, dt, values[:], rounding{})
		return
	}
	affine[dt].putBlock(dst, d, F32ToF16(float32(m)), codes[:])
}

// recodeSigned keeps d and stores q − 8 or q − 16 as signed codes.
func recodeSigned(dst []byte, _ DType, src []byte, st DType) {
	var codes [32]uint8
	d, _ := ggmlCodes(&codes, src, st)
	zero := uint8(8)
	if st == GQ5_0 {
		zero = 16
	}
	binary.LittleEndian.PutUint16(dst, d)
	for i, c := range codes {
		dst[2+i] = c - zero
	}
}

// recodeK stores the eight sub-blocks of a q4_k or q5_k block as blocks with the same
// codes; d·scale and dmin·min are rounded to f16.
func recodeK(dst []byte, dt DType, src []byte, st DType) {
	d, dmin := float64(f16At(src)), float64(f16At(src[2:]))
	low, high := src[16:], []byte(nil)
	if st == GQ5K {
		high, low = src[16:48], src[48:]
	}
	size := dt.BlockBytes()
	for sub := range 8 {
		sc, mn := kScaleMin(src[4:16], sub)
		var codes [32]uint8
		shift := uint(sub % 2 * 4)
		for i, b := range low[32*(sub/2):][:32] {
			codes[i] = b >> shift & 15
			if high != nil {
				codes[i] |= high[i] >> uint(sub) & 1 << 4
			}
		}
		affine[dt].putBlock(dst[sub*size:][:size],
			saturateF16(d*float64(sc)), saturateF16(-dmin*float64(mn)), codes[:])
	}
}

// recodeSixteen stores sub-blocks of 16 weights as blocks with the same codes. Scales and
// minima are rounded to f16.
func recodeSixteen(dst []byte, dt DType, src []byte, st DType) {
	var codes [16]uint8
	size := dt.BlockBytes()
	for sub := range st.Block() / 16 {
		scale, minimum, _ := codesSixteen(&codes, src, st, sub)
		PutBlockCodes(dt, dst[sub*size:][:size], saturateF16(float64(scale)), saturateF16(-float64(minimum)), codes[:])
	}
}
