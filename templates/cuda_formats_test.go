package templates

import (
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"os/exec"
	"path/filepath"
	"slices"
	"testing"

	"github.com/ebitengine/purego"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/ir/tensor"
)

// formatText is a function that decodes a tile-block with the format of a type: the codes in
// the order of the CPU's unpacked code vectors, and in `order` the numbers of the code vectors
// in the order in which the format gives them.
const formatText = `
extern "C" void decode_%[1]s(const uint8_t *tile, uint8_t *codes, uint8_t *order) {
  typedef ifl_format_%[1]s F;
  for (int u = 0; u < F::UNITS; u++)
    for (int q = 0; q < 4; q++) {
      int n = 0;
      F::decode(tile + 64 * F::VECTORS * u + 16 * q, [&](int j, ifl_codes c) {
        memcpy(codes + 64 * (F::QUADS * u + j) + 16 * q, c.x, 16);
        order[F::QUADS * u + n++] = (uint8_t)j;
      });
    }
}
`

// TestCUDAFormats: the CUDA C of every block type decodes random tile-blocks to their
// weights, four code vectors after the other: kernels load the activations of four at once.
func TestCUDAFormats(t *testing.T) {
	t.Parallel()
	if _, err := exec.LookPath("g++"); err != nil {
		t.Skip("g++ is missing: the emulation of CUDA is C++")
	}
	cuda, err := LoadCUDA()
	if err != nil {
		t.Fatal(err)
	}
	text := "#include \"cuda_emu.hpp\"\n#include \"ifl_codes.cuh\"\n"
	types := slices.Sorted(maps.Keys(cuda.formats))
	for _, dt := range types {
		c, err := cuda.Format(dt)
		if err != nil {
			t.Fatal(err)
		}
		text += c + fmt.Sprintf(formatText, dt)
	}
	dir := t.TempDir()
	for _, files := range []map[string]string{CUDAHeaders(), CUDAEmulation(), {"formats.cpp": text}} {
		for name, text := range files {
			writeFile(t, filepath.Join(dir, name), text)
		}
	}
	lib := filepath.Join(dir, "formats.so")
	cc := exec.Command("g++", "-std=c++20", "-O1", "-fPIC", "-shared", "-I"+dir, filepath.Join(dir, "formats.cpp"), filepath.Join(dir, "fibers.cpp"), "-o", lib)
	if out, err := cc.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	handle, err := purego.Dlopen(lib, purego.RTLD_NOW|purego.RTLD_LOCAL)
	if err != nil {
		t.Fatal(err)
	}
	rng := rand.New(rand.NewPCG(irtest.Seed(t), 2))
	for _, dt := range types {
		var decode func(tile, codes, order *byte)
		purego.RegisterLibFunc(&decode, handle, "decode_"+dt.String())
		m := randomMatrix(rng, dt, 16, dt.Block())
		codes, order := make([]byte, 16*dt.Block()), make([]byte, dt.Block()/4)
		decode(&m.packed[0], &codes[0], &order[0])
		checkFormat(t, cuda, dt, m, codes, order)
	}
}

// checkFormat compares the codes of a tile-block with the weights of its matrix.
func checkFormat(t *testing.T, cuda *CUDACatalog, dt tensor.DType, m *matrix, codes, order []byte) {
	f, err := cuda.formatOf(dt)
	if err != nil {
		t.Fatal(err)
	}
	for i, j := range order {
		if at := i % min(4, f.Quads); int(order[i-at])%4 != 0 || int(j) != int(order[i-at])+at {
			t.Errorf("%s: a unit's code vectors come in the order %d, want fours in order", dt, order[:f.Quads])
			return
		}
	}
	at := f.CodeBytes
	for row := range 16 {
		scale, base := numbersOf(dt, m.packed[at:], row)
		for col := range m.k {
			code := float64(codes[64*(col/4)+4*row+col%4])
			if !tensor.HasBase(dt) {
				code -= 128
			}
			if got, want := base+scale*code, m.value[row*m.k+col]; got != want {
				t.Errorf("%s: row %d, column %d: decoded %g, want %g", dt, row, col, got, want)
				return
			}
		}
	}
}

// numbersOf returns the scale and the base of a row: the numbers of a tile-block, which
// begin with the scales.
func numbersOf(dt tensor.DType, numbers []byte, row int) (scale, base float64) {
	half := func(i int) float64 { return float64(tensor.F16ToF32(binary.LittleEndian.Uint16(numbers[2*i:]))) }
	if dt.ByteScale() { // bits 7 to 14 of an f16 number, times 2⁻⁸
		return math.Ldexp(float64(tensor.F16ToF32(uint16(numbers[row])<<7)), -8), 0
	}
	if tensor.HasBase(dt) {
		base = half(16 + row)
	}
	return half(row), base
}
