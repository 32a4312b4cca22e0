package pack

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/spec/checkpoint"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// openSource writes a safetensors file of the fixtures and opens it.
func openSource(t testing.TB, fixtures ...checkpointtest.Fixture) Source {
	t.Helper()
	return sourceOf(t, "model.safetensors", checkpointtest.Safetensors(fixtures...))
}

// sourceOf writes a file and opens it.
func sourceOf(t testing.TB, name string, data []byte) Source {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	if err := os.WriteFile(path, data, 0o600); err != nil {
		t.Fatal(err)
	}
	s, err := checkpoint.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { s.Close() })
	return Source{Set: s}
}
