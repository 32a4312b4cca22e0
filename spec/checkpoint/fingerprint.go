package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"path/filepath"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// fingerprintBytes is the number of bytes hashed at the start of each file. It
// covers the headers of most models.
const fingerprintBytes = 1 << 20

// Fingerprint returns a hash that identifies weight files without reading them
// completely. It covers the base name, size, modification time and first megabyte
// of each file, in the given order. It is the key of the cache of packed weights.
// It does not detect a change in place after the first megabyte that keeps the
// modification time.
func Fingerprint(paths []string) (string, error) {
	h := sha256.New()
	for _, path := range paths {
		if err := fingerprintFile(h, path); err != nil {
			return "", err
		}
	}
	return hex.EncodeToString(h.Sum(nil)), nil
}

func fingerprintFile(h io.Writer, path string) error {
	f, _, err := regular.Open(path)
	if err != nil {
		return err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return err
	}
	fmt.Fprintf(h, "%q %d %d\n", filepath.Base(path), st.Size(), st.ModTime().UnixNano())
	if _, err := io.CopyN(h, f, fingerprintBytes); err != nil && !errors.Is(err, io.EOF) {
		return err
	}
	return nil
}
