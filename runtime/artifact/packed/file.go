package packed

import (
	"bytes"
	"crypto/sha256"
	"encoding/binary"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"runtime"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"unsafe"

	"golang.org/x/sys/unix"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// A File is an open file of packed weights, or one embedded in another file.
type File struct {
	name   string
	r      io.ReaderAt
	closer io.Closer
	start  int64 // start of the data in r
	index  *index
	id     string // SHA-256 of the index, in hexadecimal
	items  []Item
	region []byte // anonymous mapping; nil before Load
}

// again is the advice for a damaged file.
const again = "copy it here again, or compile again"

// Open opens a packed file and checks its header, index and size, but not its data; see
// Load.
func Open(path string) (*File, error) {
	f, size, err := regular.Open(path)
	if err != nil {
		return nil, err
	}
	p, err := OpenAt(f, path, 0, size)
	if err != nil {
		f.Close()
		return nil, err
	}
	p.closer = f
	return p, nil
}

// OpenAt opens a packed file of size bytes at an offset of r; name is its name in
// errors. r must stay open until Close.
func OpenAt(r io.ReaderAt, name string, offset, size int64) (*File, error) {
	fail := func(err error) (*File, error) {
		return nil, fmt.Errorf("%s: packed weights: %w; "+again, name, err)
	}
	var head [headBytes]byte
	if size < headBytes {
		return fail(errShort)
	}
	if _, err := r.ReadAt(head[:], offset); err != nil {
		return fail(err)
	}
	if string(head[:4]) != magic {
		return fail(fmt.Errorf("the file starts with %q, expected %q", head[:4], magic))
	}
	if v := binary.LittleEndian.Uint32(head[4:]); v != version {
		return fail(fmt.Errorf("format version %d, expected %d", v, version))
	}
	n := binary.LittleEndian.Uint64(head[8:])
	if n > maxIndexBytes || int64(n) > size-headBytes {
		return fail(fmt.Errorf("index of %d bytes in a file of %d: %w", n, size, errShort))
	}
	start := alignUp(headBytes+int64(n), page)
	if start > size {
		return fail(errShort)
	}
	rest := make([]byte, start-headBytes)
	if _, err := r.ReadAt(rest, offset+headBytes); err != nil {
		return fail(err)
	}
	text, zeros := rest[:n], rest[n:]
	sum := sha256.Sum256(text)
	if !bytes.Equal(sum[:], head[sumAt:]) {
		return fail(fmt.Errorf("the index is damaged: sha256 is %x, expected %x", sum, head[sumAt:]))
	}
	if i := bytes.IndexFunc(zeros, func(c rune) bool { return c != 0 }); i >= 0 {
		return fail(fmt.Errorf("byte %d after the index is damaged: expected 0", i))
	}
	index, err := decodeIndex(text)
	if err != nil {
		return fail(fmt.Errorf("index: %w", err))
	}
	items, err := index.items(size - start)
	if err != nil {
		return fail(fmt.Errorf("index: %w", err))
	}
	return &File{name: name, r: r, start: offset + start, index: index, id: hex.EncodeToString(sum[:]), items: items}, nil
}

// Name returns the file's name in errors.
func (p *File) Name() string { return p.name }

// Items lists the weights in packing order.
func (p *File) Items() []Item { return slices.Clone(p.items) }

// Source returns the fingerprint of the files that were packed.
func (p *File) Source() string {
	print, _, _ := strings.Cut(p.index.Source, "/")
	return print
}

// Made reports whether the file was made from files with a fingerprint, by a plan with a
// key.
func (p *File) Made(print, key string) bool { return p.index.Source == Source(print, key) }

// Source joins what Header writes as the source: the fingerprint of the packed files, and
// the key of the plan by which they were packed.
func Source(print, key string) string { return print + "/" + key }

// SHA256 returns the hash of the data in hexadecimal.
func (p *File) SHA256() string { return p.index.SHA256 }

// ID returns the hash of the index in hexadecimal. The index contains the hash of the
// data, so the ID identifies the whole file.
func (p *File) ID() string { return p.id }

// Bytes returns the size of the data.
func (p *File) Bytes() int64 { return p.index.Bytes }

const (
	hugePage  = 2 << 20
	readChunk = 4 << 20
)

// Load reads the data into anonymous memory, aligned to 2 MB and advised to use huge
// pages; item x is at [x.Offset, x.Offset+x.Bytes). If verify is set, it checks the
// data's hash, which about doubles the time. The memory is valid until Close; a second
// Load returns the same memory.
func (p *File) Load(verify bool) (mem []byte, err error) {
	if p.region == nil {
		// Two more huge pages: one for alignment, one so that the last is complete.
		length := int(alignUp(p.index.Bytes, hugePage)) + hugePage
		region, err := unix.Mmap(-1, 0, length, unix.PROT_READ|unix.PROT_WRITE, unix.MAP_PRIVATE|unix.MAP_ANON|unix.MAP_NORESERVE)
		if err != nil {
			return nil, fmt.Errorf("%s: no memory for %d MB of weights: %w", p.name, length>>20, err)
		}
		mem := alignedPart(region)
		// A last huge page that is less than half used would waste memory.
		if huge := (p.index.Bytes + hugePage/2) / hugePage * hugePage; huge > 0 {
			if err := adviseHuge(mem[:huge:cap(mem)]); err != nil {
				unix.Munmap(region)
				return nil, fmt.Errorf("%s: %w", p.name, err)
			}
		}
		if err := errors.Join(p.read(mem[:p.index.Bytes]), p.checkSparse(mem)); err != nil {
			unix.Munmap(region)
			return nil, fmt.Errorf("%s: %w", p.name, err)
		}
		p.region = region
	}
	mem = alignedPart(p.region)[:p.index.Bytes:p.index.Bytes]
	if verify {
		sum := sha256.Sum256(mem)
		if found := hex.EncodeToString(sum[:]); found != p.index.SHA256 {
			return nil, &DamagedError{p.name, found, p.index.SHA256}
		}
	}
	return mem, nil
}

// checkSparse checks the rows and columns of sparse outliers, which kernels use without
// checks.
func (p *File) checkSparse(mem []byte) error {
	for _, it := range p.items {
		if it.SparseOutliers == 0 {
			continue
		}
		end := it.Offset + it.Bytes
		if err := checkSparse(mem[end-SparseBytes(it.Rows, it.SparseOutliers):end], it.Rows, it.Cols, it.SparseOutliers); err != nil {
			return fmt.Errorf("packed weights are damaged: %s%v: %w; "+again, it.Name, it.Index, err)
		}
	}
	return nil
}

// alignedPart returns the part of a region between multiples of 2 MB.
func alignedPart(region []byte) []byte {
	at := uintptr(unsafe.Pointer(unsafe.SliceData(region)))
	skip := int(-at & (hugePage - 1))
	n := (len(region) - skip) &^ (hugePage - 1)
	return region[skip : skip+n : skip+n]
}

// read reads the data into mem with several goroutines.
func (p *File) read(mem []byte) error {
	var next atomic.Int64
	var failed atomic.Pointer[error]
	var wg sync.WaitGroup
	for range min(8, max(2, runtime.NumCPU())) {
		wg.Go(func() {
			for failed.Load() == nil {
				at := next.Add(readChunk) - readChunk
				if at >= int64(len(mem)) {
					return
				}
				piece := mem[at:min(int64(len(mem)), at+readChunk)]
				if n, err := p.r.ReadAt(piece, p.start+at); n < len(piece) {
					failed.Store(&err)
					return
				}
			}
		})
	}
	wg.Wait()
	if err := failed.Load(); err != nil {
		return fmt.Errorf("reading packed weights: %w", *err)
	}
	return nil
}

// Close frees the memory that Load returned and closes the file.
func (p *File) Close() error {
	var err error
	if p.region != nil {
		err = unix.Munmap(p.region)
		p.region = nil
	}
	if p.closer != nil {
		err = errors.Join(err, p.closer.Close())
		p.closer = nil
	}
	return err
}
