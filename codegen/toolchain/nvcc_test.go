package toolchain

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// TestBrokenNVCC: an nvcc that is missing where $CUDA_HOME says, that does not
// run, that does not compile, or that makes nothing ends in an error that says so, with what it said.
func TestBrokenNVCC(t *testing.T) {
	home := t.TempDir()
	t.Setenv("CUDA_HOME", home)
	if _, err := FindNVCC(t.Context()); err == nil || !strings.Contains(err.Error(), "nvcc of $CUDA_HOME") || !strings.Contains(err.Error(), "name a CUDA installation") {
		t.Errorf("without an nvcc: %v", err)
	}
	put := func(text string) {
		t.Helper()
		if err := os.MkdirAll(filepath.Join(home, "bin"), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(filepath.Join(home, "bin", "nvcc"), []byte("#!/bin/sh\n"+text), 0o755); err != nil {
			t.Fatal(err)
		}
	}
	put("echo nvcc: no cicc here >&2; exit 1\n")
	if _, err := FindNVCC(t.Context()); err == nil || !strings.Contains(err.Error(), "no cicc here") {
		t.Errorf("with a broken one: %v", err)
	}
	put("[ \"$1\" = --version ] && echo nvcc 13 && exit\necho sorry, unsupported gpu >&2; exit 2\n")
	nvcc, err := FindNVCC(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	cache, err := OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	defer cache.Close()
	_, err = (&Builder{Cache: cache, CC: nvcc}).Fatbins(t.Context(), []Unit{{Name: "r1_wo.cu", Source: []byte("int x;")}}, []string{"sm_80"})
	if err == nil || !strings.Contains(err.Error(), "compiling r1_wo.cu") || !strings.Contains(err.Error(), "sorry, unsupported gpu") {
		t.Errorf("with one that does not compile: %v", err)
	}
	for _, text := range []string{"exit 0\n", "for out; do :; done; : >\"$out\"\n"} {
		put("[ \"$1\" = --version ] && echo nvcc 13 && exit\n" + text)
		_, err = (&Builder{Cache: cache, CC: nvcc}).Fatbins(t.Context(), []Unit{{Name: "r1_wo.cu", Source: []byte("int x;")}}, []string{"sm_80"})
		if err == nil || !strings.Contains(err.Error(), "left no fatbin") {
			t.Errorf("with one that makes no file, or an empty one: %v", err)
		}
	}
}

// TestNoNVCC: where there is none, the error names where it was looked for and
// the command that gets it.
func TestNoNVCC(t *testing.T) {
	if regular.Has("/usr/local/cuda/bin/nvcc") {
		t.Skip("there is an nvcc in /usr/local/cuda")
	}
	for _, v := range []string{"CUDA_HOME", "CUDA_PATH", "VIRTUAL_ENV"} {
		t.Setenv(v, "")
	}
	t.Setenv("PATH", t.TempDir())
	t.Setenv("HOME", t.TempDir())
	t.Chdir(t.TempDir())
	if _, err := FindNVCC(t.Context()); err == nil || !strings.Contains(err.Error(), "$CUDA_HOME") || !strings.Contains(err.Error(), "pip install --no-deps nvidia-cuda-nvcc==") {
		t.Errorf("got %v", err)
	}
}

// TestGencode: GPUs before sm_90a share the oldest one's PTX, which newer GPUs
// than all get too; that of an "a" is for no other.
func TestGencode(t *testing.T) {
	for archs, want := range map[string]string{
		"sm_80 sm_86 sm_89 sm_90a sm_100": "-gencode arch=compute_80,code=[sm_80,sm_86,sm_89,compute_80] -gencode arch=compute_90a,code=[sm_90a] -gencode arch=compute_100,code=[sm_100]",
		"sm_90a sm_86":                    "-gencode arch=compute_86,code=[sm_86,compute_86] -gencode arch=compute_90a,code=[sm_90a]",
		"sm_90a":                          "-gencode arch=compute_90a,code=[sm_90a]",
		"sm_100":                          "-gencode arch=compute_100,code=[sm_100,compute_100]",
		"sm_90a sm_100":                   "-gencode arch=compute_90a,code=[sm_90a] -gencode arch=compute_100,code=[sm_100]",
	} {
		if got := strings.Join(Gencode(strings.Fields(archs)), " "); got != want {
			t.Errorf("%s: %s, expected %s", archs, got, want)
		}
	}
}
