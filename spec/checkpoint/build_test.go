package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

func writeFile(t testing.TB, dir, name string, data []byte) string {
	t.Helper()
	path := filepath.Join(dir, name)
	if err := os.WriteFile(path, data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

// openSet writes a safetensors file of the fixtures and opens it.
func openSet(t testing.TB, fixtures ...checkpointtest.Fixture) *Set {
	t.Helper()
	return openBytes(t, "model.safetensors", checkpointtest.Safetensors(fixtures...))
}

func openBytes(t testing.TB, name string, data []byte) *Set {
	t.Helper()
	s, err := Open(writeFile(t, t.TempDir(), name, data))
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return s
}

func floatsOf(t testing.TB, s *Set, name string) []float32 {
	t.Helper()
	x, err := s.Float32(name)
	if err != nil {
		t.Fatal(err)
	}
	return x
}
