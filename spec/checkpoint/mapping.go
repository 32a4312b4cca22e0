package checkpoint

import (
	"fmt"

	"github.com/iflowc/iflowc/runtime/kit/regular"
	"golang.org/x/sys/unix"
)

// A mapping is a whole file mapped read-only and private.
//
// If a file is truncated while it is mapped, a read past its new end raises
// SIGBUS. Go turns that into a fatal error, unless the goroutine called
// debug.SetPanicOnFault. A file that is replaced by rename keeps its old contents
// while mapped; download tools and this package replace files that way. Packing
// is the only code that reads whole files. It requests the panic and reports that
// the file changed. Other readers read only headers, right after the size.
type mapping struct {
	path string
	data []byte
}

func openMapping(path string) (*mapping, error) {
	f, size, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	if size == 0 {
		return nil, fmt.Errorf("%s: the file is empty; download it again", path)
	}
	data, err := unix.Mmap(int(f.Fd()), 0, int(size), unix.PROT_READ, unix.MAP_PRIVATE)
	if err != nil {
		return nil, fmt.Errorf("%s: cannot map %d bytes: %w", path, size, err)
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
