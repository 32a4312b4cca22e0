package packed

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"fmt"
	"io"
)

// A DamagedError reports data with a wrong hash.
type DamagedError struct {
	File            string
	Found, Expected string // SHA-256, in hexadecimal
}

func (e *DamagedError) Error() string {
	return fmt.Sprintf("%s: packed weights are damaged: sha256 is %s, expected %s; %s", e.File, e.Found, e.Expected, again)
}

// Verify reads the data and compares its hash with the index. It does not load the
// weights into memory. The error is a *DamagedError if the hashes differ. progress
// receives the number of bytes read so far.
func (p *File) Verify(ctx context.Context, progress func(done int64)) error {
	h, buf := sha256.New(), make([]byte, readChunk)
	r := io.NewSectionReader(p.r, p.start, p.index.Bytes)
	for done := int64(0); done < p.index.Bytes; {
		if err := ctx.Err(); err != nil {
			return err
		}
		n, err := io.ReadFull(r, buf[:min(readChunk, p.index.Bytes-done)])
		if err != nil {
			return fmt.Errorf("%s: reading packed weights: %w", p.name, err)
		}
		h.Write(buf[:n])
		done += int64(n)
		progress(done)
	}
	if found := hex.EncodeToString(h.Sum(nil)); found != p.index.SHA256 {
		return &DamagedError{p.name, found, p.index.SHA256}
	}
	return nil
}
