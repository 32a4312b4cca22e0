package tensor

import "encoding/binary"

// The GGUF types without super-blocks have blocks of 32 elements. The low nibbles hold
// the first half of a block, the high nibbles the second (ggml's block_q4_0 etc.).

func decodeQ8_0(dst []float32, _ DType, src []byte) { decodeSigned(dst, Q8B32T2, src) }

// decodeQ4_0: f16 d, 16 B nibbles; x = d·(q − 8).
func decodeQ4_0(dst []float32, _ DType, src []byte) {
	d := f16At(src)
	for i, b := range src[2:18] {
		dst[i] = d * float32(int(b&15)-8)
		dst[i+16] = d * float32(int(b>>4)-8)
	}
}

// decodeQ4_1: f16 d, f16 m, 16 B nibbles; x = d·q + m.
func decodeQ4_1(dst []float32, _ DType, src []byte) {
	d, m := f16At(src), f16At(src[2:])
	for i, b := range src[4:20] {
		dst[i] = float32(d*float32(b&15)) + m
		dst[i+16] = float32(d*float32(b>>4)) + m
	}
}

// decodeQ5_0: f16 d, 4 B of fifth bits, 16 B nibbles; x = d·(q − 16).
func decodeQ5_0(dst []float32, _ DType, src []byte) {
	d, high := f16At(src), binary.LittleEndian.Uint32(src[2:])
	for i, b := range src[6:22] {
		lo := int(b&15) | int(high>>i&1)<<4
		hi := int(b>>4) | int(high>>(i+16)&1)<<4
		dst[i] = d * float32(lo-16)
		dst[i+16] = d * float32(hi-16)
	}
}

// decodeQ5_1: f16 d, f16 m, 4 B of fifth bits, 16 B nibbles; x = d·q + m.
func decodeQ5_1(dst []float32, _ DType, src []byte) {
	d, m, high := f16At(src), f16At(src[2:]), binary.LittleEndian.Uint32(src[4:])
	for i, b := range src[8:24] {
		lo := int(b&15) | int(high>>i&1)<<4
		hi := int(b>>4) | int(high>>(i+16)&1)<<4
		dst[i] = float32(d*float32(lo)) + m
		dst[i+16] = float32(d*float32(hi)) + m
	}
}
