package checkpoint

import (
	"archive/zip"
	"bytes"
	"hash/crc32"
	"io"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// An assembler writes pickles opcode by opcode.
type assembler struct{ bytes.Buffer }

func newPickle() *assembler {
	a := &assembler{}
	return a.raw("\x80\x02")
}

func (a *assembler) raw(s string) *assembler { a.WriteString(s); return a }

func (a *assembler) text(s string) *assembler {
	a.raw("X")
	a.Write(u32(uint32(len(s))))
	return a.raw(s)
}

func (a *assembler) int(n int) *assembler {
	if int(int32(n)) == n {
		a.raw("J")
		a.Write(u32(uint32(n)))
		return a
	}
	a.raw("\x8a\x08")
	a.Write(u64(uint64(n)))
	return a
}

func (a *assembler) ints(ns ...int) *assembler {
	a.raw("(")
	for _, n := range ns {
		a.int(n)
	}
	return a.raw("t")
}

func (a *assembler) global(module, name string) *assembler {
	return a.raw("c" + module + "\n" + name + "\n")
}

func (a *assembler) orderedDict() *assembler { return a.global("collections", "OrderedDict").raw(")R") }

// A tensorCall is a call that rebuilds a tensor.
type tensorCall struct {
	class, key    string
	numel, offset int
	size, stride  []int
	legacy        bool
}

var plainTensor = tensorCall{"FloatStorage", "0", 6, 0, []int{2, 3}, []int{3, 1}, false}

func (a *assembler) tensor(c tensorCall) *assembler {
	a.global("torch._utils", "_rebuild_tensor_v2").raw("((").text("storage").global("torch", c.class).text(c.key).text("cpu").int(c.numel)
	if c.legacy {
		a.raw("N")
	}
	return a.raw("tQ").int(c.offset).ints(c.size...).ints(c.stride...).raw("\x89").orderedDict().raw("tR")
}

func (a *assembler) done() []byte { return append(bytes.Clone(a.Bytes()), '.') }

// state is a state dict with one tensor "w".
func state(build func(a *assembler)) []byte {
	a := newPickle().orderedDict().raw("(").text("w")
	build(a)
	return a.raw("u").done()
}

func archive(t testing.TB, program []byte, members map[string][]byte) []byte {
	t.Helper()
	var buf bytes.Buffer
	z := zip.NewWriter(&buf)
	add := func(name string, data []byte) {
		w, err := z.CreateRaw(&zip.FileHeader{Name: name, Method: zip.Store, CRC32: crc32.ChecksumIEEE(data),
			CompressedSize64: uint64(len(data)), UncompressedSize64: uint64(len(data))})
		if err == nil {
			_, err = io.Copy(w, bytes.NewReader(data))
		}
		if err != nil {
			t.Fatal(err)
		}
	}
	add("archive/data.pkl", program)
	add("archive/byteorder", []byte("little"))
	for _, name := range slices.Sorted(mapKeys(members)) {
		add("archive/data/"+name, members[name])
	}
	if err := z.Close(); err != nil {
		t.Fatal(err)
	}
	return buf.Bytes()
}

func mapKeys(m map[string][]byte) func(yield func(string) bool) {
	return func(yield func(string) bool) {
		for k := range m {
			if !yield(k) {
				return
			}
		}
	}
}

// sixFloats are the values 0 to 5.
var sixFloats = map[string][]byte{"0": checkpointtest.Ramp("", 0, 6).Raw}

// legacyFile returns a file in the format before zip archives.
func legacyFile(stateDict []byte, key string, numel uint64, data []byte) []byte {
	return slices.Concat(
		newPickle().raw("\x8a\x0a"+string(legacyMagic)).done(),
		newPickle().int(legacyProtocol).done(),
		newPickle().raw("}(").text("little_endian").raw("\x88u").done(),
		stateDict,
		newPickle().raw("](").text(key).raw("e").done(),
		u64(numel), data)
}

func TestPickle(t *testing.T) {
	t.Parallel()
	legacy := plainTensor
	legacy.legacy = true
	transposed, part := plainTensor, plainTensor
	transposed.size, transposed.stride = []int{3, 2}, []int{1, 3}
	part.offset, part.size, part.stride = 2, []int{2, 2}, []int{2, 1}
	build := func(c tensorCall) func(a *assembler) { return func(a *assembler) { a.tensor(c) } }
	for name, c := range map[string]struct {
		file []byte
		want []float32
	}{
		"zip":        {archive(t, state(build(plainTensor)), sixFloats), []float32{0, 1, 2, 3, 4, 5}},
		"transposed": {archive(t, state(build(transposed)), sixFloats), []float32{0, 3, 1, 4, 2, 5}},
		"offset":     {archive(t, state(build(part)), sixFloats), []float32{2, 3, 4, 5}},
		"legacy":     {legacyFile(state(build(legacy)), "0", 6, sixFloats["0"]), []float32{0, 1, 2, 3, 4, 5}},
		"parameter": {archive(t, state(func(a *assembler) {
			a.global("torch._utils", "_rebuild_parameter").raw("(").tensor(plainTensor).raw("\x88").orderedDict().raw("tR")
		}), sixFloats), []float32{0, 1, 2, 3, 4, 5}},
		"wrapped": {archive(t, newPickle().raw("}(").text("epoch").int(3).text("state_dict").raw("}(").text("w").tensor(plainTensor).raw("uu").done(), sixFloats),
			[]float32{0, 1, 2, 3, 4, 5}},
		"metadata": {archive(t, newPickle().orderedDict().raw("(").text("w").tensor(plainTensor).raw("u}(").text("_metadata").orderedDict().raw("ub").done(), sixFloats),
			[]float32{0, 1, 2, 3, 4, 5}},
	} {
		s := openBytes(t, "pytorch_model.bin", c.file)
		if got := floatsOf(t, s, "w"); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v, want %v", name, got, c.want)
		}
		if i, _ := s.Lookup("w"); s.Format() != "pickle" || i.DType != tensor.F32 || i.Bytes != int64(4*len(c.want)) {
			t.Errorf("%s: %s %+v", name, s.Format(), i)
		}
	}
}

