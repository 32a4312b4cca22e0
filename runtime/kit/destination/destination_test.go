package destination_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/runtime/kit/destination"
)

func TestCheck(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "file")
	if err := os.WriteFile(file, nil, 0o644); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]string{
		filepath.Join(dir, "new"): "", file: "", os.DevNull: "",
		dir:                               "is a folder; name the file to make",
		filepath.Join(dir, "none", "new"): "does not exist; make it first",
		filepath.Join(file, "new"):        "does not exist; make it first",
		"/proc/new":                       "the folder /proc is not writable",
	} {
		err := destination.Check("-o", path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
	left, err := os.ReadDir(dir)
	if err != nil || len(left) != 1 {
		t.Errorf("left behind: %v (%v)", left, err)
	}
	for path, want := range map[string]string{
		dir: "", filepath.Join(dir, "a", "b"): "", filepath.Join(file, "x"): file + " is a file; name a folder", file: "is a file; name a folder",
		"/proc/a/b": "the folder /proc is not writable",
	} {
		err := destination.CheckFolder("--all", path)
		if (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v, want %q", path, err, want)
		}
	}
}
