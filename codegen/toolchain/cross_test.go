package toolchain

import (
	"os/exec"
	"runtime"
	"strings"
	"testing"
)

// TestCrossNone checks what is said when no compiler makes code for a target.
func TestCrossNone(t *testing.T) {
	t.Setenv("PATH", t.TempDir())
	t.Setenv("CC", "")
	other := Target{"linux", "arm64"}
	if runtime.GOARCH == "arm64" {
		other.Arch = "amd64"
	}
	_, err := FindCompilerFor(t.Context(), "", other)
	for _, want := range []string{other.Arch, triples[other] + "-gcc", "apt-get install gcc-", "--cc"} {
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, expected %q in it", err, want)
		}
	}
	for _, other := range []Target{{"windows", "amd64"}, {"darwin", "arm64"}} {
		if _, err := FindCompilerFor(t.Context(), "", other); err == nil || !strings.Contains(err.Error(), other.OS+"/"+other.Arch) {
			t.Errorf("error %v, expected one naming %v", err, other)
		}
	}
}

// TestCrossNamed checks that a compiler for this system is not taken for one
// that makes another's code.
func TestCrossNamed(t *testing.T) {
	t.Setenv("CC", "")
	cc, err := FindCompiler(t.Context(), "")
	if err != nil {
		t.Skipf("no C compiler: %v", err)
	}
	if got, err := FindCompilerFor(t.Context(), "", Target{runtime.GOOS, runtime.GOARCH}); err != nil || got.Path != cc.Path {
		t.Errorf("for this system: %+v, error %v, expected %s", got, err, cc.Path)
	}
	_, err = FindCompilerFor(t.Context(), cc.Path, Target{"linux", "riscv64"})
	if err == nil || !strings.Contains(err.Error(), "not for linux/riscv64") {
		t.Errorf("error %v, expected what the compiler makes", err)
	}
}

// TestCrossFound compiles for another processor where a compiler for it is
// installed.
func TestCrossFound(t *testing.T) {
	if _, err := exec.LookPath("aarch64-linux-gnu-gcc"); err != nil || runtime.GOARCH == "arm64" {
		t.Skip("aarch64-linux-gnu-gcc is not installed")
	}
	t.Setenv("CC", "")
	cc, err := FindCompilerFor(t.Context(), "", Target{"linux", "arm64"})
	if err != nil || !strings.Contains(cc.Path, "aarch64-linux-gnu-gcc") {
		t.Errorf("%+v, error %v", cc, err)
	}
	if cc, err = FindCompilerFor(t.Context(), "aarch64-linux-gnu-gcc", Target{"linux", "arm64"}); err != nil {
		t.Errorf("named: %v, error %v", cc, err)
	}
}
