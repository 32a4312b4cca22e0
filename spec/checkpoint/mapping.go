package checkpoint

import (
	"fmt"
	"io"
	"os"

	"golang.org/x/sys/unix"
)

// A mapping is a whole file mapped read-only and private.
//
// A file that is cut short while mapped makes reads past its new end fault:
// SIGBUS, which Go turns into a fatal error that no handler sees unless the
// goroutine asked for panics (debug.SetPanicOnFault). Files that are replaced
// by rename, as download tools and this package do, keep their old contents
// while mapped and are no danger. Packing, the one place that reads whole files,
// asks for the panic and reports the file as changed; other readers look only
// at headers, right after the size was taken.
type mapping struct {
	path string
	data []byte
}

func openMapping(path string) (*mapping, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	st, err := f.Stat()
	if err != nil {
		return nil, err
	}
	if !st.Mode().IsRegular() {
		return nil, fmt.Errorf("%s: not a regular file", path)
	}
	if st.Size() == 0 {
		return nil, fmt.Errorf("%s: the file is empty; download it again", path)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(st.Size()), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot map %d bytes: %w", path, st.Size(), err)
	}
	return &mapping{path: path, data: data}, nil
}

func (m *mapping) close() error {
	if m.data == nil {
		return nil
	}
	data := m.data
	m.data = nil
	return unix.Munmap(data)
}

// errorf prefixes the file's path.
func (m *mapping) errorf(format string, args ...any) error {
	return fmt.Errorf("%s: %w", m.path, fmt.Errorf(format, args...))
}

// readSmall reads a text file (an index) of at most limit bytes.
func readSmall(path string, limit int64) ([]byte, error) {
	f, err := os.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	data, err := io.ReadAll(io.LimitReader(f, limit+1))
	if err != nil {
		return nil, err
	}
	if int64(len(data)) > limit {
		return nil, fmt.Errorf("%s: over %d bytes, too long for an index of shards", path, limit)
	}
	return data, nil
}
