package main

import (
	"bytes"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/demotest"
)

// copyModel copies the demo model's folder; edit may change a file's bytes, or
// leave the file out by giving nil.
func copyModel(t *testing.T, edit func(name string, data []byte) []byte) string {
	t.Helper()
	from, dir := "../../models/demo", t.TempDir()
	entries, err := os.ReadDir(from)
	if err != nil {
		t.Fatal(err)
	}
	for _, e := range entries {
		data, err := os.ReadFile(filepath.Join(from, e.Name()))
		if err != nil {
			t.Fatal(err)
		}
		if edit != nil {
			data = edit(e.Name(), data)
		}
		if data == nil {
			continue
		}
		if err := os.WriteFile(filepath.Join(dir, e.Name()), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	return dir
}

// onlyFile edits one file of a model folder.
func onlyFile(file string, edit func([]byte) []byte) func(string, []byte) []byte {
	return func(name string, data []byte) []byte {
		if name != file {
			return data
		}
		return edit(data)
	}
}

// wantError holds a failed call to its exit code and to words of its message,
// which is one line and no panic.
func wantError(t *testing.T, o outcome, code int, words ...string) {
	t.Helper()
	if o.code != code {
		t.Errorf("exit %d, want %d: %s", o.code, code, o.stderr)
	}
	for _, w := range words {
		if !strings.Contains(o.stderr, w) {
			t.Errorf("no %q in %q", w, o.stderr)
		}
	}
	if strings.Contains(o.stderr, "goroutine ") || strings.Contains(o.stderr, "bug:") {
		t.Errorf("a panic: %s", o.stderr)
	}
}

// TestWrongCalls: a wrong call ends with 2 and says what is wrong.
func TestWrongCalls(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		args  string
		words string
	}{
		{"compil models/demo.yaml", "compil"},
		{"ir " + demoSpec + " --after fuse", "--after fuse: unknown pass;fuse-regions"},
		{"ir " + demoSpec + " --skip nothing", "--skip nothing: unknown pass"},
		{"compile " + demoSpec + " --quant q9_b32", "q9_b32"},
		{"compile " + demoSpec + " --kv i3", "i3"},
		{"compile " + demoSpec + " --isa sse9", "sse9;portable"},
		{"compile " + demoSpec + " --target tpu", "target"},
		{"check no-such-model", "no-such-model"},
		{"check " + demoSpec + " --devices 0&", "--devices: ;0&"},
		{"ir " + demoSpec + " --after fuse-region", "did you mean \"fuse-regions\""},
		{"run " + demoSpec + " -f no-such.txt", "-f: ;no-such.txt"},
		{"explain " + demoSpec + " --profile " + demoSpec, "not a profile;iflowc profile"},
		{"opt no-such.ir", "no-such.ir"},
		{"run " + demoSpec, "-p TEXT"},
		{"explain " + demoSpec + " --profile no-such.yaml", "no-such.yaml"},
	} {
		wantError(t, iflowc(t, strings.Fields(c.args)...), exitUsage, strings.Split(c.words, ";")...)
	}
	file := filepath.Join(t.TempDir(), "broken.ir")
	if err := os.WriteFile(file, []byte("module m {\n  graph decode (T tokens) {\n    %x = rmsnrm %y\n  }\n}\n"), 0o644); err != nil {
		t.Fatal(err)
	}
	wantError(t, iflowc(t, "opt", file), exitUsage, "broken.ir:3:")
}

// TestSpecTypo: an unknown key is named with its place and the nearest key.
func TestSpecTypo(t *testing.T) {
	t.Parallel()
	dir := copyModel(t, nil)
	file := filepath.Join(dir, "m.yaml")
	for _, c := range []struct{ text, words string }{
		{"iflow: 1\nname: m\nnetwork_structure:\n  type: decoder_only\n  normalisation_function: rms\n",
			"m.yaml:5:3;normalisation_function;normalization_function"},
		{"iflow: 1\nname: m\nmodeldir: x\n", "m.yaml:3:1;modeldir;model_dir"},
		{"iflow: 1\nname: m\nnetwork_structure:\n  type: decoder_only\n  activation_function: silo\n", "m.yaml:5:24;silo"},
		{"iflow: 1\nname: [m\n", "m.yaml:"},
		{"iflow: 1\nname: m\nmodel_dir: nowhere\nnetwork_structure:\n  type: decoder_only\n  normalization_function: rms\n  activation_function: silu\n  position_embedding: rope\n",
			"m.yaml:3:;model_dir: no folder;nowhere;--model-dir"},
		{"\x7fELF\x01\x02", "m.yaml: not YAML;a model spec is a text file"},
	} {
		if err := os.WriteFile(file, []byte(c.text), 0o644); err != nil {
			t.Fatal(err)
		}
		wantError(t, iflowc(t, "check", file), exitUsage, strings.Split(c.words, ";")...)
	}
}

// TestBrokenModels: what a model folder lacks or what is broken in it is found
// before anything is built.
func TestBrokenModels(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		name, file string
		edit       func([]byte) []byte
		words      string
	}{
		{"missing tensor", "model.safetensors", func(b []byte) []byte {
			return bytes.Replace(b, []byte("model.layers.0.self_attn.q_proj.weight"), []byte("model.layers.0.self_attn.q_prxj.weight"), 1)
		}, "q_proj"},
		{"truncated weights", "model.safetensors", func(b []byte) []byte { return b[:len(b)*2/3] }, "model.safetensors"},
		{"truncated header", "model.safetensors", func(b []byte) []byte { return b[:100] }, "model.safetensors"},
		{"empty weights", "model.safetensors", func([]byte) []byte { return []byte{} }, "model.safetensors"},
		{"oversized header", "model.safetensors", func(b []byte) []byte {
			return append([]byte{0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f}, b[8:]...)
		}, "model.safetensors"},
		{"no weights", "model.safetensors", func([]byte) []byte { return nil }, "safetensors"},
		{"config is no JSON", "config.json", func([]byte) []byte { return []byte("{") }, "config.json"},
		{"negative size", "config.json", func(b []byte) []byte {
			return bytes.Replace(b, []byte(`"hidden_size": `), []byte(`"hidden_size": -`), 1)
		}, "hidden_size"},
	} {
		t.Run(c.name, func(t *testing.T) {
			dir := copyModel(t, onlyFile(c.file, c.edit))
			out := filepath.Join(t.TempDir(), "model")
			wantError(t, iflowc(t, "compile", dir, "-o", out), exitUsage, strings.Split(c.words, ";")...)
			if left, _ := filepath.Glob(out + "*"); len(left) != 0 {
				t.Errorf("left behind: %v", left)
			}
		})
	}
}

