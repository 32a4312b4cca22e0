package npz

import (
	"bytes"
	"os"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor/npz/npztest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// TestNPZ reads each type, stored and deflated, with one and with zero dimensions.
func TestNPZ(t *testing.T) {
	t.Parallel()
	want := map[string]Array{
		"a": {[]int{2, 3}, []float64{1, -2, 0.5, 4, 5, 6}},
		"b": {[]int{2}, []float64{1e300, -0.1}},
		"c": {nil, []float64{-7}},
	}
	ref, err := Open(npztest.Write(t, map[string][]byte{
		"a": npztest.NPY("<f4", []int{2, 3}, want["a"].F), "b": npztest.NPY("<f8", []int{2}, want["b"].F), "c": npztest.NPY("<i8", nil, want["c"].F),
	}))
	if err != nil {
		t.Fatal(err)
	}
	defer ref.Close()
	for name, w := range want {
		a, err := ref.First("none", name)
		if err != nil || !slices.Equal(a.Shape, w.Shape) || !slices.Equal(a.F, w.F) {
			t.Errorf("%s: %v, %v, want %v", name, a, err, w)
		}
	}
	if a, err := ref.First("none"); a != nil || err != nil {
		t.Errorf("an array that is not there: %v, %v", a, err)
	}
}

// TestNPYRefuses checks the errors for invalid files.
func TestNPYRefuses(t *testing.T) {
	t.Parallel()
	good := npztest.NPY("<f4", []int{2, 2}, []float64{1, 2, 3, 4})
	replaced := func(old, new string) []byte { return bytes.Replace(good, []byte(old), []byte(new), 1) }
	for _, c := range []struct {
		data []byte
		want string
	}{
		{nil, "not an .npy file"},
		{good[:20], "header of"},
		{good[:len(good)-1], "does not fit"},
		{append(slices.Clone(good), 0), "17 bytes of data"},
		{replaced("NUMPY\x01", "NUMPY\x07"), "version 7"},
		{replaced("<f4", ">f4"), `type ">f4"`},
		{replaced("<f4", "|O'"), "type"},
		{replaced("False", "True "), "Fortran"},
		{replaced("descr", "discr"), "lacks descr"},
		{npztest.NPY("<f4", []int{1 << 40, 1 << 40}, nil), "does not fit"},
		{npztest.NPY("<f4", []int{-1}, []float64{1}), "does not fit"},
		{npztest.NPY("<f4", []int{0}, nil), "does not fit"},
	} {
		if a, err := parseNPY(c.data); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%.40q: %v, %v, want %s", c.data, a, err, c.want)
		}
	}
}

// TestBombs: arrays that expand, lie or repeat are refused at little cost.
func TestBombs(t *testing.T) {
	for what, c := range map[string]struct {
		arrays         map[string][]byte
		old, new, want string
	}{
		"zeros":      {map[string][]byte{"a": nil, "x": make([]byte, 9<<20)}, "", "", "9437184 bytes of"},
		"other zip":  {map[string][]byte{"a": nil}, "PK\x05\x06", "PK\x05\x05", "not an .npz archive"},
		"twice":      {map[string][]byte{"x": nil, "y": nil}, "y.npy", "x.npy", "duplicate array"},
		"long shape": {map[string][]byte{"x": npztest.NPY("<f4", slices.Repeat([]int{2}, 9000), nil)}, "", "", "does not fit"},
		"long type":  {map[string][]byte{"x": npztest.NPY(strings.Repeat("f", 30_000), nil, nil)}, "", "", `type "ffff`},
	} {
		data, err := os.ReadFile(npztest.Write(t, c.arrays))
		if err != nil {
			t.Fatal(err)
		}
		path := hostiletest.File(t, "x.npz", bytes.ReplaceAll(data, []byte(c.old), []byte(c.new)))
		t.Run(what, func(t *testing.T) {
			hostiletest.Refused(t, len(data), func() error { return readAll(path) }, path, c.want)
		})
	}
}

// readAll opens an archive and reads its arrays, of which those that begin with x must be
// sound.
func readAll(path string) error {
	ref, err := Open(path)
	if err != nil {
		return err
	}
	defer ref.Close()
	for _, name := range ref.Names() {
		if _, err := ref.First(name); err != nil && strings.HasPrefix(name, "x") {
			return err
		}
	}
	return nil
}

// FuzzNPZ opens any file, and archives of any array whose checksums are right.
func FuzzNPZ(f *testing.F) {
	for _, data := range [][]byte{npztest.NPY("<f4", []int{2}, []float64{1, 2}), npztest.NPY("<i8", nil, []float64{3}), []byte("\x93NUMPY")} {
		f.Add([]byte{}, data)
		file, err := os.ReadFile(npztest.Write(f, map[string][]byte{"ids": data, "hidden.0": data}))
		if err != nil {
			f.Fatal(err)
		}
		f.Add(file, []byte{})
	}
	f.Fuzz(func(t *testing.T, data, array []byte) {
		path := hostiletest.File(t, "f.npz", data)
		if len(data) == 0 {
			path = npztest.Write(t, map[string][]byte{"x": array, "y": array})
		}
		_ = hostiletest.Read(t, len(data)+len(array), func() error { return readAll(path) })
	})
}
