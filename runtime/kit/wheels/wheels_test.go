package wheels

import (
	"os"
	"path/filepath"
	"slices"
	"testing"
)

// TestFind checks that packages of an environment are found through its python3 on the
// path although it is not active, that those of an active environment come first, and
// that a link leads to the packages of what it points to.
func TestFind(t *testing.T) {
	dir := t.TempDir()
	put := func(path string) string {
		t.Helper()
		path = filepath.Join(dir, path)
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(path, nil, 0o755); err != nil {
			t.Fatal(err)
		}
		return path
	}
	const library = "nvidia/cublas/lib/libcublasLt.so.12"
	python := put("system/bin/python3.12")
	system, venv := put("system/lib/python3.12/dist-packages/"+library), put("venv/lib/python3.12/site-packages/"+library)
	active := put("active/lib/python3.11/site-packages/" + library)
	link := filepath.Join(dir, "venv/bin/python3")
	if err := os.MkdirAll(filepath.Dir(link), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(python, link); err != nil {
		t.Fatal(err)
	}
	for _, v := range []string{"VIRTUAL_ENV", "CONDA_PREFIX", "HOME"} {
		t.Setenv(v, "")
	}
	t.Chdir(t.TempDir())
	t.Setenv("PATH", filepath.Dir(link))
	if got := Find("nvidia/none", "nvidia/cublas/lib/libcublasLt.so.1[23]"); !slices.Equal(got, []string{venv, system}) {
		t.Errorf("through the path: %v", got)
	}
	t.Setenv("VIRTUAL_ENV", filepath.Join(dir, "active"))
	if got := Find(library); !slices.Equal(got, []string{active, venv, system}) {
		t.Errorf("in an active environment: %v", got)
	}
	t.Setenv("PATH", t.TempDir())
	if got := Find(library); !slices.Equal(got, []string{active}) {
		t.Errorf("without python3: %v", got)
	}
}
