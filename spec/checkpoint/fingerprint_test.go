package checkpoint

import (
	"path/filepath"
	"testing"
)

func TestFingerprint(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	a := writeFile(t, dir, "a", []byte("hello"))
	first, err := Fingerprint([]string{a})
	if err != nil {
		t.Fatal(err)
	}
	if again, _ := Fingerprint([]string{a}); again != first {
		t.Error("not stable")
	}
	writeFile(t, dir, "a", []byte("hellp"))
	if other, _ := Fingerprint([]string{a}); other == first {
		t.Error("a changed file has the same fingerprint")
	}
	if _, err := Fingerprint([]string{filepath.Join(dir, "none")}); err == nil {
		t.Error("a missing file has a fingerprint")
	}
}
