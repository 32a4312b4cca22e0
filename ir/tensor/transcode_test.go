package tensor

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dtype"
)

var fileTypes = []DType{F32, F16, BF16, F64, I8, I16, I32, I64, U8, Bool,
	GQ4_0, GQ4_1, GQ5_0, GQ5_1, GQ8_0, GQ2K, GQ3K, GQ4K, GQ5K, GQ6K, GIQ4NL, GIQ4XS, GMXFP4, GNVFP4, GTQ1, GTQ2, GQ1_0, GQ2_0,
	GIQ1S, GIQ1M, GIQ2XXS, GIQ2XS, GIQ2S, GIQ3XXS, GIQ3S}

// randomBlocks returns stored bytes of n elements with f16 and f32 fields of ordinary
// size.
func randomBlocks(dt DType, n int, seed int64) []byte {
	rng := rand.New(rand.NewSource(seed))
	src := make([]byte, dt.RowBytes(n))
	rng.Read(src)
	if dt == F32 || dt == F16 || dt == BF16 || dt == F64 {
		x := make([]float32, n)
		for i := range x {
			x[i] = float32(rng.NormFloat64())
		}
		if err := Encode(src, dt, x); err != nil {
			panic(err)
		}
		return src
	}
	heads := map[DType][]int{GQ4_0: {0}, GQ4_1: {0, 2}, GQ5_0: {0}, GQ5_1: {0, 2}, GQ8_0: {0},
		GQ2K: {80, 82}, GQ3K: {108}, GQ4K: {0, 2}, GQ5K: {0, 2}, GQ6K: {208}, GIQ4NL: {0}, GIQ4XS: {0}, GTQ1: {52}, GTQ2: {64}, GQ1_0: {0}, GQ2_0: {0},
		GIQ1S: {0}, GIQ2XXS: {0}, GIQ2XS: {0}, GIQ2S: {0}, GIQ3XXS: {0}, GIQ3S: {0}}
	for at := 0; at < len(src); at += dt.BlockBytes() {
		switch dt {
		case GMXFP4:
			src[at] = 118 + src[at]%8
		case GNVFP4: // scales have no sign
			for i := range 4 {
				src[at+i] = 40 + src[at+i]%32
			}
		case GIQ1M: // the f16 scale is in the upper bits of four words
			for i := range 4 {
				src[at+49+2*i] = src[at+49+2*i]&15 | []uint8{0x50, 0xa0, 0x90, 0x20}[i]
			}
		case GTQ2: // it has no code 3
			for i := range 64 {
				src[at+i] &= 0x55
			}
		}
		for _, h := range heads[dt] {
			binary.LittleEndian.PutUint16(src[at+h:], F32ToF16(float32(rng.NormFloat64()*0.03)))
		}
	}
	return src
}

func TestLosslessPairsAreExact(t *testing.T) {
	t.Parallel()
	count := 0
	for _, st := range fileTypes {
		for dt := F32; dt < dtype.Count; dt++ {
			if !Lossless(dt, st) || !CanEncode(dt) && dt != st {
				continue
			}
			count++
			const n = 256 * 20
			src := randomBlocks(st, n, int64(st))
			dst := make([]byte, dt.RowBytes(n))
			if err := Transcode(dst, dt, src, st); err != nil {
				t.Fatal(err)
			}
			want, got := decode(t, st, src), decode(t, dt, dst)
			for i := range want {
				if want[i] != got[i] {
					t.Fatalf("%s to %s: element %d: %v became %v", st, dt, i, want[i], got[i])
				}
			}
		}
	}
	if count < 30 {
		t.Errorf("only %d lossless pairs", count)
	}
	for _, p := range []pair{{Q8B32T2, GQ8_0}, {Q4B32, GQ4_0}, {Q4B32, GQ4_1}, {Q5B32, GQ5_0}, {Q5B32, GQ5_1}, {Q5B32, GQ4_1}, {F32, F16}, {F32, BF16}, {F16, F16}} {
		if !Lossless(p.dst, p.src) {
			t.Errorf("%s to %s should be lossless", p.src, p.dst)
		}
	}
	for _, p := range []pair{{F16, F32}, {F16, BF16}, {Q4B32, GQ4K}, {Q5B32, GQ5K}, {Q4B32, GQ8_0}, {Q8B32T2, GQ4_1}, {Q4B64, GQ4_0}, {F32, F64}} {
		if Lossless(p.dst, p.src) {
			t.Errorf("%s to %s should not be lossless", p.src, p.dst)
		}
	}
}

// TestComputeTypeIsClose checks that the default type of computation adds at most 0.1 % to
// the error of the file's type, which is at most its scales' rounding to f16; but 2 % to that
// of iq2_xs and iq2_s, whose scales of 16 no type has with their levels.
func TestComputeTypeIsClose(t *testing.T) {
	t.Parallel()
	for _, st := range fileTypes {
		dt := ComputeType(st)
		if !CanEncode(dt) {
			t.Errorf("%s is computed with as %s, which cannot be written", st, dt)
			continue
		}
		const n = 256 * 20
		src := randomBlocks(st, n, 7)
		dst := make([]byte, dt.RowBytes(n))
		if err := Transcode(dst, dt, src, st); err != nil {
			t.Fatal(err)
		}
		want, got := decode(t, st, src), decode(t, dt, dst)
		lost, all := 0.0, 0.0
		for i, x := range want {
			d := float64(x) - float64(got[i])
			lost, all = lost+d*d, all+float64(x)*float64(x)
		}
		limit := 0.001
		if st == GIQ2XS || st == GIQ2S {
			limit = 0.02
		}
		if e := math.Sqrt(lost / all); !(e <= limit) {
			t.Errorf("%s to %s: the relative error is %.3f %%", st, dt, 100*e)
		}
	}
}

func TestTranscodeHugeQ4Scale(t *testing.T) {
	t.Parallel()
	src := randomBlocks(GQ4_0, 32, 1)
	binary.LittleEndian.PutUint16(src, F32ToF16(60000))
	dst := make([]byte, Q4B32.BlockBytes())
	if err := Transcode(dst, Q4B32, src, GQ4_0); err != nil {
		t.Fatal(err)
	}
	for i, x := range decode(t, Q4B32, dst) {
		if x != x || math.IsInf(float64(x), 0) {
			t.Fatalf("element %d is %v", i, x)
		}
	}
}

func TestTranscodeSameTypeCopies(t *testing.T) {
	t.Parallel()
	src := randomBlocks(GQ6K, 512, 3)
	dst := make([]byte, len(src))
	if err := Transcode(dst, GQ6K, src, GQ6K); err != nil || !bytes.Equal(src, dst) {
		t.Fatal("the bytes changed", err)
	}
}