// TestNoTokenizer: a model without a tokenizer works on ids, and says so of
// text.
func TestNoTokenizer(t *testing.T) {
	t.Parallel()
	whole := demo(t)
	dir := copyModel(t, func(name string, data []byte) []byte {
		if strings.HasPrefix(name, "tokenizer") || strings.HasPrefix(name, "special") {
			return nil
		}
		return data
	})
	out := filepath.Join(t.TempDir(), "mute")
	o := iflowc(t, append([]string{"compile", "--model-dir", dir, "-o", out}, demoFlags...)...)
	o.succeed(t)
	if !strings.Contains(o.stderr, "no tokenizer") {
		t.Errorf("no notice: %q", o.stderr)
	}
	wantError(t, call(t, nil, out, "generate", "-p", "Once"), exitUsage, "tokenizer", "--ids")
	if a, b := call(t, nil, out, "logits", "--ids", "1,2").succeed(t), call(t, nil, whole, "logits", "--ids", "1,2").succeed(t); a != b {
		t.Error("other logits than the model with a tokenizer")
	}
}

// TestWrongCallsOfBinary: the same for the per-model binary.
func TestWrongCallsOfBinary(t *testing.T) {
	t.Parallel()
	bin, dir := demo(t), t.TempDir()
	long := strings.TrimSuffix(strings.Repeat("5,", 20000), ",")
	for _, c := range []struct {
		args  []string
		words string
	}{
		{[]string{"generate"}, "-p"},
		{[]string{"generate", "--ids", long}, "context"},
		{[]string{"logits", "--ids", long}, "context"},
		{[]string{"logits", "--ids", "1,99999999"}, "99999999"},
		{[]string{"logits", "--ids", "-1"}, "-1"},
		{[]string{"generate", "--ids", "1,x"}, "x"},
		{[]string{"generate", "-p", "a", "--temp", "-3"}, "temp"},
		{[]string{"generate", "-f", filepath.Join(dir, "none")}, "none"},
		{[]string{"generate", "-p", "a", "--isa", "sse9"}, "sse9"},
		{[]string{"generate", "-p", "a", "--weights", filepath.Join(dir, "none")}, "none"},
		{[]string{"perplexity", filepath.Join(dir, "none")}, "none"},
		{[]string{"frobnicate"}, "frobnicate"},
	} {
		wantError(t, call(t, nil, bin, c.args...), exitUsage, strings.Split(c.words, ";")...)
	}
}

// TestBrokenPackedWeights: a binary does not compute with weights that are not
// its own.
func TestBrokenPackedWeights(t *testing.T) {
	t.Parallel()
	bin, dir := demo(t), t.TempDir()
	good, err := os.ReadFile(bin + ".weights")
	if err != nil {
		t.Fatal(err)
	}
	foreign, err := os.ReadFile(compiled(t, demotest.Short(t), "--quant", "q8", "--isa", "portable") + ".weights")
	if err != nil {
		t.Fatal(err)
	}
	for name, data := range map[string][]byte{
		"truncated": good[:len(good)/2], "empty": {}, "header": good[:16], "foreign": foreign,
		"text": []byte("version https://git-lfs.github.com/spec/v1\n"),
	} {
		file := filepath.Join(dir, name)
		if err := os.WriteFile(file, data, 0o644); err != nil {
			t.Fatal(err)
		}
		wantError(t, call(t, nil, bin, "generate", "--ids", "1", "--weights", file), exitUsage, name)
	}
}
