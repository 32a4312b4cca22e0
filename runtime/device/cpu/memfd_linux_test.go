package cpu

import (
	"os"
	"testing"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/codegen/toolchain"
)

// TestLoadMemory checks that a second, different library in a memory file does not
// resolve to the first.
func TestLoadMemory(t *testing.T) {
	cc, err := toolchain.FindCompiler(t.Context(), "")
	if err != nil {
		t.Skipf("no C compiler: %v", err)
	}
	cache, err := toolchain.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	b := &toolchain.Builder{Cache: cache, CC: cc}
	for i, text := range []string{"int which(void) { return 1; }", "int which(void) { return 2; }"} {
		objects, err := b.Objects(t.Context(), []toolchain.Unit{{Name: "w.c", Source: []byte(text), Flags: []string{"-fPIC"}}})
		if err != nil {
			t.Fatal(err)
		}
		lib, err := b.Shared(t.Context(), objects, nil)
		if err != nil {
			t.Fatal(err)
		}
		data, err := os.ReadFile(lib)
		if err != nil {
			t.Fatal(err)
		}
		for kind, open := range map[string]func(string) (uintptr, error){"memory": loadMemory, "file": loadImage} {
			handle, err := open(string(data))
			if err != nil {
				t.Fatal(kind, err)
			}
			fn, err := purego.Dlsym(handle, "which")
			if err != nil {
				t.Fatal(kind, err)
			}
			if got, _, _ := purego.SyscallN(fn); int(got) != i+1 {
				t.Errorf("%s: library %d answers %d", kind, i+1, got)
			}
		}
	}
}
