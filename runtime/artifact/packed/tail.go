package packed

import (
	"encoding/binary"
	"fmt"
	"os"
)

// Embedded weights follow the binary's own bytes, at a multiple of 4096, and end with a
// tail of 24 bytes: a magic word, and the offset and size of the weights, in
// little-endian order.
const (
	tailMagic = "IFLOWCW1"
	tailBytes = 24
	tailAlign = 4096
)

// OpenBehind opens the weights embedded in a binary. It returns nil if there are none.
func OpenBehind(program string) (*File, error) {
	f, err := os.Open(program)
	if err != nil {
		return nil, nil // an executable may be unreadable; its weights are in a separate file then
	}
	offset, size, ok := readTail(f)
	if !ok {
		f.Close()
		return nil, nil
	}
	p, err := OpenAt(f, program, offset, size)
	if err != nil {
		f.Close()
		return nil, err
	}
	p.closer = f
	return p, nil
}

func readTail(f *os.File) (offset, size int64, ok bool) {
	info, err := f.Stat()
	if err != nil || info.Size() < tailBytes {
		return 0, 0, false
	}
	var b [tailBytes]byte
	if _, err := f.ReadAt(b[:], info.Size()-tailBytes); err != nil || string(b[:8]) != tailMagic {
		return 0, 0, false
	}
	offset = int64(binary.LittleEndian.Uint64(b[8:]))
	size = int64(binary.LittleEndian.Uint64(b[16:]))
	end := info.Size() - tailBytes
	return offset, size, offset >= 0 && size >= 0 && offset <= end && size == end-offset
}

// Embed writes a copy of a binary with embedded weights to out. If it fails or is
// interrupted, out is not written.
func Embed(program, weights, out string) error {
	tmp := out + ".part"
	defer os.Remove(tmp)
	if err := writeTail(program, weights, tmp); err != nil {
		return fmt.Errorf("embedding %s: %w", weights, err)
	}
	return os.Rename(tmp, out)
}

func writeTail(program, weights, out string) error {
	f, err := os.OpenFile(out, os.O_CREATE|os.O_TRUNC|os.O_WRONLY, 0o755)
	if err != nil {
		return err
	}
	defer f.Close()
	n, err := appendFile(f, program)
	if err != nil {
		return err
	}
	pad := -n & (tailAlign - 1)
	if _, err := f.Write(make([]byte, pad)); err != nil {
		return err
	}
	size, err := appendFile(f, weights)
	if err != nil {
		return err
	}
	tail := binary.LittleEndian.AppendUint64([]byte(tailMagic), uint64(n+pad))
	if _, err := f.Write(binary.LittleEndian.AppendUint64(tail, uint64(size))); err != nil {
		return err
	}
	return f.Close()
}

func appendFile(to *os.File, path string) (int64, error) {
	from, err := os.Open(path)
	if err != nil {
		return 0, err
	}
	defer from.Close()
	return to.ReadFrom(from)
}
