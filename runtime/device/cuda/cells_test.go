//go:build unix

package cuda

import (
	"fmt"
	"math/rand/v2"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// cellStep returns a model with fixed-size states alone, and a step of two sequences: 20
// tokens from the beginning, and 2 after 31 rows.
func cellStep(t *testing.T) (*model, *device.Step) {
	t.Helper()
	cfg := device.Config{Threads: 1, Pages: 1, Cells: 4, MaxCells: 8, MaxTokens: 24, MaxOutRows: 2, MaxSeqs: 3, MaskWords: 1}
	s, err := device.NewStep(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	m := &model{Device: &Device{Plan: &manifest.CUDA{Graphs: make([][]manifest.CUDALaunch, 1), Cross: -1}, Manifest: &manifest.Manifest{Graphs: make([]manifest.Graph, 1)}}, cfg: cfg, celled: true}
	s.Tokens, s.Seqs = 22, 2
	for i := range s.Tokens {
		if s.Slot[i] = int32(i); i >= 20 {
			s.Seq[i], s.Slot[i] = 1, int32(i+11)
		}
	}
	copy(s.First, []int32{0, 20, 22})
	copy(s.Past, []int32{0, 31})
	copy(s.CellAt, []int32{0, 2, 4})
	copy(s.CellFrom, []int32{0, 1})
	copy(s.Cell, []int32{-1, 3, 0, 1})
	return m, s
}

// TestCellCheck checks which cells of a step are accepted.
func TestCellCheck(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name string
		edit func(s *device.Step)
		ok   bool
	}{
		{"a good step", func(*device.Step) {}, true},
		{"no cell is kept of a new sequence", func(s *device.Step) { s.Cell[1] = -1 }, true},
		{"a cell of a new row is not kept", func(s *device.Step) { s.Cell[3] = -1 }, true},
		{"more cells than needed", func(s *device.Step) { s.CellAt[2] = 8 }, true},
		{"cells from the beginning", func(s *device.Step) { s.CellFrom[1], s.CellAt[2] = 0, 5 }, true},
		{"a tree", func(s *device.Step) { s.Masked, s.Mask[20], s.Mask[21] = true, 1, 3 }, true},
		{"a cell of a tree is not kept", func(s *device.Step) { s.Masked, s.Mask[20], s.Mask[21], s.Cell[3] = true, 1, 3, -1 }, false},
		{"a sequence without tokens", func(s *device.Step) { s.Seqs, s.First[3], s.CellAt[3] = 3, 22, 1<<31-1 }, true},
		{"a cell with rows of earlier steps is not kept", func(s *device.Step) { s.Cell[2] = -1 }, false},
		{"a cell that is not there", func(s *device.Step) { s.Cell[0] = 4 }, false},
		{"a cell below -1", func(s *device.Step) { s.Cell[1] = -2 }, false},
		{"too few cells", func(s *device.Step) { s.CellAt[2] = 3 }, false},
		{"cells that begin below 0", func(s *device.Step) { s.CellAt[0] = -1 }, false},
		{"cells out of order", func(s *device.Step) { s.CellAt[2] = -1 << 31 }, false},
		{"cells past the end of the list", func(s *device.Step) { s.CellAt[2] = 9 }, false},
		{"a first cell below 0", func(s *device.Step) { s.CellFrom[1] = -1 }, false},
		{"a first cell after the last row", func(s *device.Step) { s.CellFrom[1] = 3 }, false},
		{"a first cell without rows of earlier steps", func(s *device.Step) { s.CellFrom[1], s.CellAt[2] = 2, 3 }, false},
		{"a row that is left out", func(s *device.Step) { s.Slot[21] = 33 }, false},
		{"a row before the first cell", func(s *device.Step) { s.Slot[20] = 3 }, false},
		{"most rows before the step", func(s *device.Step) { s.Past[1] = 1<<31 - 1 }, false},
		{"no cells", func(s *device.Step) { s.CellAt = nil }, false},
	} {
		m, s := cellStep(t)
		c.edit(s)
		if err := m.check(s); (err == nil) != c.ok {
			t.Errorf("%s: %v", c.name, err)
		}
	}
}

// checkProgram is a C program with ifl_check of a model with fixed-size states alone. It
// prints whether it accepts each of the steps that follow in the file.
const checkProgram = `#define IFL_CELLS 1
#define IFL_RANKS 1
#include <stdio.h>
#include "ifl_region.h"
#include "ifl_tables.h"
#undef IFL_RANKS
static void graph(ifl_ctx *c, const ifl_step *s, int tid) { (void)c, (void)s, (void)tid; }
static void (*const ifl_graphs[])(ifl_ctx *, const ifl_step *, int) = {graph};
static const ifl_fixed ifl_fixed_states[] = {{2, 64, 16}};
#include "ifl_main.h"
static void check(const int32_t *v) {
  const ifl_ctx c = {.pages = 1, .cells = 4, .max_tokens = 24, .max_out_rows = 2, .max_seqs = 3};
  const ifl_step s = {.abi = IFL_ABI, .tokens = 22, .seqs = v[0], .id = v + 1, .pos = v + 25, .seq = v + 49, .slot = v + 73, .first = v + 97,
    .past = v + 101, .cell_at = v + 104, .cell_from = v + 108, .cell = v + 111};
  putchar(ifl_check(&c, &s) ? '-' : '+');
}
int main(void) {
`

// TestSameChecks compares check with ifl_check for random steps.
func TestSameChecks(t *testing.T) {
	t.Parallel()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler named cc")
	}
	r := rand.New(rand.NewPCG(3, 4))
	values := []int32{-1 << 31, -2, -1, 0, 1, 2, 3, 4, 15, 16, 17, 20, 22, 31, 32, 33, 47, 48, 64, 1<<31 - 1}
	var c, want strings.Builder
	c.WriteString(checkProgram)
	for range 3000 {
		m, s := cellStep(t)
		s.Seqs = 2 + r.IntN(8)/7
		lists := [][]int32{s.ID, s.Pos, s.Seq, s.Slot, s.First, s.Past, s.CellAt, s.CellFrom, s.Cell}
		for range 1 + r.IntN(3) {
			list := lists[2+r.IntN(len(lists)-2)]
			at, v := r.IntN(len(list)), values[r.IntN(len(values))]
			if &list[0] == &s.CellAt[0] {
				v = min(v, int32(len(s.Cell))) // C does not know where the list ends
			}
			list[at] = v
		}
		fmt.Fprintf(&c, "check((const int32_t[]){%d", s.Seqs)
		for _, list := range lists {
			for _, v := range list {
				fmt.Fprintf(&c, ",(int32_t)%dLL", v)
			}
		}
		c.WriteString("});\n")
		s.Tokens = 22
		if m.check(s) == nil {
			want.WriteByte('+')
		} else {
			want.WriteByte('-')
		}
	}
	c.WriteString("}\n")
	dir := t.TempDir()
	file := filepath.Join(dir, "check.c")
	if err := os.WriteFile(file, []byte(c.String()), 0o644); err != nil {
		t.Fatal(err)
	}
	build := exec.Command(cc, "-O0", "-ffunction-sections", "-Wl,--gc-sections", "-I", "../../../templates/include", "-o", filepath.Join(dir, "check"), file, "-lm")
	if out, err := build.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%.2000s", err, out)
	}
	got, err := exec.Command(filepath.Join(dir, "check")).Output()
	if err != nil || string(got) != want.String() {
		t.Errorf("C: %.200s\nGo: %.200s\n%v", got, want.String(), err)
	}
	if n := strings.Count(want.String(), "+"); n < 300 || n > 2700 {
		t.Errorf("%d of 3000 steps are good", n)
	}
}