// Every construct that could run code is an error, wherever it occurs.
func TestPickleRunsNothing(t *testing.T) {
	t.Parallel()
	call := func(module, name string) func(a *assembler) {
		return func(a *assembler) { a.global(module, name).raw("(").text("touch x").raw("tR") }
	}
	for name, build := range map[string]func(a *assembler){
		"os.system": call("os", "system"), "eval": call("builtins", "eval"), "getattr": call("builtins", "getattr"),
		"load": call("torch.storage", "_load_from_bytes"), "class": call("torch", "FloatStorage"), "near": call("torch._utils", "_rebuild_tensor_v3"),
		"stack global": func(a *assembler) { a.raw("\x8c\x02os\x8c\x06system\x93)R") },
		"inst":         func(a *assembler) { a.raw("(ios\nsystem\n") },
		"obj":          func(a *assembler) { a.raw("(").global("collections", "OrderedDict").raw("o") },
		"newobj":       func(a *assembler) { a.global("collections", "OrderedDict").raw(")\x81") },
		"extension":    func(a *assembler) { a.raw("\x82\x01") },
		"in an argument": func(a *assembler) {
			a.global("torch._utils", "_rebuild_tensor_v2").raw("(")
			call("os", "system")(a)
			a.raw("tR")
		},
		"in a persistent id": func(a *assembler) {
			a.raw("(").text("storage")
			call("os", "system")(a)
			a.raw("tQ")
		},
		"attributes of a tensor": func(a *assembler) { a.tensor(plainTensor).raw("}b") },
		"call of a text":         func(a *assembler) { a.text("x").raw(")R") },
	} {
		_, err := Open(writeFile(t, t.TempDir(), "m.bin", archive(t, state(build), sixFloats)))
		if err == nil || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: error %v", name, err)
		}
	}
}

func TestBadPickles(t *testing.T) {
	t.Parallel()
	change := func(f func(c *tensorCall)) []byte {
		c := plainTensor
		f(&c)
		return archive(t, state(func(a *assembler) { a.tensor(c) }), sixFloats)
	}
	legacy := plainTensor
	legacy.legacy = true
	oldState := state(func(a *assembler) { a.tensor(legacy) })
	good := archive(t, state(func(a *assembler) { a.tensor(plainTensor) }), sixFloats)
	for want, data := range map[string][]byte{
		"reach past":                  change(func(c *tensorCall) { c.size = []int{4, 3} }),
		"or offset -1":                change(func(c *tensorCall) { c.offset = -1 }),
		"overflow":                    change(func(c *tensorCall) { c.size, c.stride = []int{1 << 33, 1 << 33}, []int{1, 1} }),
		"sizes [1000 6]":              change(func(c *tensorCall) { c.size, c.stride = []int{1000, 6}, []int{0, 1} }),
		"is not a number":             change(func(c *tensorCall) { c.key = "../0" }),
		"not in the archive":          change(func(c *tensorCall) { c.key = "1" }),
		"take 28 bytes":               change(func(c *tensorCall) { c.numel = 7 }),
		"storage of -6":               change(func(c *tensorCall) { c.numel = -6 }),
		"not allowed in weight files": change(func(c *tensorCall) { c.class = "QuuxStorage" }),
		"sizes [2 3] and strides":     change(func(c *tensorCall) { c.stride = []int{1} }),
		"contains a list":             archive(t, newPickle().raw("]").done(), nil),
		"no tensors":                  archive(t, newPickle().raw("}(").text("a").int(1).raw("u").done(), nil),
		"unterminated":                archive(t, []byte("\x80\x02]"), nil),
		"stack is empty":              archive(t, []byte("\x80\x02R."), nil),
		"no mark":                     archive(t, []byte("\x80\x02]t."), nil),
		"never stored":                archive(t, []byte("\x80\x02h\x07."), nil),
		"protocol 99":                 archive(t, []byte("\x80\x63]."), nil),
		"frame of":                    archive(t, []byte("\x80\x04\x95\xff\xff\xff\xff\xff\xff\xff\x7f]."), nil),
		"zip archive":                 good[:len(good)/2],
		"torch.save did not write":    newPickle().int(12345).done(),
		"storage 0: the file ends":    legacyFile(oldState, "0", 6, make([]byte, 20)),
		"its tensors state 6":         legacyFile(oldState, "0", 1<<60, sixFloats["0"]),
		"belongs to no tensor":        legacyFile(oldState, "1", 6, sixFloats["0"]),
	} {
		_, err := Open(writeFile(t, t.TempDir(), "m.bin", data))
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("error %v, want …%s…", err, want)
		}
	}
}

func FuzzPickle(f *testing.F) {
	legacy := plainTensor
	legacy.legacy = true
	f.Add(archive(f, state(func(a *assembler) { a.tensor(plainTensor) }), sixFloats))
	f.Add(legacyFile(state(func(a *assembler) { a.tensor(legacy) }), "0", 6, sixFloats["0"]))
	f.Add([]byte("\x80\x02(\x8c\x02osq\x00h\x00)\x85]}\x93R."))
	f.Fuzz(func(t *testing.T, data []byte) {
		if len(data) == 0 {
			return
		}
		fuzzReader(t, "x", data, readPickle)
		// Run only the machine, without the checksum of the container.
		storageTable{}.runPickle(data)
	})
}
