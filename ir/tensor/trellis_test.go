package tensor

import (
	"bytes"
	"encoding/hex"
	"math"
	"math/rand/v2"
	"testing"
)

// levelOf returns the level of the code of a column by the definition.
func levelOf(l *Trellis, codes []uint8, column int) float32 {
	place := column%4*8 + column/4
	before := func(n int) uint8 {
		p := (place + 32 - n) % 32
		return codes[p%8*4+p/8] & 1
	}
	return float32(l.Levels[2*(codes[column]^before(2))+before(1)])
}

// TestTrellisDecode checks the values of random codes and scales, and that the codes come
// back as they were stored.
func TestTrellisDecode(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(1, 2))
	for _, dt := range trellisTypes {
		l := TrellisOf(dt)
		if n := dt.Block()*int(l.Bits)/8 + l.head(); n != dt.BlockBytes() {
			t.Errorf("%s: codes and scale take %d bytes, the type %d", dt, n, dt.BlockBytes())
		}
		for range 100 {
			var codes, back [trellisBlock]uint8
			for i := range codes {
				codes[i] = uint8(r.IntN(1 << l.Bits))
			}
			block, stored := make([]byte, dt.BlockBytes()), uint16(r.IntN(0x7c00))
			scale := float64(F16ToF32(stored))
			if dt.ByteScale() {
				stored &^= 0x7f
				scale = float64(F16ToF32(stored)) / 256
			}
			l.putBlock(block, stored, codes[:])
			if s, _ := BlockCodes(dt, block, back[:]); s != stored || codes != back {
				t.Fatalf("%s: codes %v with scale %#x came back as %v, %#x", dt, codes, stored, back, s)
			}
			values := decode(t, dt, block)
			Levels(dt, back[:])
			for i, v := range values {
				if want := levelOf(l, codes[:], i); float64(v) != scale*float64(want) || float32(int(back[i])-int(l.Zero)) != want {
					t.Fatalf("%s: column %d is %v, code %d; want the level %v times %v", dt, i, v, back[i], want, scale)
				}
			}
		}
	}
}

// TestNearestLevels checks the tables against a search of all levels of a subset.
func TestNearestLevels(t *testing.T) {
	t.Parallel()
	for _, dt := range trellisTypes {
		l := TrellisOf(dt)
		for x := float32(-127); x <= 127; x += 0.25 {
			for d := range 4 {
				best := math.Inf(1)
				for q := d; q < len(l.Levels); q += 4 {
					best = min(best, math.Abs(float64(x)-float64(l.Levels[q])))
				}
				q := l.near[d][uint8(int(x+128))].of(x)
				if got := math.Abs(float64(x) - float64(l.Levels[q])); int(q)%4 != d || got != best {
					t.Fatalf("%s: level %d of subset %d misses %v by %v, the best by %v", dt, q, d, x, got, best)
				}
			}
		}
	}
}

// TestViterbi compares the sum of costs with that of a plain dynamic program over the
// whole sequence, for each state to start in.
func TestViterbi(t *testing.T) {
	t.Parallel()
	r := rand.New(rand.NewPCG(3, 4))
	for range 50 {
		var costs [trellisBlock][4]uint64
		for i := range costs {
			for d := range costs[i] {
				costs[i][d] = uint64(r.IntN(1<<20)) << 32
			}
		}
		least := uint64(math.MaxUint64)
		for start := range 4 {
			sums := map[int]uint64{start: 0}
			for i := range costs {
				next := map[int]uint64{}
				for state, sum := range sums {
					for u := range 2 {
						to, s := (u|state<<1)&3, sum+costs[i][2*(u^state>>1)+state&1]
						if old, ok := next[to]; !ok || s < old {
							next[to] = s
						}
					}
				}
				sums = next
			}
			least = min(least, sums[start])
		}
		low, sum := viterbi(&costs), uint64(0)
		bit := func(i int) uint32 { return low >> (uint(i) % trellisBlock) & 1 }
		for i := range costs {
			sum += costs[i][2*(bit(i)^bit(i-2))+bit(i-1)]
		}
		if sum != least {
			t.Fatalf("sequence %#x costs %d, the best %d", low, sum>>32, least>>32)
		}
	}
}

// TestTrellisError compares the error on Gaussian values with that of the nearest of the
// same number of levels, chosen by Lloyd's algorithm, in blocks with exact scales
// (measured once): the trellis must gain more than its scales lose.
func TestTrellisError(t *testing.T) {
	t.Parallel()
	src := gaussian(1<<14, 3)
	norm := math.Sqrt(squaredError(src, make([]float32, len(src)), nil))
	for dt, scalar := range map[DType]float64{Q6TB32: 0.0193, Q5TB32: 0.0374, Q4TB32: 0.0762, Q3TB32: 0.158, Q2TB32: 0.328} {
		got := math.Sqrt(squaredError(src, decode(t, dt, encode(t, dt, src)), nil)) / norm
		t.Logf("%s: %.4f, a scalar quantizer %.4f", dt, got, scalar)
		if got > 0.93*scalar {
			t.Errorf("%s: the relative error is %.4f, that of a scalar quantizer %.4f", dt, got, scalar)
		}
	}
}

// TestTrellisBytes checks that encoding gives the same bytes on every CPU.
func TestTrellisBytes(t *testing.T) {
	t.Parallel()
	src := make([]float32, trellisBlock)
	for i := range src {
		src[i] = float32(i*i%37-18) / 64
	}
	for dt, want := range map[DType]string{
		Q6TB32: "291a007d330bff0fcedc01953a0f66a49d3fad88fbc2d95b67f0",
		Q5TB32: "da1e60353fab01629d9e3b692c37cfbaec93e586b3e8",
		Q4TB32: "791131d53e0c3cbe13efcdee51fbd3d1e2",
		Q3TB32: "7960353fab512b3712fa5fccbc",
		Q2TB32: "7a556d6752ea5fcd8d",
	} {
		w, err := hex.DecodeString(want)
		if got := encode(t, dt, src); err != nil || !bytes.Equal(got, w) {
			t.Errorf("%s: %x, want %s", dt, got, want)
		}
	}
}
