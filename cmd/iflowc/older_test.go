package main

import (
	"bytes"
	"encoding/binary"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/compiler"
)

// TestOlderArtifacts: what an older iflowc made, or a newer one, is either used
// or refused with what to do; every one says which iflowc made it.
func TestOlderArtifacts(t *testing.T) {
	t.Parallel()
	needCompiler(t)
	made := demo(t)
	read := func(path string) []byte {
		data, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		return data
	}
	program, packed := read(made), read(made+".weights")
	generate := func(program, packed, profile []byte) outcome {
		bin := filepath.Join(t.TempDir(), "demo")
		for path, data := range map[string][]byte{bin: program, bin + ".weights": packed, bin + ".profile": profile} {
			if data != nil {
				if err := os.WriteFile(path, data, 0o755); err != nil {
					t.Fatal(err)
				}
			}
		}
		return call(t, nil, bin, "generate", "--ids", "1,2", "-n", "2", "--temp", "0")
	}
	generate(program, packed, nil).succeed(t)

	other := bytes.Clone(packed)
	binary.LittleEndian.PutUint32(other[4:], 0)
	wantError(t, generate(program, other, nil), exitUsage, "demo.weights", "format version 0, expected", "compile again")

	manifest := []byte("\"format\": 1,\n \"compiler\"")
	if n := bytes.Count(program, manifest); n != 1 {
		t.Fatalf("the program holds %d manifests", n)
	}
	newer := bytes.Replace(program, manifest, []byte("\"format\": 2,\n \"compiler\""), 1)
	wantError(t, generate(newer, packed, nil), exitUsage, "format 2", "compile the model again")

	wantError(t, generate(program, packed, []byte(`{"format": 0}`)), exitUsage, "demo.profile", "format 0", "measure again")
	old := filepath.Join(t.TempDir(), "old.profile")
	if err := os.WriteFile(old, []byte(`{"format": 99}`), 0o644); err != nil {
		t.Fatal(err)
	}
	wantError(t, iflowc(t, "explain", demoSpec, "--profile", old), exitUsage, "old.profile", "format 99", "measure again")

	if info := call(t, nil, made, "info").succeed(t); !strings.Contains(info, compiler.Version()) && !strings.Contains(info, "devel") {
		t.Errorf("no version in\n%s", info)
	}
}
