package compiler

import (
	"errors"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
)

var includes = regexp.MustCompile(`(?m)^\s*#include "([^"]+)"`)

// TestSources: what --emit sources writes is complete: the step, kernels and IR of every
// rank, for CPUs and GPUs, and every file that one of them includes.
func TestSources(t *testing.T) {
	t.Parallel()
	for _, c := range []struct {
		opt  Options
		want []string
	}{
		{Options{}, []string{"step.c", "pool.c", "model.ir", "portable/ifl_gemv_q8_b32.c"}},
		{Options{Target: "cuda-emu", Devices: "0&1"}, []string{"rank0/step.c", "rank1/model.ir", "cuda-rank0/build.sh", "cuda-rank1/r1_wq_wk_wv.cu", "comm/mpi.c"}},
	} {
		c.opt.Quant, c.opt.Emit, c.opt.Out = "q8_b32", "sources", filepath.Join(t.TempDir(), "sources")
		if _, err := Compile(t.Context(), demoSpec, c.opt); err != nil {
			t.Fatal(err)
		}
		var have []string
		err := filepath.WalkDir(c.opt.Out, func(path string, d os.DirEntry, err error) error {
			if err != nil || d.IsDir() {
				return err
			}
			name, err := filepath.Rel(c.opt.Out, path)
			have = append(have, name)
			return err
		})
		if err != nil {
			t.Fatal(err)
		}
		for _, name := range c.want {
			if !slices.Contains(have, name) {
				t.Errorf("--devices %q: no %s among %v", c.opt.Devices, name, have)
			}
		}
		for _, name := range have {
			text, err := os.ReadFile(filepath.Join(c.opt.Out, name))
			if err != nil || len(text) == 0 {
				t.Errorf("%s: %d bytes, %v", name, len(text), err)
			}
			for _, m := range includes.FindAllStringSubmatch(string(text), -1) {
				beside := filepath.Join(filepath.Dir(name), m[1])
				if !slices.Contains(have, beside) && !slices.Contains(have, filepath.Join("include", m[1])) {
					t.Errorf("%s includes %s, which is not written", name, m[1])
				}
			}
		}
	}
}

// TestArchs: names of GPU architectures are checked; none means all.
func TestArchs(t *testing.T) {
	t.Parallel()
	all, err := gpuArchs("")
	if err != nil || len(all) < 3 {
		t.Fatalf("%v, %v", all, err)
	}
	if some, err := gpuArchs(strings.Join(all[1:3], ",")); err != nil || !slices.Equal(some, all[1:3]) {
		t.Errorf("%v, %v", some, err)
	}
	var wrong InputError
	if _, err := gpuArchs(all[0] + ",sm_12"); !errors.As(err, &wrong) || !strings.Contains(err.Error(), "sm_12 is none of "+all[0]) {
		t.Errorf("sm_12: %v", err)
	}
}
