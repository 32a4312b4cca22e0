// Package regular reads files that nobody has vouched for, such as those of a model that
// was downloaded. Only regular files are opened, so opening never waits for another
// program, and reading has a limit.
package regular

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"os"
	"path/filepath"
	"regexp"
	"syscall"
)

// ErrNot reports a path to something else than a regular file: a folder, a device, a pipe.
var ErrNot = errors.New("not a regular file")

// Open opens a regular file, or a link to one, and returns its size.
func Open(path string) (f *os.File, size int64, err error) {
	st, err := os.Stat(path) // before opening, which may have effects on a device
	if err != nil {
		return nil, 0, err
	}
	if !st.Mode().IsRegular() {
		return nil, 0, fmt.Errorf("%s: %w", path, ErrNot)
	}
	return checked(os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0))
}

// checked closes a file that is not regular.
func checked(f *os.File, err error) (*os.File, int64, error) {
	if err != nil {
		return nil, 0, err
	}
	st, err := f.Stat()
	if err == nil && !st.Mode().IsRegular() {
		err = fmt.Errorf("%s: %w", f.Name(), ErrNot)
	}
	if err != nil {
		f.Close()
		return nil, 0, err
	}
	return f, st.Size(), nil
}

// Read returns the contents of a regular file with at most limit bytes.
func Read(path string, limit int64) ([]byte, error) {
	f, size, err := Open(path)
	return read(path, f, size, limit, err)
}

func read(path string, f *os.File, size, limit int64, err error) ([]byte, error) {
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size > limit {
		return nil, tooLarge(path, limit)
	}
	data, err := io.ReadAll(io.LimitReader(f, limit+1)) // files of /proc have no size
	if err == nil && int64(len(data)) > limit {
		err = tooLarge(path, limit)
	}
	if err != nil {
		return nil, err
	}
	return data, nil
}

func tooLarge(path string, limit int64) error {
	return fmt.Errorf("%s: larger than %d bytes, the most for such a file", path, limit)
}

// ReadIn returns the contents of a file of a folder with at most limit bytes. Its path may
// lead through links within the folder and, if that is a snapshot of the hub's cache, to
// the files of its repository. A link that leads elsewhere is an error, so that a folder
// that somebody made cannot have another file of this machine read.
func ReadIn(folder, name string, limit int64) ([]byte, error) {
	path := filepath.Join(folder, name)
	if !filepath.IsLocal(name) { // who asks for it knows that it is elsewhere
		folder = filepath.Dir(path)
	}
	root, target, inside, err := follow(folder, path)
	if err != nil {
		return nil, err
	}
	if inside == "" {
		return nil, fmt.Errorf("%s: a link that leads out of the model's folder, to %s; if you trust it, replace the link by a copy of the file", path, target)
	}
	if !Has(target) {
		return nil, fmt.Errorf("%s: %w", path, ErrNot)
	}
	within, err := os.OpenRoot(root) // links that are made meanwhile do not lead out either
	if err != nil {
		return nil, err
	}
	defer within.Close()
	f, size, err := checked(within.OpenFile(inside, os.O_RDONLY|syscall.O_NONBLOCK, 0))
	return read(path, f, size, limit, err)
}

// ReadJSON decodes a JSON file of a folder, as ReadIn reads it; found is false if there is
// none.
func ReadJSON(folder, name string, limit int64, to any) (found bool, err error) {
	data, err := ReadIn(folder, name, limit)
	switch {
	case errors.Is(err, fs.ErrNotExist):
		return false, nil
	case err != nil:
		return true, err
	}
	if err := json.Unmarshal(data, to); err != nil {
		return true, fmt.Errorf("%s: %w", filepath.Join(folder, name), err)
	}
	return true, nil
}

// Elsewhere returns the file that a path of a folder leads to if ReadIn would refuse it;
// "" otherwise.
func Elsewhere(folder, path string) string {
	_, target, inside, err := follow(folder, path)
	if err != nil || inside != "" {
		return ""
	}
	return target
}

// follow resolves the links of a path. It returns the folder that must contain the result,
// and the result's path in it; "" if it is elsewhere.
func follow(folder, path string) (root, target, inside string, err error) {
	if target, err = filepath.EvalSymlinks(path); err != nil {
		return "", "", "", err
	}
	if root, err = filepath.EvalSymlinks(folder); err != nil {
		return "", "", "", err
	}
	if m := snapshot.FindStringSubmatchIndex(filepath.ToSlash(root)); m != nil {
		root = root[:m[3]]
	}
	if inside, err = filepath.Rel(root, target); err != nil || !filepath.IsLocal(inside) {
		return root, target, "", nil
	}
	return root, target, inside, nil
}

// Has reports whether a path leads to a regular file.
func Has(path string) bool {
	st, err := os.Stat(path)
	return err == nil && st.Mode().IsRegular()
}

// snapshot matches the folder of a repository in the hub's cache, and its subfolder that is
// named after a commit.
var snapshot = regexp.MustCompile(`(/models--(?:[^/]+--)?([^/]+))/snapshots/[0-9a-f]{40}(?:/|$)`)

// Repository returns the name of the repository of whose snapshot in the hub's cache a
// folder is a part.
func Repository(folder string) (name string, ok bool) {
	m := snapshot.FindStringSubmatch(filepath.ToSlash(folder))
	if m == nil {
		return "", false
	}
	return m[2], true
}
