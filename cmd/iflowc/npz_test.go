package main

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

// npy is a .npy file of the values as numpy.save writes it.
func npy(descr string, shape []int, values []float64) []byte {
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

// writeNPZ writes arrays to a file, stored and deflated by turns.
func writeNPZ(t testing.TB, arrays map[string][]byte) string {
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

// TestNPZ reads each type, stored and deflated, of one and of no dimension.
func TestNPZ(t *testing.T) {
	t.Parallel()
	want := map[string]ndarray{
		"a": {[]int{2, 3}, []float64{1, -2, 0.5, 4, 5, 6}},
		"b": {[]int{2}, []float64{1e300, -0.1}},
		"c": {nil, []float64{-7}},
	}
	ref, err := openNPZ(writeNPZ(t, map[string][]byte{
		"a": npy("<f4", []int{2, 3}, want["a"].F), "b": npy("<f8", []int{2}, want["b"].F), "c": npy("<i8", nil, want["c"].F),
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Close()
	for name, w := range want {
		a, err := ref.first("none", name)
		if err != nil || !slices.Equal(a.Shape, w.Shape) || !slices.Equal(a.F, w.F) {
			t.Errorf("%s: %v, %v, want %v", name, a, err, w)
		}
	}
	if a, err := ref.first("none"); a != nil || err != nil {
		t.Errorf("an array that is not there: %v, %v", a, err)
	}
}

// TestNPYRefuses: what is not such a file says what is wrong with it.
func TestNPYRefuses(t *testing.T) {
	t.Parallel()
	good := npy("<f4", []int{2, 2}, []float64{1, 2, 3, 4})
	replaced := func(old, new string) []byte { return bytes.Replace(good, []byte(old), []byte(new), 1) }
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "no .npy file"},
		{good[:20], "header of"},
		{good[:len(good)-1], "does not fit"},
		{append(slices.Clone(good), 0), "17 bytes of data"},
		{replaced("NUMPY\x01", "NUMPY\x07"), "version 7"},
		{replaced("<f4", ">f4"), `type ">f4"`},
		{replaced("<f4", "|O'"), "type"},
		{replaced("False", "True "), "Fortran"},
		{replaced("descr", "discr"), "lacks descr"},
		{npy("<f4", []int{1 << 40, 1 << 40}, nil), "does not fit"},
		{npy("<f4", []int{-1}, []float64{1}), "does not fit"},
		{npy("<f4", []int{0}, nil), "does not fit"},
	} {
		if a, err := parseNPY(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, %v, want %s", c.data, a, err, c.want)
		}
	}
}

// FuzzNPZ: whatever a file holds, reading it ends in arrays or an error.
func FuzzNPZ(f *testing.F) {
	for _, data := range [][]byte{npy("<f4", []int{2}, []float64{1, 2}), npy("<i8", nil, []float64{3}), []byte("\x93NUMPY")} {
		f.Add(data)
		file, err := os.ReadFile(writeNPZ(f, map[string][]byte{"ids": data, "hidden.0": data}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file)
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		if a, err := parseNPY(data); err == nil && len(a.F)*4 > len(data) {
			t.Errorf("%d values of %d bytes", len(a.F), len(data))
		}
		ref, err := readNPZ("f.npz", bytes.NewReader(data), int64(len(data)))
		if err != nil {
			return
		}
		for name := range ref.members {
			_, _ = ref.first(name)
		}
	})
}
