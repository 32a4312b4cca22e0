// Package destination checks, before long work, that its result can be written.
package destination

import (
	"fmt"
	"os"
	"path/filepath"
)

// Check says why no file can be put at path; name is the flag that says so. A
// file that is there already may be replaced. What is neither file nor folder,
// such as /dev/stdout, is left for the writer to open.
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
	f, err := os.CreateTemp(dir, ".iflowc-*")
	if err != nil {
		return fmt.Errorf("%s %s: nothing can be written to the folder %s", name, path, dir)
	}
	f.Close()
	return os.Remove(f.Name())
}

// CheckFolder makes the folder at path, with those above it, or says why not.
func CheckFolder(name, path string) error {
	if err := os.MkdirAll(path, 0o755); err != nil {
		return fmt.Errorf("%s %w", name, err)
	}
	return nil
}
