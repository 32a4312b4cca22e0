package pack

import (
	"encoding/binary"
	"math/rand"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/runtime/artifact/packed"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// A bit says that bit `out` of a code comes from bit `in` of stored vector vec.
type bit struct{ out, vec, in int }

// run is n consecutive bits.
func run(out, vec, in, n int) []bit {
	var b []bit
	for i := range n {
		b = append(b, bit{out + i, vec, in + i})
	}
	return b
}

func join(parts ...[]bit) []bit {
	var b []bit
	for _, p := range parts {
		b = append(b, p...)
	}
	return b
}

// codeBits is what the kernels' decoders read, from the layout's description:
// the sources of every bit of code vector j (for q3h: of pair vector j).
func codeBits(dt tensor.DType, j int) []bit {
	switch dt {
	case tensor.Q4B32, tensor.Q4B64, tensor.Q4TB32, tensor.Q4B16T2:
		return run(0, j/2, 4*(j%2), 4)
	case tensor.Q2B32, tensor.Q2TB32, tensor.Q2B16:
		return run(0, j/4, 2*(j%4), 2)
	case tensor.Q6B64, tensor.Q6TB32, tensor.Q6B16T2:
		t := 3 * (j / 4)
		if j%4 < 3 {
			return run(0, t+j%4, 0, 6)
		}
		return join(run(4, t, 6, 2), run(2, t+1, 6, 2), run(0, t+2, 6, 2))
	case tensor.Q5B64, tensor.Q5B32, tensor.Q5TB32:
		t := 5 * (j / 8)
		switch j % 8 {
		case 5:
			return join(run(0, t, 5, 3), run(3, t+1, 6, 2))
		case 6:
			return join(run(0, t+2, 5, 3), run(3, t+3, 6, 2))
		case 7:
			return join(run(0, t+4, 5, 3), run(3, t+1, 5, 1), run(4, t+3, 5, 1))
		}
		return run(0, t+j%8, 0, 5)
	case tensor.Q3B32, tensor.Q3TB32:
		switch j {
		case 6:
			return join(run(0, 0, 6, 2), run(2, 1, 6, 1))
		case 7:
			return join(run(0, 2, 6, 2), run(2, 1, 7, 1))
		}
		return run(0, j/2, 3*(j%2), 3)
	case tensor.Q3HB64:
		if j < 7 {
			return run(0, j, 0, 7)
		}
		var b []bit
		for i := range 7 {
			b = append(b, bit{i, i, 7})
		}
		return b
	}
	return run(0, j, 0, 8)
}

func gather(tile []byte, dt tensor.DType, j, lane int) int {
	v := 0
	for _, b := range codeBits(dt, j) {
		v |= int(tile[64*b.vec+lane]) >> b.in & 1 << b.out
	}
	return v
}

// panelCode decodes the code of row r at element k of a tile.
func panelCode(tile []byte, dt tensor.DType, r, k int) int {
	j, lane := k/4, 4*r+k%4
	if dt != tensor.Q3HB64 {
		return gather(tile, dt, j, lane)
	}
	v := gather(tile, dt, j/2, lane)
	if j%2 == 0 {
		return v / 11
	}
	return v % 11
}

var panelTypes = []tensor.DType{tensor.Q8B32, tensor.Q8B64, tensor.Q8B32T2, tensor.Q6B64, tensor.Q5B64, tensor.Q5B32,
	tensor.Q4B32, tensor.Q4B64, tensor.Q3HB64, tensor.Q3B32, tensor.Q2B32, tensor.Q6TB32, tensor.Q5TB32, tensor.Q4TB32, tensor.Q3TB32, tensor.Q2TB32, tensor.Q6B16T2, tensor.Q4B16T2, tensor.Q2B16}

// Packed and decoded again, every weight is bit for bit what the row said;
// padding contributes nothing.
func TestPanelsOfBlockTypes(t *testing.T) {
	t.Parallel()
	rng := rand.New(rand.NewSource(1))
	for _, dt := range panelTypes {
		const n, k = 35, 168 // neither whole panels nor whole blocks
		b := dt.Block()
		kb := (k + b - 1) / b
		rows := make([][]byte, n)
		for r := range rows {
			x := make([]float32, kb*b)
			for i := range x {
				x[i] = float32(rng.NormFloat64())
			}
			rows[r] = make([]byte, dt.RowBytes(len(x)))
			if err := tensor.Encode(rows[r], dt, x); err != nil {
				t.Fatal(err)
			}
		}
		dst := make([]byte, packed.PanelBytes(dt, n, k))
		PackPanels(dst, dt, n, k, func(r int) []byte { return rows[r] })
		tile := packed.TileBytes(dt)
		if len(dst) != 3*kb*tile {
			t.Fatalf("%s: %d bytes, want %d", dt, len(dst), 3*kb*tile)
		}
		checkPanels(t, dt, dst, rows, k)
	}
}

func checkPanels(t *testing.T, dt tensor.DType, dst []byte, rows [][]byte, k int) {
	t.Helper()
	b, tile := dt.Block(), packed.TileBytes(dt)
	kb := (k + b - 1) / b
	f16 := func(p []byte) float32 { return tensor.F16ToF32(binary.LittleEndian.Uint16(p)) }
	for r := range len(dst) / tile / kb * 16 {
		var want []float32
		if r < len(rows) {
			want = checkpointtest.DecodeAll(t, dt, rows[r])
		}
		for i := range kb * b {
			p := dst[(r/16*kb+i/b)*tile:][:tile]
			meta := p[64*folds[dt].vectors:]
			var scale, base float32
			zero, code := 0, panelCode(p, dt, r%16, i%b)
			value := code
			if trellis := tensor.TrellisOf(dt); trellis != nil {
				before := func(n int) int { // the low bit of the code n places before
					place := (i%4*8 + i%b/4 + 32 - n) % 32
					return panelCode(p, dt, r%16, place%8*4+place/8) & 1
				}
				value = int(trellis.Levels[2*(code^before(2))+before(1)])
			}
			switch {
			case dt.ByteScale():
				scale = f16([]byte{meta[r%16] << 7, meta[r%16] >> 1}) / 256
			case tensor.HasBase(dt):
				scale, base = f16(meta[2*(r%16):]), f16(meta[32+2*(r%16):])
			case tensor.TrellisOf(dt) == nil:
				zero = int(tensor.Zero(dt))
				value = code - zero
				fallthrough
			default:
				scale = f16(meta[2*(r%16):])
			}
			got := base + scale*float32(value)
			if r >= len(rows) {
				if got != 0 || code != zero {
					t.Fatalf("%s: padding row %d has code %d, value %v", dt, r, code, got)
				}
			} else if i >= k && tensor.TrellisOf(dt) == nil {
				if code != zero {
					t.Fatalf("%s: padding element %d of row %d has code %d", dt, i, r, code)
				}
			} else if i < k && got != want[i] {
				t.Fatalf("%s: row %d, k %d: %v, want %v", dt, r, i, got, want[i])
			}
		}
	}
}

// TestFolds: there is a fold for each block type that panels hold, and it fills
// what a tile has room for.
func TestFolds(t *testing.T) {
	t.Parallel()
	for dt := range dtype.Count {
		f, ok := folds[dt]
		if ok != (dt.IsBlock() && dt.IsWeight()) {
			t.Errorf("%s: a fold: %v", dt, ok)
			continue
		}
		meta := 2 * 2 * packed.PanelRows
		switch {
		case dt.ByteScale():
			meta /= 4
		case !tensor.HasBase(dt):
			meta /= 2
		}
		if ok && 64*f.vectors+meta != packed.TileBytes(dt) {
			t.Errorf("%s: %d vectors and %d bytes of scales in a tile of %d", dt, f.vectors, meta, packed.TileBytes(dt))
		}
	}
}

func TestPanelsOfPlainTypes(t *testing.T) {
	t.Parallel()
	const n, k = 19, 5
	for _, dt := range []tensor.DType{tensor.F32, tensor.F16, tensor.BF16} {
		size := dt.BlockBytes()
		rows := make([][]byte, n)
		for r := range rows {
			x := make([]float32, k)
			for i := range x {
				x[i] = float32(10*r + i)
			}
			rows[r] = make([]byte, k*size)
			if err := tensor.Encode(rows[r], dt, x); err != nil {
				t.Fatal(err)
			}
		}
		dst := make([]byte, packed.PanelBytes(dt, n, k))
		PackPanels(dst, dt, n, k, func(r int) []byte { return rows[r] })
		x := checkpointtest.DecodeAll(t, dt, dst)
		if len(x) != 2*k*16 {
			t.Fatalf("%s: %d elements", dt, len(x))
		}
		for i, got := range x {
			r, c, want := i/(16*k)*16+i%16, i/16%k, float32(0)
			if r < n {
				want = checkpointtest.DecodeAll(t, dt, rows[r])[c]
			}
			if got != want {
				t.Fatalf("%s: row %d, k %d: %v, want %v", dt, r, c, got, want)
			}
		}
	}
}
