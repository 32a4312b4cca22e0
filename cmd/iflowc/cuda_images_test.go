package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/demotest"
)

// TestEmulatedImages: IFLOWC_CUDA_IMAGES names a folder with images that replace the
// binary's. A missing file leaves the binary's image, a broken one is an error that
// names it.
func TestEmulatedImages(t *testing.T) {
	t.Parallel()
	bin := emulatedDemo(t)
	dir := t.TempDir()
	image := filepath.Join(dir, "kernels.cubin")
	story := func(folder string, more ...string) outcome {
		return call(t, []string{"IFLOWC_CUDA_IMAGES=" + folder}, bin, append([]string{"generate", "-p", "Once", "-n", "2", "--temp", "0"}, more...)...)
	}
	want := call(t, nil, bin, "generate", "-p", "Once", "-n", "2", "--temp", "0", "--device", "cuda").succeed(t)
	got := story(dir)
	if text := got.succeed(t); text != want || !strings.Contains(got.stderr, "kernels from "+dir+": 0 of 1 units") {
		t.Errorf("an empty folder: %q\n%s", text, got.stderr)
	}
	pack := filepath.Join(t.TempDir(), "package")
	iflowc(t, "compile", demotest.Short(t), "--quant", "q8_b32t2", "--isa", "portable", "--target", "cuda-emu", "--emit", "package", "-o", pack).succeed(t)
	data, err := os.ReadFile(filepath.Join(pack, "cuda-.so"))
	if err != nil {
		t.Fatal(err)
	}
	write := func(data []byte) {
		t.Helper()
		if err := os.WriteFile(image, data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
	write(data)
	got = story(dir)
	if text := got.succeed(t); text != want || !strings.Contains(got.stderr, "kernels.cubin, 1 of 1 units") {
		t.Errorf("%q, expected %q\n%s", text, want, got.stderr)
	}
	for _, broken := range [][]byte{[]byte("not a cubin"), nil} {
		write(broken)
		if got = story(dir); got.code != exitUsage || !strings.Contains(got.stderr, image) || got.stdout != "" {
			t.Errorf("image %q: exit %d, expected %d and the file's name:\n%s", broken, got.code, exitUsage, got.stderr)
		}
	}
	if got = story(filepath.Join(dir, "none")); got.code != exitUsage || !strings.Contains(got.stderr, "is not a folder") {
		t.Errorf("exit %d:\n%s", got.code, got.stderr)
	}
}
