//go:build unix

package cpu_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
)

func weights(t *testing.T, salt byte) []byte {
	t.Helper()
	r, err := device.Map(1024, "weights")
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(r.Free)
	r.Bytes[0] = salt
	return r.Bytes
}

func config(w []byte) *device.Config {
	return &device.Config{
		Threads: 1, Weights: w, Pages: 4, MaxTokens: 16, MaxOutRows: 2, MaxSeqs: 2,
		Dispatch: make([]byte, device.DispatchRows),
		Outputs:  []device.Array{{Rows: 2, Cols: devicetest.Cols}, {Rows: 16, Cols: devicetest.Hidden}},
	}
}

// openFake loads the fake model from memory, as a compiled binary does.
func openFake(t *testing.T) *cpu.Library {
	t.Helper()
	data, err := os.ReadFile(devicetest.Build(t))
	if err != nil {
		t.Fatal(err)
	}
	lib, err := cpu.Open("portable", string(data))
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func TestOneStep(t *testing.T) {
	t.Parallel()
	cfg := config(weights(t, 9))
	ctx, err := openFake(t).Start(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer ctx.Close()
	s, err := device.NewStep(cfg)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Free()
	prompt := []int32{5, 6, 8}
	for i, id := range prompt {
		s.ID[i], s.Pos[i], s.Seq[i], s.Slot[i] = id, int32(i), 0, int32(i)
	}
	s.First[1], s.PageAt[1], s.Page[0], s.OutRow[0] = 3, 1, 3, 2
	s.Tokens, s.OutRows, s.Seqs = 3, 1, 1
	if err := ctx.Submit(s)(); err != nil {
		t.Fatal(err)
	}
	if got, want := s.Out[0][:devicetest.Vocab], devicetest.Logits(prompt, 9); !slices.Equal(got, want) {
		t.Errorf("logits %v, expected %v", got[:4], want[:4])
	}
	s.ID[0] = devicetest.Vocab
	if err := ctx.Submit(s)(); err == nil || !strings.Contains(err.Error(), "out of range") {
		t.Errorf("an id out of range: error %v", err)
	}
	s.Tokens = 17
	if err := ctx.Submit(s)(); err == nil || !strings.Contains(err.Error(), "exceeds the model's maximum") {
		t.Errorf("too many tokens: error %v", err)
	}
}

// TestTwoLibraries checks that a second, different library does not resolve to the
// first.
func TestTwoLibraries(t *testing.T) {
	t.Parallel()
	a, b := openFake(t), openFake(t)
	if a.Info().PageBytes != 512 || b.Info().PageBytes != 512 {
		t.Error("a library returned a wrong size")
	}
}

func TestConfigErrors(t *testing.T) {
	t.Parallel()
	lib := openFake(t)
	cfg := config(weights(t, 0))
	cfg.Threads = 0
	if _, err := lib.Start(cfg); err == nil || !strings.Contains(err.Error(), "threads") {
		t.Errorf("no threads: error %v", err)
	}
	cfg = config(nil)
	if _, err := lib.Start(cfg); err == nil || !strings.Contains(err.Error(), "refused") {
		t.Errorf("no weights: error %v", err)
	}
}

func TestNotALibrary(t *testing.T) {
	t.Parallel()
	if _, err := cpu.Open("portable", "not an ELF file"); err == nil || !strings.Contains(err.Error(), "portable") {
		t.Errorf("error %v, expected one naming the instruction set", err)
	}
}

// TestLeavesNoFile checks that loading from memory leaves no file behind.
func TestLeavesNoFile(t *testing.T) {
	dir := t.TempDir()
	t.Setenv("IFLOWC_CACHE", dir)
	openFake(t)
	if left, _ := filepath.Glob(filepath.Join(dir, "model-*")); len(left) != 0 {
		t.Errorf("left behind: %v", left)
	}
}

func TestDefaultThreads(t *testing.T) {
	t.Parallel()
	n := cpu.DefaultThreads()
	if n < 1 || n > 8192 {
		t.Errorf("%d threads", n)
	}
	if p := cpu.Pins(n); p != nil && len(p) != n {
		t.Errorf("pins %v for %d threads", p, n)
	}
}

// compileRun compiles and runs a C program that includes the ABI header, and returns
// its output.
func compileRun(t *testing.T, source string) string {
	t.Helper()
	cc, err := exec.LookPath("cc")
	if err != nil {
		t.Skip("no C compiler named cc")
	}
	dir := t.TempDir()
	for name, text := range map[string][]byte{"ifl_step.h": devicetest.Header(t), "layout.c": []byte(source)} {
		if err := os.WriteFile(filepath.Join(dir, name), text, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	cmd := exec.Command(cc, "-o", "layout", "layout.c")
	cmd.Dir = dir
	if out, err := cmd.CombinedOutput(); err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	out, err := exec.Command(filepath.Join(dir, "layout")).Output()
	if err != nil {
		t.Fatal(err)
	}
	return string(out)
}
