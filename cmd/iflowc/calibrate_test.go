package main

import (
	"bytes"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/demotest"
	"github.com/iflowc/iflowc/codegen/pack"
	"github.com/iflowc/iflowc/runtime/artifact/calibration"
	"github.com/iflowc/iflowc/spec/checkpoint"
)

// TestCalibrate compares what calibration says of the first layer's projections
// with their inputs' definition: the mean squares of the normalized embeddings
// of the text's tokens.
func TestCalibrate(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin := demo(t)
	file, out := filepath.Join(t.TempDir(), "text"), filepath.Join(t.TempDir(), "importance")
	text := strings.Repeat("A compiler reads a text and writes another. ", 20)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	var said struct{ Tokens, Matrices int }
	decode(t, call(t, nil, bin, "calibrate", file, "-o", out, "--context", "32", "--threads", "2", "--json").succeed(t), &said)
	measured, err := pack.ReadCalibration(out)
	if err != nil {
		t.Fatal(err)
	}
	const layers, matrices = 7, 7
	const heads = 4
	rows := float32(0)
	for _, n := range measured.Scores {
		rows += n
	}
	if lo, hi, ok := measured.ScoreRange(); rows != float32(said.Tokens*heads*layers) || !ok || lo >= hi {
		t.Errorf("scores of %v rows from %v to %v, expected %d rows", rows, lo, hi, said.Tokens*heads*layers)
	}
	if len(measured.Importance) != said.Matrices || len(measured.Importance) != layers*matrices+1 {
		t.Errorf("%d matrices, %d said; expected %d in each of %d layers and the head", len(measured.Importance), said.Matrices, matrices, layers)
	}
	var tokens struct{ IDs []int }
	decode(t, call(t, nil, bin, "tokenize", text, "--no-special").succeed(t), &tokens)
	if said.Tokens != len(tokens.IDs) {
		t.Errorf("%d tokens, expected %d", said.Tokens, len(tokens.IDs))
	}
	want := firstInputs(t, tokens.IDs)
	for _, name := range []string{"q", "k", "v"} {
		got := measured.Importance["model.layers.0.self_attn."+name+"_proj.weight"]
		if len(got) != len(want) {
			t.Fatalf("%s: %d columns, expected %d", name, len(got), len(want))
		}
		for c, w := range want {
			if math.Abs(float64(got[c])-w) > 1e-4*w+1e-6 {
				t.Fatalf("%s: column %d has mean square %v, expected %v", name, c, got[c], w)
			}
		}
	}
}

// TestCalibrationBits: statistics are the same bytes for any number of threads, whose
// parts are added, and on AVX2 and AVX-512. The last window is so short that every thread
// packs its rows.
func TestCalibrationBits(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin, dir := forSets(t, drawnType(t)), t.TempDir()
	file := filepath.Join(dir, "text")
	if err := os.WriteFile(file, []byte(strings.Repeat("Three threads add what one would add. ", 30)), 0o600); err != nil {
		t.Fatal(err)
	}
	var first []byte
	for _, how := range []string{"1 avx512", "3 avx512", "2 avx2"} {
		threads, isa, _ := strings.Cut(how, " ")
		out := filepath.Join(dir, how)
		got := call(t, nil, bin, "calibrate", file, "-o", out, "--context", "90", "--threads", threads, "--isa", isa)
		if got.code != 0 && strings.Contains(got.stderr, "this CPU lacks") {
			t.Skip(got.stderr)
		}
		got.succeed(t)
		data, err := os.ReadFile(out)
		if err != nil {
			t.Fatal(err)
		}
		if first == nil {
			first = data
		}
		if !bytes.Equal(data, first) {
			t.Errorf("%s: other statistics than with one thread on AVX-512", how)
		}
	}
}

