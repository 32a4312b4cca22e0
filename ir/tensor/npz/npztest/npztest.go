// Package npztest writes archives of NumPy arrays for tests.
package npztest

import (
	"archive/zip"
	"bytes"
	"encoding/binary"
	"fmt"
	"maps"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
)

// NPY returns a .npy file of the values in the format of numpy.save.
func NPY(descr string, shape []int, values []float64) []byte {
	dims := ""
	for _, d := range shape {
		dims += fmt.Sprintf("%d,", d)
	}
	header := fmt.Sprintf("{'descr': '%s', 'fortran_order': False, 'shape': (%s), }", descr, dims)
	header += strings.Repeat(" ", 63-(10+len(header))%64) + "\n"
	out := append([]byte("\x93NUMPY\x01\x00"), byte(len(header)), byte(len(header)>>8))
	out = append(out, header...)
	for _, x := range values {
		switch descr {
		case "<f4":
			out = binary.LittleEndian.AppendUint32(out, math.Float32bits(float32(x)))
		case "<f8":
			out = binary.LittleEndian.AppendUint64(out, math.Float64bits(x))
		default:
			out = binary.LittleEndian.AppendUint64(out, uint64(int64(x)))
		}
	}
	return out
}

// Write writes arrays to a file, alternately stored and deflated, and returns its path.
func Write(t testing.TB, arrays map[string][]byte) string {
	t.Helper()
	var b bytes.Buffer
	z := zip.NewWriter(&b)
	for i, name := range slices.Sorted(maps.Keys(arrays)) {
		w, err := z.CreateHeader(&zip.FileHeader{Name: name + ".npy", Method: []uint16{zip.Store, zip.Deflate}[i%2]})
		if err != nil {
			t.Fatal(err)
		}
		if _, err := w.Write(arrays[name]); err != nil {
			t.Fatal(err)
		}
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	file := filepath.Join(t.TempDir(), "dump.npz")
	if err := os.WriteFile(file, b.Bytes(), 0o644); err != nil {
		t.Fatal(err)
	}
	return file
}
