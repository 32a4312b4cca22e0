package checkpoint

import (
	"archive/zip"
	"bytes"
	"cmp"
	"errors"
	"fmt"
	"io"
	"math"
	"slices"
	"strings"
)

// readZipPickle reads the zip format that torch has written since version 1.6.
func readZipPickle(m *mapping) ([]entry, error) {
	z, err := zipDirectory(m.data)
	if err != nil {
		return nil, err
	}
	files := make(map[string]*zip.File, len(z.File))
	root := ""
	for _, f := range z.File {
		if files[f.Name] != nil {
			return nil, fmt.Errorf("duplicate archive member %.80q", f.Name)
		}
		files[f.Name] = f
		if dir, ok := strings.CutSuffix(f.Name, "/data.pkl"); ok && !strings.Contains(dir, "/") {
			if root != "" {
				return nil, errors.New("duplicate archive member data.pkl")
			}
			root = dir
		}
	}
	if root == "" {
		return nil, errors.New("no data.pkl in the archive; it was not written by torch.save")
	}
	if err := checkByteOrder(files[root+"/byteorder"]); err != nil {
		return nil, err
	}
	program, err := readMember(files[root+"/data.pkl"], maxPickleBytes)
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	value, _, err := storageTable{}.runPickle(program)
	if err != nil {
		return nil, fmt.Errorf("data.pkl: %w", err)
	}
	found := extents{}
	entries, err := stateEntries(m, value, func(s *storage) (int64, error) {
		f := files[root+"/data/"+s.key]
		if f == nil {
			return 0, errors.New("it is not in the archive")
		}
		at, err := storedAt(f, s, int64(len(m.data)))
		found[s] = at
		return at, err
	})
	if err != nil {
		return nil, err
	}
	return entries, found.disjoint()
}

func checkByteOrder(f *zip.File) error {
	if f == nil {
		return nil
	}
	order, err := readMember(f, 64)
	if err != nil {
		return fmt.Errorf("byteorder: %w", err)
	}
	if string(bytes.TrimSpace(order)) != "little" {
		return fmt.Errorf("byte order %.20q; save the file on a little-endian machine", order)
	}
	return nil
}

// readMember reads a small stored member and verifies its checksum.
func readMember(f *zip.File, limit uint64) ([]byte, error) {
	if f.Method != zip.Store {
		return nil, errors.New("compressed; torch stores members uncompressed")
	}
	if f.UncompressedSize64 > limit || f.UncompressedSize64 != f.CompressedSize64 {
		return nil, fmt.Errorf("%d bytes, %d in the archive; expected as many, and at most %d", f.UncompressedSize64, f.CompressedSize64, limit)
	}
	r, err := f.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	return io.ReadAll(r)
}

// storedAt returns the file offset of a storage's bytes.
func storedAt(f *zip.File, s *storage, fileSize int64) (int64, error) {
	want := s.numel * int64(s.dt.BlockBytes())
	if f.Method != zip.Store {
		return 0, errors.New("it is compressed; torch stores members uncompressed")
	}
	if f.UncompressedSize64 != uint64(want) || f.CompressedSize64 != uint64(want) {
		return 0, fmt.Errorf("%d elements of %s take %d bytes, the archive has %d", s.numel, s.dt, want, f.UncompressedSize64)
	}
	at, err := f.DataOffset()
	if err != nil {
		return 0, err
	}
	if at < 0 || at > fileSize || want > fileSize-at {
		return 0, errTruncated
	}
	return at, nil
}

// maxDirectory is the maximum size of an archive's directory, which takes several times as
// much memory. 100,000 tensors need 8 MB.
const maxDirectory = 64 << 20

// zipDirectory reads the directory of a zip archive.
func zipDirectory(data []byte) (*zip.Reader, error) {
	r := &limitedReader{bytes.NewReader(data), maxDirectory}
	z, err := zip.NewReader(r, int64(len(data)))
	if err != nil {
		return nil, fmt.Errorf("zip archive: %w; it may be truncated, download it again", err)
	}
	r.left = math.MaxInt64
	return z, nil
}

// A limitedReader reads at most a number of bytes.
type limitedReader struct {
	io.ReaderAt
	left int64
}

func (r *limitedReader) ReadAt(b []byte, at int64) (int, error) {
	if int64(len(b)) > r.left {
		return 0, fmt.Errorf("the directory has more than %d bytes", maxDirectory)
	}
	r.left -= int64(len(b))
	return r.ReaderAt.ReadAt(b, at)
}

// extents are the offsets of storages.
type extents map[*storage]int64

// disjoint returns an error for storages that share bytes, as members of an archive may
// that expands to many times its size.
func (e extents) disjoint() error {
	type extent struct {
		key     string
		at, end int64
	}
	var list []extent
	for s, at := range e {
		if s.numel > 0 {
			list = append(list, extent{s.key, at, at + s.numel*int64(s.dt.BlockBytes())})
		}
	}
	slices.SortFunc(list, func(a, b extent) int { return cmp.Or(cmp.Compare(a.at, b.at), strings.Compare(a.key, b.key)) })
	for i := 1; i < len(list); i++ {
		if list[i-1].end > list[i].at {
			return fmt.Errorf("storages %s and %s share bytes at offset %d; torch.save writes no such archive", list[i-1].key, list[i].key, list[i].at)
		}
	}
	return nil
}
