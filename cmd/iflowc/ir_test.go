package main

import (
	"bytes"
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/compiler"
	"github.com/iflowc/iflowc/passes"
)

// TestIRStages: ir prints the lowered module, the module after a pass, all of
// them to files, and what each pass changed.
func TestIRStages(t *testing.T) {
	t.Parallel()
	lowered := iflowc(t, "ir", demoSpec).succeed(t)
	if !strings.HasPrefix(lowered, "module ") || strings.Contains(lowered, "fuse") {
		t.Errorf("as lowered: %.80q", lowered)
	}
	fused := iflowc(t, "ir", demoSpec, "--after", "fuse-regions").succeed(t)
	if !strings.Contains(fused, "fuse") {
		t.Error("no region after fuse-regions")
	}
	dir := t.TempDir()
	iflowc(t, "ir", demoSpec, "--all", dir).succeed(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.ir"))
	if err != nil || len(files) != len(passes.Pipeline)+1 {
		t.Fatalf("%d stages, want lower and %v (%v)", len(files), passes.Names(), err)
	}
	if first, err := os.ReadFile(files[0]); err != nil || string(first) != lowered {
		t.Errorf("%s is not what ir prints (%v)", files[0], err)
	}
	diff := iflowc(t, "ir", demoSpec, "--diff").succeed(t)
	for _, want := range append(passes.Names(), "lower", "\n+ ", "\n- ") {
		if !strings.Contains(diff, want) {
			t.Errorf("no %q in the difference", want)
		}
	}
}

// TestOptRoundTrip: the passes on IR text make what they make on the model.
func TestOptRoundTrip(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	iflowc(t, "ir", demoSpec, "--all", dir).succeed(t)
	files, err := filepath.Glob(filepath.Join(dir, "*.ir"))
	if err != nil || len(files) == 0 {
		t.Fatal(files, err)
	}
	for i, p := range passes.Names() {
		got := iflowc(t, "opt", files[i], "--passes", p).succeed(t)
		want, err := os.ReadFile(files[i+1])
		if err != nil {
			t.Fatal(err)
		}
		if got != string(want) {
			t.Errorf("%s on %s differs from %s:\n%.1500s", p, files[i], files[i+1], lineDiff(string(want), got))
		}
	}
}

// TestDestinations: a result that cannot be written is an error before the work,
// which the missing specification stands for.
func TestDestinations(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	below := filepath.Join(file, "x.svg")
	for _, args := range [][]string{
		{"compile", demoSpec, "-o", below}, {"compile", demoSpec, "-o", filepath.Dir(file)}, {"compile", demoSpec, "-o", file, "--keep-sources", below},
		{"profile", "no such model", "--plot", below}, {"profile", demoSpec, "-o", below}, {"ir", "no such model", "--all", below}, {"view", "no such model", "-o", below},
	} {
		flag := args[len(args)-2]
		if got := iflowc(t, args...); got.code != 2 || !strings.HasPrefix(got.stderr, "iflowc: "+flag+" ") {
			t.Errorf("%v: exit %d, %s", args, got.code, got.stderr)
		}
	}
}

// TestOptNoPasses: an empty list of passes runs none; without the flag all run.
func TestOptNoPasses(t *testing.T) {
	t.Parallel()
	text := iflowc(t, "ir", demoSpec).succeed(t)
	file := filepath.Join(t.TempDir(), "demo.ir")
	if err := os.WriteFile(file, []byte(text), 0o644); err != nil {
		t.Fatal(err)
	}
	for _, none := range []string{"--passes=", "--passes= ,"} {
		if got := iflowc(t, "opt", file, none).succeed(t); got != text {
			t.Errorf("%q changes the module:\n%.1500s", none, lineDiff(text, got))
		}
	}
	if got := iflowc(t, "opt", file).succeed(t); got == text {
		t.Error("without --passes the module stays as it was")
	}
	for _, args := range [][]string{{"ir", demoSpec, "--skip="}, {"compile", demoSpec, "--isa="}, {"profile", demoSpec, "--rows="}} {
		if got := iflowc(t, args...); got.code != 2 || !strings.Contains(got.stderr, "the list is empty") {
			t.Errorf("%v: exit %d, %s", args, got.code, got.stderr)
		}
	}
}

// TestCheckSubcommand: check answers from the headers, for people and for scripts.
func TestCheckSubcommand(t *testing.T) {
	t.Parallel()
	var v verdict
	decode(t, iflowc(t, "check", demoSpec, "--json").succeed(t), &v)
	if !v.Supported || v.Name != "demo" || v.Network != "decoder_only" || v.Parameters < 1e5 || v.WeightBytes < v.Parameters || v.Context == 0 || v.StateBytes == 0 {
		t.Errorf("%+v", v)
	}
	if out := iflowc(t, "check", demoSpec).succeed(t); !strings.Contains(out, "demo: supported") || !strings.Contains(out, "on cpu") {
		t.Errorf("%q", out)
	}
	var split verdict
	decode(t, iflowc(t, "check", demoSpec, "--devices", "0;1", "--json").succeed(t), &split)
	if len(v.Devices) != 1 || len(split.Devices) != 2 || split.WeightBytes <= v.WeightBytes || split.StateBytes != v.StateBytes { // the head is the embedding, which both ends need
		t.Fatalf("on one device %+v, on two %+v", v, split)
	}
	for _, d := range append(v.Devices, split.Devices...) {
		if d.WeightBytes == 0 || d.StateBytes == 0 || d.ActivationBytes == 0 || d.Bytes != d.WeightBytes+d.StateBytes+d.ActivationBytes {
			t.Errorf("%+v", d)
		}
	}
}

// TestImport: a derived specification loads again and means the same model.
func TestImport(t *testing.T) {
	t.Parallel()
	file := filepath.Join(t.TempDir(), "model.yaml")
	folder, err := filepath.Abs("../../models/demo")
	if err != nil {
		t.Fatal(err)
	}
	iflowc(t, "import", folder, "-o", file).succeed(t)
	body := func(text string) string { // without the name, which is the folder's or the file's
		_, rest, _ := strings.Cut(text, "\n")
		return rest
	}
	want := iflowc(t, "ir", demoSpec).succeed(t)
	if got := iflowc(t, "ir", file).succeed(t); body(got) != body(want) {
		t.Errorf("another module:\n%.1500s", lineDiff(want, got))
	}
	// Beside the model's files it needs no model_dir.
	copied := copyModel(t, nil)
	iflowc(t, "import", copied, "-o", filepath.Join(copied, "model.yaml")).succeed(t)
	if text, err := os.ReadFile(filepath.Join(copied, "model.yaml")); err != nil || strings.Contains(string(text), "model_dir") {
		t.Errorf("%v: %s", err, text)
	}
	iflowc(t, "check", filepath.Join(copied, "model.yaml")).succeed(t)
	// A folder whose tensors do not fit makes none.
	broken := copyModel(t, func(name string, data []byte) []byte {
		return bytes.ReplaceAll(data, []byte(`"num_hidden_layers": 7`), []byte(`"num_hidden_layers": 8`))
	})
	if o := iflowc(t, "import", broken); o.code != exitUsage || o.stdout != "" || !strings.Contains(o.stderr, "tensor dec.7.") {
		t.Errorf("import of a folder that lacks a layer: %d, %s", o.code, o.stderr)
	}
}

// TestExplain: explain names each matmul's candidates and where the choice is
// from.
func TestExplain(t *testing.T) {
	t.Parallel()
	out := iflowc(t, "explain", demoSpec, "--quant", "q4_b32").succeed(t)
	for _, want := range []string{"roofline", "q4_b32", "gemv", "gemm", "rows on", "sums"} {
		if !strings.Contains(out, want) {
			t.Errorf("no %q in\n%s", want, out)
		}
	}
}

// TestCompileAgain: an unchanged model is made again from the cache, with the
// same bytes, and the compiler.Result says where the files are.
func TestCompileAgain(t *testing.T) {
	t.Parallel()
	first, dir := demo(t), t.TempDir()
	out := iflowc(t, append([]string{"compile", "-o", filepath.Join(dir, "again"), "--json"}, demoFlags...)...).succeed(t)
	var s compiler.Result
	if err := json.Unmarshal([]byte(out), &s); err != nil {
		t.Fatal(err)
	}
	if s.Regions > 5 || s.Regions == 0 {
		t.Errorf("%d regions a layer, at most five wanted", s.Regions)
	}
	for from, to := range map[string]string{first: s.Binary, first + ".weights": s.Weights} {
		a, errA := os.ReadFile(from)
		b, errB := os.ReadFile(to)
		if errA != nil || errB != nil || string(a) != string(b) {
			t.Errorf("%s and %s differ (%v, %v)", from, to, errA, errB)
		}
	}
	if left, _ := filepath.Glob(filepath.Join(dir, "*")); len(left) != 2 {
		t.Errorf("left behind: %v", left)
	}
}

// TestEmbeddedWeights: a binary with its weights inside needs no file beside
// it.
func TestEmbeddedWeights(t *testing.T) {
	t.Parallel()
	bin := demo(t)
	one := filepath.Join(t.TempDir(), "one")
	iflowc(t, append([]string{"compile", "--embed-weights", "-o", one}, demoFlags...)...).succeed(t)
	if _, err := os.Stat(one + ".weights"); err == nil {
		t.Error("weights beside the binary")
	}
	args := []string{"logits", "--ids", "1,2,3"}
	if a, b := call(t, nil, one, args...).succeed(t), call(t, nil, bin, args...).succeed(t); a != b {
		t.Errorf("other logits than with weights beside: %.100q, %.100q", a, b)
	}
}

// TestEmitSources: what was generated can be read, and compiled elsewhere.
func TestEmitSources(t *testing.T) {
	t.Parallel()
	dir := filepath.Join(t.TempDir(), "src")
	iflowc(t, "compile", demoSpec, "--quant", "q4_b32", "--emit", "sources", "-o", dir).succeed(t)
	for _, f := range []string{"step.c", "pool.c", "model.ir", "include/ifl_step.h"} {
		if st, err := os.Stat(filepath.Join(dir, f)); err != nil || st.Size() == 0 {
			t.Errorf("%s: %v", f, err)
		}
	}
}

// TestRun: run compiles and generates.
func TestRun(t *testing.T) {
	t.Parallel()
	want := call(t, nil, demo(t), "generate", "-p", "Once upon a time", "-n", "8", "--temp", "0").succeed(t)
	got := iflowc(t, append([]string{"run", "-p", "Once upon a time", "-n", "8", "--temp", "0"}, demoFlags...)...).succeed(t)
	if got != want {
		t.Errorf("run says %q, the binary %q", got, want)
	}
	var doc struct {
		Tokens []int `json:"tokens"`
	}
	decode(t, iflowc(t, append([]string{"run", "--ids", "1,2,3", "-n", "4", "--ignore-eos", "--json"}, demoFlags...)...).succeed(t), &doc)
	if len(doc.Tokens) != 4 {
		t.Errorf("%d tokens, want 4", len(doc.Tokens))
	}
}
