// Package npz reads archives of NumPy arrays (numpy.savez, numpy.lib.format versions 1 to
// 3), which hold the reference values for tests of models.
package npz

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"io"
	"math"
	"regexp"
	"strconv"
	"strings"

	"github.com/iflowc/iflowc/runtime/kit/regular"
)

// maxArray is the maximum size of one array in bytes; the hidden states of a prompt have
// a few MB. Compression by more than maxRatio is for arrays of up to anyRatio bytes.
const (
	maxArray = 1 << 28
	anyRatio = 1 << 23
	maxRatio = 32
)

// An Archive is an open archive. Arrays are read on demand.
type Archive struct {
	File    string // file name for error messages
	size    int64
	zip     *zip.Reader
	members map[string]*zip.File // by array name
	close   func() error
}

// An Array is an array in C order.
type Array struct {
	Shape []int
	F     []float64
}

// Open opens an archive and reads its directory.
func Open(file string) (*Archive, error) {
	f, size, err := regular.Open(file)
	if err != nil {
		return nil, err
	}
	n, err := Read(file, f, size)
	if err != nil {
		f.Close()
		return nil, err
	}
	n.close = f.Close
	return n, nil
}

// Read reads the directory of an archive of size bytes; file is the file name for error
// messages.
func Read(file string, r io.ReaderAt, size int64) (*Archive, error) {
	z, err := zip.NewReader(r, size)
	if err != nil {
		return nil, fmt.Errorf("%s: not an .npz archive: %w; write one with numpy.savez", file, err)
	}
	n := &Archive{File: file, size: size, zip: z, members: map[string]*zip.File{}}
	for _, m := range z.File {
		name := strings.TrimSuffix(m.Name, ".npy")
		if n.members[name] != nil {
			return nil, fmt.Errorf("%s: duplicate array %.80q", file, name)
		}
		n.members[name] = m
	}
	return n, nil
}

// Close closes the file that Open opened.
func (n *Archive) Close() error { return n.close() }

// Names returns the names of the arrays in archive order.
func (n *Archive) Names() []string {
	var names []string
	for _, m := range n.zip.File {
		names = append(names, strings.TrimSuffix(m.Name, ".npy"))
	}
	return names
}

// First returns the first of the named arrays that exists, or nil.
func (n *Archive) First(names ...string) (*Array, error) {
	for _, name := range names {
		m := n.members[name]
		if m == nil {
			continue
		}
		a, err := readMember(m, n.size)
		if err != nil {
			return nil, fmt.Errorf("%s: array %.80q: %w", n.File, name, err)
		}
		return a, nil
	}
	return nil, nil
}

// readMember reads an array of an archive of size bytes.
func readMember(m *zip.File, size int64) (*Array, error) {
	if m.Method != zip.Store && m.Method != zip.Deflate {
		return nil, fmt.Errorf("compressed by method %d, want stored or deflated", m.Method)
	}
	if most := min(maxArray, anyRatio+maxRatio*min(m.CompressedSize64, uint64(size))); m.UncompressedSize64 > most {
		return nil, fmt.Errorf("%d bytes of %d compressed ones, want at most %d; write it with numpy.savez", m.UncompressedSize64, m.CompressedSize64, most)
	}
	r, err := m.Open()
	if err != nil {
		return nil, err
	}
	defer r.Close()
	var data bytes.Buffer
	data.Grow(int(m.UncompressedSize64) + bytes.MinRead)
	if _, err := data.ReadFrom(r); err != nil { // as many bytes as were stated, or an error
		return nil, err
	}
	return parseNPY(data.Bytes())
}

var (
	npyDescr   = regexp.MustCompile(`'descr':\s*'([^']*)'`)
	npyFortran = regexp.MustCompile(`'fortran_order':\s*(True|False)`)
	npyShape   = regexp.MustCompile(`'shape':\s*\(([^()]*)\)`)
)

// parseNPY parses a .npy file: float32, float64 or int64, little-endian, in C order.
func parseNPY(data []byte) (*Array, error) {
	header, data, err := npyHeader(data)
	if err != nil {
		return nil, err
	}
	descr, fortran, shape := npyDescr.FindStringSubmatch(header), npyFortran.FindStringSubmatch(header), npyShape.FindStringSubmatch(header)
	if descr == nil || fortran == nil || shape == nil {
		return nil, fmt.Errorf("header %.80q lacks descr, fortran_order or shape", header)
	}
	read, ok := npyTypes[descr[1]]
	switch {
	case !ok:
		return nil, fmt.Errorf("type %.40q, want float32, float64 or int64, little endian (<f4, <f8, <i8)", descr[1])
	case fortran[1] == "True":
		return nil, fmt.Errorf("in Fortran order; save the result of numpy.ascontiguousarray")
	}
	a, size := &Array{}, read.size
	for s := range strings.SplitSeq(shape[1], ",") {
		if s = strings.TrimSpace(s); s == "" {
			continue
		}
		d, err := strconv.Atoi(s)
		if err != nil || d < 1 || d > len(data)/size {
			return nil, fmt.Errorf("shape (%.80s) does not fit %d bytes of data", shape[1], len(data))
		}
		a.Shape = append(a.Shape, d)
		size *= d
	}
	if size != len(data) {
		return nil, fmt.Errorf("%d bytes of data, but shape (%.80s) needs %d", len(data), shape[1], size)
	}
	a.F = make([]float64, len(data)/read.size)
	for i := range a.F {
		a.F[i] = read.value(data[i*read.size:])
	}
	return a, nil
}

// npyHeader splits a .npy file into its header text and its data.
func npyHeader(data []byte) (string, []byte, error) {
	if len(data) < 12 || string(data[:6]) != "\x93NUMPY" {
		return "", nil, fmt.Errorf("not an .npy file: it does not start with \\x93NUMPY")
	}
	at, n := 10, int(binary.LittleEndian.Uint16(data[8:]))
	if version := data[6]; version == 2 || version == 3 {
		at, n = 12, int(binary.LittleEndian.Uint32(data[8:]))
	} else if version != 1 {
		return "", nil, fmt.Errorf(".npy version %d, want 1, 2 or 3", version)
	}
	if n > len(data)-at {
		return "", nil, fmt.Errorf("header of %d bytes in a file of %d", n, len(data))
	}
	return string(data[at : at+n]), data[at+n:], nil
}

type npyType struct {
	size  int // in bytes
	value func([]byte) float64
}

var npyTypes = map[string]npyType{
	"<f4": {4, func(b []byte) float64 { return float64(math.Float32frombits(binary.LittleEndian.Uint32(b))) }},
	"<f8": {8, func(b []byte) float64 { return math.Float64frombits(binary.LittleEndian.Uint64(b)) }},
	"<i8": {8, func(b []byte) float64 { return float64(int64(binary.LittleEndian.Uint64(b))) }},
}
