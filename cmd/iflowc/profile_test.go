package main

import (
	"bufio"
	"bytes"
	"encoding/json"
	"flag"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// TestProfile measures the demo model's shapes for real, briefly, and uses what
// it wrote.
func TestProfile(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	dir := t.TempDir()
	file, plot := filepath.Join(dir, "demo.profile"), filepath.Join(dir, "demo.png")
	args := []string{"profile", demoSpec, "--quant", "q8_b32t2", "--threads", "1", "--isa", "portable", "--rows", "1-2,16", "--budget", "50ms", "-o", file}
	out := iflowc(t, append(args, "--plot", plot)...).succeed(t)
	for _, want := range []string{"read bandwidth", "q8_b32t2", "flat_gemm", "M1", "regret", "written to"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
	p, err := dispatch.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if p.Machine == nil || p.Machine.Threads != 1 || len(p.Machine.Kernels) != 64 || p.Machine.ReadGBs[0] <= 0 {
		t.Errorf("machine %+v", p.Machine)
	}
	for _, s := range p.Shapes {
		if m := s.Measured; m == nil || len(m.Rows) != 3 || m.Impls[1].Us[0] <= 0 || m.Impls[1].Low[0] > m.Impls[1].Us[0] || len(s.Rules) == 0 {
			t.Errorf("[%d, %d]: %+v", s.N, s.K, m)
		}
	}
	if picture, err := os.ReadFile(plot); err != nil || !bytes.HasPrefix(picture, []byte("\x89PNG")) {
		t.Errorf("plot: %v", err)
	}
	explained := iflowc(t, "explain", demoSpec, "--quant", "q8_b32t2", "--profile", file).succeed(t)
	if !strings.Contains(explained, "measured:") || strings.Contains(explained, "roofline") {
		t.Errorf("explain with the profile:\n%s", explained)
	}
	// Another type joins the file.
	var joined dispatch.Profile
	args = append(args, "--types", "f16", "--json")
	if err := json.Unmarshal([]byte(iflowc(t, args...).succeed(t)), &joined); err != nil || len(joined.Shapes) != len(p.Shapes) {
		t.Errorf("%d shapes of f16, %v", len(joined.Shapes), err)
	}
	if both, err := dispatch.Read(file); err != nil || len(both.Shapes) != 2*len(p.Shapes) {
		t.Errorf("after another type %d shapes, %v", len(both.Shapes), err)
	}
}

func TestProfileErrors(t *testing.T) {
	t.Parallel()
	for _, c := range []struct{ args, words string }{
		{"--rows 0-3", "--rows;0-3"},
		{"--rows 8-4", "8-4"},
		{"--rows many", "many"},
		{"--types q9", "q9"},
		{"--threads 5000", "5000"},
		{"--isa sse9", "sse9"},
		{"--plot times.pdf", "--plot;times.pdf;.svg or .png"},
	} {
		wantError(t, iflowc(t, append([]string{"profile", demoSpec}, strings.Fields(c.args)...)...), exitUsage, strings.Split(c.words, ";")...)
	}
}

// TestExplainText is the text of explain for a measured shape, one that was
// not, and two matmuls of one shape.
func TestExplainText(t *testing.T) {
	t.Parallel()
	cat, err := templates.Load()
	if err != nil {
		t.Fatal(err)
	}
	impls := []string{"gemv", "flat_gemm", "gemm"}
	matmuls := []manifest.Matmul{
		{Name: "decode.wqkv", N: 960, K: 576, DType: "q4_b64", Impls: impls, Rows: []int{1, 2, 128}},
		{Name: "decode.wo", N: 576, K: 576, DType: "f16", Impls: impls, Rows: []int{1, 2, -1}},
		{Name: "verify.wqkv", N: 960, K: 576, DType: "q4_b64", Impls: impls, Rows: []int{1, 2, 128}},
	}
	p := &dispatch.Profile{Format: dispatch.Format, Machine: &dispatch.Machine{ReadGBs: []float64{34.5, 33.9}}, Shapes: []dispatch.Shape{{
		N: 960, K: 576, DType: "q4_b64", Rules: []dispatch.Rule{{Rows: 1, Impl: "gemv"}, {Rows: 3, Impl: "flat_gemm"}, {Rows: 64, Impl: "gemm"}},
		Measured: &dispatch.Measurement{Rows: []int{1, 2, 3, 64}, M1: 3, M2: 64, Regret: 0.0123, Winner: []int{0, 0, 1, 2}, Impls: []dispatch.Time{
			{Impl: "gemv", Us: []float64{7.3, 8, 9, 0}, Low: []float64{7.2, 7.9, 8.8, 0}, High: []float64{7.4, 8.2, 9.1, 0}, Samples: []int{9, 9, 9, 0}},
			{Impl: "flat_gemm", Us: []float64{7.4, 8.1, 8, 145}, Low: []float64{7.2, 8, 7.9, 144}, High: []float64{7.5, 8.2, 8.1, 146}, Samples: []int{9, 9, 9, 5}},
			{Impl: "gemm", Us: []float64{12.1, 13, 14, 138}, Low: []float64{12, 13, 14, 136}, High: []float64{12.4, 13, 14, 140}, Samples: []int{9, 9, 9, 5}},
		}},
	}}}
	var got bytes.Buffer
	if err := explain(&got, matmuls, cat, p, "profile here.json"); err != nil {
		t.Fatal(err)
	}
	golden(t, "explain.txt", got.String())
	var without bytes.Buffer
	if err := explain(&without, matmuls[1:2], cat, nil, ""); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(without.String(), "roofline") || strings.Contains(without.String(), "µs") {
		t.Errorf("without a profile:\n%s", without.String())
	}
}

var update = flag.Bool("update", false, "rewrite the golden files; read the difference")

// golden compares text with a file of testdata.
func golden(t *testing.T, name, got string) {
	t.Helper()
	path := filepath.Join("testdata", name)
	if *update {
		if err := os.WriteFile(path, []byte(got), 0o644); err != nil {
			t.Fatal(err)
		}
	}
	want, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	if diff := cmp.Diff(string(want), got); diff != "" {
		t.Errorf("differs from %s (-want +got):\n%s", path, diff)
	}
}

// TestProfileInterrupted, with the kernels of TestProfile: an interrupt ends the measurement with its exit code
// and leaves no file, whole or partial.
func TestProfileInterrupted(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	bin, err := command()
	if err != nil {
		t.Fatal(err)
	}
	dir := t.TempDir()
	cmd := exec.Command(bin, "profile", demoSpec, "--quant", "q8_b32t2", "--threads", "1", "--isa", "portable", "--rows", "1-256", "--budget", "60s", "-o", filepath.Join(dir, "demo.profile"))
	stderr, err := cmd.StderrPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	for lines := bufio.NewScanner(stderr); lines.Scan() && lines.Text() != "measuring"; {
	}
	if err := cmd.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	_ = cmd.Wait()
	if code := cmd.ProcessState.ExitCode(); code != 130 {
		t.Errorf("exit %d", code)
	}
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("left %v, %v", left, err)
	}
}
