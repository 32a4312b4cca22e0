// Package destination checks, before long work, that its result can be written.
package destination

import (
	"fmt"
	"os"
	"path/filepath"
)

// Check says why no file can be written to path; name is the flag that gives it.
// A file that exists may be replaced. What is neither file nor folder, such as
// /dev/stdout, is left for the writer to open.
func Check(name, path string) error {
	if st, err := os.Stat(path); err == nil && st.IsDir() {
		return fmt.Errorf("%s %s: is a folder; name the file to make", name, path)
	} else if err == nil && !st.Mode().IsRegular() {
		return nil
	}
	dir := filepath.Dir(path)
	if st, err := os.Stat(dir); err != nil || !st.IsDir() {
		return fmt.Errorf("%s %s: the folder %s does not exist; make it first", name, path, dir)
	}
	return writable(name, path, dir)
}

// CheckFolder says why no folder can be made at path, with those above it, and
// written to. It makes none.
func CheckFolder(name, path string) error {
	dir := filepath.Clean(path)
	st, err := os.Stat(dir)
	for err != nil && dir != filepath.Dir(dir) {
		dir = filepath.Dir(dir)
		st, err = os.Stat(dir)
	}
	if err != nil {
		return fmt.Errorf("%s %s: %w", name, path, err)
	}
	if !st.IsDir() {
		return fmt.Errorf("%s %s: %s is a file; name a folder", name, path, dir)
	}
	return writable(name, path, dir)
}

// writable says why nothing can be written to a folder.
func writable(name, path, dir string) error {
	f, err := os.CreateTemp(dir, ".iflowc-*")
	if err != nil {
		return fmt.Errorf("%s %s: the folder %s is not writable", name, path, dir)
	}
	f.Close()
	return os.Remove(f.Name())
}
