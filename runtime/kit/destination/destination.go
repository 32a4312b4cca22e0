// Package destination checks, before long computations, that the result can be written.
package destination

import (
	"fmt"
	"os"
	"path/filepath"
)

// Check returns an error if no file can be written to path; name is the flag with the
// path. A regular file may be overwritten. Other files, such as /dev/stdout, are not
// checked.
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

// CheckFolder returns an error if the folder path cannot be created, with its parents,
// and written to. It does not create it.
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

// writable returns an error if no file can be created in a folder.
func writable(name, path, dir string) error {
	f, err := os.CreateTemp(dir, ".iflowc-*")
	if err != nil {
		return fmt.Errorf("%s %s: the folder %s is not writable", name, path, dir)
	}
	f.Close()
	return os.Remove(f.Name())
}