// TestCompileCalibrates: compile calibrates for coarse types unless told otherwise, and
// says so.
func TestCompileCalibrates(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	dir := t.TempDir()
	weights := func(name string, said bool, args ...string) string {
		t.Helper()
		bin := filepath.Join(dir, name)
		got := iflowc(t, append([]string{"compile", demotest.Short(t), "--isa", "portable", "-o", bin}, args...)...)
		got.succeed(t)
		if notes := strings.Contains(got.stderr, "note: calibrated on iflowc's text"); notes != said {
			t.Errorf("%s: says that it calibrates: %v; %q", name, notes, got.stderr)
		}
		data, err := os.ReadFile(bin + ".weights")
		if err != nil {
			t.Fatal(err)
		}
		return string(data)
	}
	text := filepath.Join(dir, "text")
	if err := os.WriteFile(text, []byte(strings.Repeat("Another text has other statistics. ", 99)), 0o600); err != nil {
		t.Fatal(err)
	}
	auto := weights("auto", true, "--quant", "q3")
	always := weights("always", false, "--quant", "q3", "--calibrate", "always")
	none := weights("none", false, "--quant", "q3", "--calibrate", "none")
	own := weights("own", false, "--quant", "q3", "--calibrate", text)
	if auto != always || auto == none || auto == own || none == own {
		t.Errorf("auto is always: %v; none: %v; a text: %v", auto == always, auto == none, auto == own)
	}
	weights("fine", false, "--quant", "q8")
	got := iflowc(t, "compile", demoSpec, "--quant", "q4", "--calibrate", "sometimes", "-o", filepath.Join(dir, "x"))
	if got.code != 2 || !strings.Contains(got.stderr, "expected none, auto, always or a text file") {
		t.Errorf("--calibrate sometimes: exit %d, %q", got.code, got.stderr)
	}
}

// TestCalibrateFeedback: the products of columns are those of the first layer's
// inputs, row by row, and their diagonal is what the importance says.
func TestCalibrateFeedback(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin := demo(t)
	file, out := filepath.Join(t.TempDir(), "text"), filepath.Join(t.TempDir(), "importance")
	text := strings.Repeat("Every column of a matrix meets one number of its input. ", 20)
	if err := os.WriteFile(file, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	call(t, nil, bin, "calibrate", file, "-o", out, "--context", "32", "--chunks", "4", "--threads", "2").succeed(t)
	var tokens struct{ IDs []int }
	decode(t, call(t, nil, bin, "tokenize", text, "--no-special").succeed(t), &tokens)
	rows := firstRows(t, tokens.IDs[:4*32])
	set, err := checkpoint.Open(out)
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	const name = "model.layers.0.self_attn.q_proj.weight model.layers.0.self_attn.k_proj.weight model.layers.0.self_attn.v_proj.weight.hessian"
	info, _ := set.Lookup(name)
	sums, err := set.Float32(name)
	if err != nil || len(info.Shape) != 4 {
		t.Fatal(info.Shape, err)
	}
	n, width := len(rows[0]), calibration.WidthOf(info.Shape[1])
	for i := range n {
		for j := i; j < min(n, (i/width+1)*width); j++ {
			want, size := 0.0, 0.0
			for _, x := range rows {
				want += x[i] * x[j]
				size += math.Abs(x[i] * x[j])
			}
			if got := float64(sums[i/width*calibration.SquareLen(width)+calibration.Place(width, i%width, j%width)]); math.Abs(got-want) > 1e-4*size+1e-6 {
				t.Fatalf("columns %d and %d: products sum to %v, expected %v", i, j, got, want)
			}
		}
	}
}

// firstInputs is the mean square of each column of rmsnorm(embedding) over the
// demo's tokens. Without a start token every token counts once.
func firstInputs(t *testing.T, ids []int) []float64 {
	t.Helper()
	rows := firstRows(t, ids)
	mean := make([]float64, len(rows[0]))
	for _, row := range rows {
		for c, x := range row {
			mean[c] += x * x / float64(len(ids))
		}
	}
	return mean
}

// firstRows are the rows rmsnorm(embedding) of the demo's tokens.
func firstRows(t *testing.T, ids []int) [][]float64 {
	t.Helper()
	set, err := checkpoint.Open(filepath.Join("..", "..", "models", "demo"))
	if err != nil {
		t.Fatal(err)
	}
	defer set.Close()
	embed, err := set.Float32("model.embed_tokens.weight")
	norm, err2 := set.Float32("model.layers.0.input_layernorm.weight")
	if err != nil || err2 != nil {
		t.Fatal(err, err2)
	}
	n := len(norm)
	rows := make([][]float64, len(ids))
	for i, id := range ids {
		row, sum := embed[id*n:(id+1)*n], 0.0
		for _, x := range row {
			sum += float64(x) * float64(x)
		}
		inv := math.Sqrt(1 / (sum/float64(n) + 1e-5))
		for c, x := range row {
			rows[i] = append(rows[i], float64(x)*inv*float64(norm[c]))
		}
	}
	return rows
}
