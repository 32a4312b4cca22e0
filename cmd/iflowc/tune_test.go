package main

import (
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
)

// TestTune: a binary measures its own kernels, and what it then chooses gives
// the same tokens.
func TestTune(t *testing.T) {
	t.Parallel()
	bin := demo(t)
	file := filepath.Join(t.TempDir(), "here.profile")
	call(t, nil, bin, "tune", "--budget", "1ms", "--threads", "1", "--rows", "1,2,17", "-o", file).succeed(t)
	p, err := dispatch.Read(file)
	if err != nil {
		t.Fatal(err)
	}
	if len(p.Shapes) == 0 || p.Machine == nil || p.Machine.ISA == "" || len(p.Shapes[0].Measured.Rows) != 3 {
		t.Errorf("profile %+v", p)
	}
	args := []string{"generate", "-p", "The little fox", "-n", "8", "--temp", "0"}
	if a, b := call(t, nil, bin, args...).succeed(t), call(t, nil, bin, append(args[:len(args):len(args)], "--profile", file)...).succeed(t); a != b {
		t.Errorf("%q without the profile, %q with it", a, b)
	}
}
