package checkpoint

import (
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
)

// fingerprintBytes is how much of each file's beginning is hashed: the headers
// of most models.
const fingerprintBytes = 1 << 20

// Fingerprint identifies weight files without reading them whole: a hash of
// each file's base name, size, modification time and first megabyte, in the
// order given. It is the key under which packed weights are cached; a file
// changed in place without a new time and beyond its first megabyte is not
// noticed.
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
	f, err := os.Open(path)
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
