package tensor

// The k-quants of GGUF: super-blocks of 256 elements with sub-blocks that have quantized
// scales (ggml's block_q2_K … block_q6_K).

// decodeSixteen decodes the types that have a scale for 16 values.
func decodeSixteen(dst []float32, dt DType, src []byte) {
	var codes [16]uint8
	for sub := range dt.Block() / 16 {
		scale, minimum, zero := codesSixteen(&codes, src, dt, sub)
		for i, q := range codes {
			dst[16*sub+i] = float32(scale*float32(int(q)-zero)) - minimum
		}
	}
}

// codesSixteen returns sub-block sub of a block of one of these types:
// x = scale·(code − zero) − minimum.
func codesSixteen(codes *[16]uint8, src []byte, st DType, sub int) (scale, minimum float32, zero int) {
	switch st {
	case GQ2K:
		scale, minimum = codesQ2K(codes, src, sub)
	case GQ3K:
		scale, zero = codesQ3K(codes, src, sub), 8
	case GQ6K:
		scale, zero = codesQ6K(codes, src, sub), 32
	case GNVFP4:
		scale, zero = codesNVFP4(codes, src, sub), 32
	}
	return scale, minimum, zero
}

// codesQ2K: 16 B scale and minimum nibbles of 16 sub-blocks, 64 B of two-bit codes, f16 d,
// f16 dmin; x = (d·scale)·q − dmin·min.
func codesQ2K(codes *[16]uint8, src []byte, sub int) (scale, minimum float32) {
	scales, qs := src[:16], src[16:80]
	d, dmin := f16At(src[80:]), f16At(src[82:])
	// Sub-blocks are pairs of 16 codes at one shift, four shifts a 32 B run.
	run, shift, half := sub/8, uint(sub%8/2*2), sub%2
	for i, b := range qs[32*run+16*half:][:16] {
		codes[i] = b >> shift & 3
	}
	return d * float32(scales[sub]&15), dmin * float32(scales[sub]>>4)
}

// codesQ3K: 32 B of inverted third bits, 64 B of two-bit codes, 12 B of six-bit scales of 16
// sub-blocks, f16 d; x = d·(scale − 32)·q, q in −4…3. The codes are q + 8.
func codesQ3K(codes *[16]uint8, src []byte, sub int) (scale float32) {
	hmask, qs, packed := src[:32], src[32:96], src[96:108]
	low := packed[sub%8] >> uint(sub/8*4) & 15
	high := packed[8+sub%4] >> uint(sub/4*2) & 3
	run, step, half := sub/8, sub%8/2, sub%2
	for i := range codes {
		codes[i] = qs[32*run+16*half+i]>>uint(2*step)&3 | 4 + hmask[16*half+i]>>uint(4*run+step)&1<<2
	}
	return f16At(src[108:]) * float32(int(low|high<<4)-32)
}

// kScaleMin unpacks sub-block j's six-bit scale and minimum from the 12 bytes
// that q4_k and q5_k share.
func kScaleMin(p []byte, j int) (scale, minimum uint8) {
	if j < 4 {
		return p[j] & 63, p[j+4] & 63
	}
	return p[j+4]&15 | p[j-4]>>6<<4, p[j+4]>>4 | p[j]>>6<<4
}

// decodeQ4K: f16 d, f16 dmin, 12 B scales, 128 B nibbles; eight sub-blocks of
// 32; x = (d·scale)·q − dmin·min.
func decodeQ4K(dst []float32, _ DType, src []byte) {
	d, dmin := f16At(src), f16At(src[2:])
	scales, qs := src[4:16], src[16:144]
	for sub := range 8 {
		sc, mn := kScaleMin(scales, sub)
		dl, ml := d*float32(sc), dmin*float32(mn)
		shift := uint(sub % 2 * 4)
		for i, b := range qs[32*(sub/2):][:32] {
			dst[32*sub+i] = float32(dl*float32(b>>shift&15)) - ml
		}
	}
}

// decodeQ5K: f16 d, f16 dmin, 12 B scales, 32 B of fifth bits, 128 B nibbles.
func decodeQ5K(dst []float32, _ DType, src []byte) {
	d, dmin := f16At(src), f16At(src[2:])
	scales, qh, qs := src[4:16], src[16:48], src[48:176]
	for sub := range 8 {
		sc, mn := kScaleMin(scales, sub)
		dl, ml := d*float32(sc), dmin*float32(mn)
		shift := uint(sub % 2 * 4)
		for i, b := range qs[32*(sub/2):][:32] {
			q := b>>shift&15 | qh[i]>>uint(sub)&1<<4
			dst[32*sub+i] = float32(dl*float32(q)) - ml
		}
	}
}

// codesQ6K: 128 B low nibbles, 64 B of two high bits, 16 signed scales, f16 d; sixteen
// sub-blocks of 16; x = (d·scale)·(q − 32).
func codesQ6K(codes *[16]uint8, src []byte, sub int) (scale float32) {
	ql, qh, scales := src[:128], src[128:192], src[192:208]
	run, quarter, half := sub/8, sub%8/2, sub%2
	for i := range codes {
		at := 16*half + i
		low := ql[64*run+32*(quarter%2)+at] >> uint(quarter/2*4) & 15
		high := qh[32*run+at] >> uint(2*quarter) & 3
		codes[i] = low | high<<4
	}
	return f16At(src[208:]) * float32(int8(scales[sub]))
}
