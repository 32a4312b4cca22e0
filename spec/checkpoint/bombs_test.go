package checkpoint

import (
	"bytes"
	"compress/flate"
	"encoding/binary"
	"fmt"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// Fields of a member in the directory of an archive, by offset.
const (
	methodAt = 10
	packedAt = 20 // and then the size unpacked
	headerAt = 42
)

// directoryEntry returns where the directory describes a member of an archive.
func directoryEntry(data []byte, name string) int {
	at := bytes.LastIndex(data, []byte(name)) - 46
	if at < 0 || string(data[at:at+4]) != "PK\x01\x02" {
		panic("no member " + name)
	}
	return at
}

// patched changes a field of the directory of an archive.
func patched(data []byte, name string, field int, value []byte) []byte {
	data = bytes.Clone(data)
	copy(data[directoryEntry(data, name)+field:], value)
	return data
}

// deflated compresses 16 MB of zeros to a thousandth.
func deflated(t testing.TB) []byte {
	var b bytes.Buffer
	w, err := flate.NewWriter(&b, flate.BestSpeed)
	for i := 0; err == nil && i < 16; i++ {
		_, err = w.Write(make([]byte, 1<<20))
	}
	if err == nil {
		err = w.Close()
	}
	if err != nil {
		t.Fatal(err)
	}
	return b.Bytes()
}

// twoTensors is a state dict of two tensors with storages of their own.
func twoTensors(first, second tensorCall) []byte {
	second.key = "1"
	a := newPickle().orderedDict().raw("(").text("a")
	a.tensor(first)
	a.text("b").tensor(second)
	return a.raw("u").done()
}

// refused checks that Open refuses a file at little cost, with a message.
func refused(t *testing.T, what string, data []byte, want ...string) {
	t.Helper()
	path := hostiletest.File(t, "m.bin", data)
	t.Run(what, func(t *testing.T) {
		hostiletest.Refused(t, len(data), func() error { return openAll(path) }, append(want, path)...)
	})
}

// TestZipBombs: archives that expand, overlap or lie are refused, at the cost of their own size.
func TestZipBombs(t *testing.T) {
	one := state(func(a *assembler) { a.tensor(plainTensor) })
	wide := plainTensor
	wide.numel, wide.size = 23, []int{7, 3} // 24 bytes, the next member's header of 44, and its 24
	two := archive(t, twoTensors(plainTensor, plainTensor), map[string][]byte{"0": sixFloats["0"], "1": sixFloats["0"]})
	covered := archive(t, twoTensors(wide, plainTensor), map[string][]byte{"0": sixFloats["0"], "1": sixFloats["0"]})
	good := archive(t, one, sixFloats)
	first := two[directoryEntry(two, "archive/data/0")+headerAt:][:4]
	end := bytes.LastIndex(good, []byte("PK\x05\x06"))
	zeros := deflated(t)
	packed := func(name string) []byte {
		members := map[string][]byte{"0": sixFloats["0"], "z": zeros}
		return patched(archive(t, one, members), name, methodAt, []byte{8})
	}
	for what, c := range map[string]struct {
		data []byte
		want string
	}{
		"same header":              {patched(two, "archive/data/1", headerAt, first), "storages 0 and 1 share bytes"},
		"header inside":            {patched(covered, "archive/data/0", packedAt, slices.Concat(u32(92), u32(92))), "storages 0 and 1 share bytes"},
		"compressed pickle":        {packed("archive/data.pkl"), "data.pkl: compressed; torch stores members uncompressed"},
		"compressed tensor":        {packed("archive/data/0"), "storage 0: it is compressed"},
		"compressed byte order":    {packed("archive/byteorder"), "byteorder: compressed"},
		"pickle of 4 GB":           {patched(good, "archive/data.pkl", packedAt, slices.Concat(u32(1<<32-2), u32(1<<32-2))), "data.pkl: 4294967294 bytes"},
		"pickle that expands":      {patched(good, "archive/data.pkl", packedAt+4, u32(1<<20)), "data.pkl: 1048576 bytes"},
		"tensor of 4 GB":           {patched(good, "archive/data/0", packedAt, slices.Concat(u32(1<<32-2), u32(1<<32-2))), "the archive has 4294967294"},
		"header past the end":      {patched(good, "archive/data/0", headerAt, u32(1<<31)), "storage 0"},
		"header elsewhere":         {patched(good, "archive/data/0", headerAt, u32(3)), "storage 0"},
		"65,535 members":           {slices.Concat(good[:end+8], u16s(65535, 65535), good[end+12:]), "zip archive"},
		"directory of 4 GB":        {slices.Concat(good[:end+12], u32(1<<32-2), good[end+16:]), "zip archive"},
		"directory elsewhere":      {slices.Concat(good[:end+16], u32(1<<31), good[end+20:]), "pytorch file"},
		"zip64 without a record":   {slices.Concat(good[:end+8], u16s(65535, 65535), u32(1<<32-1), u32(1<<32-1), good[end+20:]), "zip archive"},
		"zip64 record elsewhere":   {slices.Concat(good[:end], []byte("PK\x06\x07"), u32(0), u64(1<<62), u32(1), good[end:end+8], u16s(65535, 65535), u32(1<<32-1), u32(1<<32-1), good[end+20:]), "zip archive"},
		"data.pkl of two folders":  {bytes.ReplaceAll(good, []byte("archive/byteorder"), []byte("archiv22/data.pkl")), "duplicate archive member"},
		"the same member twice":    {bytes.ReplaceAll(two, []byte("data/1"), []byte("data/0")), "duplicate archive member"},
		"a directory for the data": {bytes.ReplaceAll(good, []byte("data/0"), []byte("data//")), "it is not in the archive"},
	} {
		refused(t, what, c.data, c.want)
	}
}

func u16s(vs ...uint16) (out []byte) {
	for _, v := range vs {
		out = binary.LittleEndian.AppendUint16(out, v)
	}
	return out
}

// TestManyMembers reads an archive of more members than 16 bits count, some with names that
// lead elsewhere, which nothing follows.
func TestManyMembers(t *testing.T) {
	members := map[string][]byte{"0": sixFloats["0"], "../../../etc/passwd": nil, "/etc/passwd": nil, "a\x00b": nil, `..\x`: nil}
	for i := range 1 << 16 {
		members[fmt.Sprint("x", i)] = nil
	}
	data := archive(t, state(func(a *assembler) { a.tensor(plainTensor) }), members)
	path := hostiletest.File(t, "m.bin", data)
	if err := hostiletest.Read(t, len(data), func() error { return openAll(path) }); err != nil {
		t.Error(err)
	}
	r := &limitedReader{bytes.NewReader(data), 1 << 10}
	if _, err := r.ReadAt(make([]byte, 1<<11), 0); err == nil || !strings.Contains(err.Error(), "the directory has more than") {
		t.Errorf("a directory without a limit: %v", err)
	}
}

// TestPickleBombs: what repeats, nests or states values at no length costs no more than its
// own length.
func TestPickleBombs(t *testing.T) {
	laughs := func(open, shut string) []byte { // each list or tuple has the one before fifty times
		p := newPickle().raw("(").text("ha").raw("t")
		for i := range 100 {
			p.raw("q" + string([]byte{byte(i)}) + "0" + open + strings.Repeat("h"+string([]byte{byte(i)}), 50) + shut)
		}
		return p.done()
	}
	big := plainTensor
	big.key, big.numel, big.size, big.stride = "1", 4096, []int{4096}, []int{1}
	many := func(n int, name func(i int) string) []byte { // names of one storage
		p := newPickle().orderedDict().raw("(").text("w").tensor(big).raw("q\x01")
		for i := range n {
			p.text(name(i)).raw("h\x01")
		}
		return p.raw("u").done()
	}
	legacy := newPickle().raw("\x8a\x0a" + string(legacyMagic)).done()
	for what, c := range map[string]struct {
		program []byte
		want    string
	}{
		"laughing lists":        {laughs("](", "e"), "contains a list"},
		"laughing tuples":       {laughs("(", "t"), "contains a tuple"},
		"a list in itself":      {[]byte("\x80\x02]q\x00h\x00a."), "contains a list"},
		"a dict in itself":      {newPickle().raw("}q\x00").text("model").raw("h\x00s.").done(), "no tensors"},
		"nested tuples":         {[]byte("\x80\x02]" + strings.Repeat("\x85", 200_000) + "."), "contains a tuple"},
		"marks":                 {[]byte("\x80\x02" + strings.Repeat("(", 200_000) + strings.Repeat("t", 200_000) + "."), "contains a tuple"},
		"marks alone":           {[]byte("\x80\x02" + strings.Repeat("(", 100_000)), "unterminated"},
		"appends":               {[]byte("\x80\x02]" + strings.Repeat("(e", 300_000) + "."), "contains a list"},
		"memo":                  {[]byte("\x80\x02]" + strings.Repeat("\x94", 300_000) + "."), "contains a list"},
		"a distant memo":        {append(binary.LittleEndian.AppendUint32([]byte("\x80\x02]r"), 1<<32-1), "."...), "contains a list"},
		"copies":                {[]byte("\x80\x02]" + strings.Repeat("2", 300_000) + "."), "contains a list"},
		"BINUNICODE8":           {slices.Concat([]byte("\x80\x04\x8d"), u64(1<<62), []byte("x.")), "string of 4611686018427387904 bytes"},
		"BINUNICODE":            {slices.Concat([]byte("\x80\x04X"), u32(1<<20), []byte("x.")), "need 1048576 bytes"},
		"LONG4":                 {slices.Concat([]byte("\x80\x04\x8b"), u32(1<<31-1), []byte("x.")), "integer of 2147483647 bytes"},
		"LONG1":                 {[]byte("\x80\x02\x8a\xffx."), "need 255 bytes"},
		"a number of 1 MB":      {[]byte("\x80\x02I" + strings.Repeat("9", 1<<20-1) + "\n."), "is not an integer of 64 bits"},
		"a place of 1 MB":       {[]byte("\x80\x02]p" + strings.Repeat("9", 1<<20-1) + "\n."), "is no place of the memo"},
		"a line without an end": {[]byte("\x80\x02I" + strings.Repeat("9", 2<<20)), "unterminated text argument"},
		"a global of 1 MB":      {[]byte("\x80\x02c" + strings.Repeat("o", 1<<19) + "\n" + strings.Repeat("s", 1<<19) + "\n)R."), "tries to run code"},
		"FRAME":                 {slices.Concat([]byte("\x80\x05\x95"), u64(1<<63), []byte("].")), "frame of 9223372036854775808 bytes"},
		"BYTEARRAY8":            {slices.Concat([]byte("\x80\x05\x96"), u64(1<<40), []byte("x.")), "0x96 at 2 is not allowed"},
		"NEXT_BUFFER":           {[]byte("\x80\x05\x97."), "0x97 at 2 is not allowed"},
		"BYTES8":                {slices.Concat([]byte("\x80\x04\x8e"), u64(1<<40), []byte("x.")), "0x8e at 2 is not allowed"},
		"one storage, often":    {many(200, func(i int) string { return fmt.Sprint(i) }), "more than 64 times the file's bytes"},
		"one name, often":       {many(100, func(int) string { return "x" }), `tensor "x" occurs twice`},
		"a long name":           {many(1, func(int) string { return strings.Repeat("n", 1<<20) }), "a tensor's name has 1048576 bytes"},
		"pickles in a row":      {bytes.Repeat(legacy, 1000), "contains a number"},
	} {
		refused(t, what, archive(t, c.program, map[string][]byte{"1": checkpointtest.Ramp("", 0, 4096).Raw}), c.want)
	}
	for what, op := range map[string]string{"push": "N", "memoize": "\x94", "put": "q\x00"} {
		p := &pickleMachine{data: []byte("N" + strings.Repeat(op, 4) + "."), values: maxPickleValues - 3}
		if _, _, err := p.run(); err == nil || !strings.Contains(err.Error(), "more than 8388608 values") {
			t.Errorf("%s: error %v", what, err)
		}
	}
}

// TestViews: a tensor has no more elements than its storage, whatever its strides.
func TestViews(t *testing.T) {
	for want, c := range map[string]struct{ size, stride []int }{
		"sizes [1000000000000]":             {[]int{1_000_000_000_000}, []int{0}},
		"sizes [1000000 1000000] and":       {[]int{1_000_000, 1_000_000}, []int{0}},
		"sizes [1000000 1000000], str":      {[]int{1_000_000, 1_000_000}, []int{0, 0}},
		"sizes [4 4], strides [0 1]":        {[]int{4, 4}, []int{0, 1}},
		"sizes [3 3], strides [1 1]":        {[]int{3, 3}, []int{1, 1}},
		"sizes [9223372036854775807 2], s":  {[]int{1<<63 - 1, 2}, []int{0, 0}},
		"sizes [2 2], strides [9223372036":  {[]int{2, 2}, []int{1<<63 - 1, 1<<63 - 1}},
		"negative sizes [0 -5]":             {[]int{0, -5}, []int{1, 1}},
		"negative sizes [2 3], strides [-3": {[]int{2, 3}, []int{-3, 1}},
		"arguments storage, number, tuple,": {make([]int, 9), make([]int, 9)},
	} {
		call := plainTensor
		call.size, call.stride = c.size, c.stride
		refused(t, want, archive(t, state(func(a *assembler) { a.tensor(call) }), sixFloats), want)
	}
}

// TestIndexBombs: shard indexes that nest, repeat, or name what they must not.
func TestIndexBombs(t *testing.T) {
	shard := checkpointtest.Safetensors(checkpointtest.Ramp("a", 0, 4))
	entries := func(n int, entry string) string {
		var b strings.Builder
		for i := range n {
			fmt.Fprintf(&b, entry+",", i)
		}
		return `{"weight_map":{` + b.String() + `"a":"a.safetensors"}}`
	}
	for what, c := range map[string][2]string{
		"lists":            {`{"weight_map":` + strings.Repeat("[", 1<<16), "max depth"},
		"objects":          {strings.Repeat(`{"weight_map":`, 1<<14), "max depth"},
		"a number":         {`{"weight_map":{"a":` + strings.Repeat("9", 1<<16) + `}}`, "not a shard index"},
		"one name":         {`{"weight_map":{` + strings.Repeat(`"a":"b.safetensors",`, 1<<12) + `"a":"a.safetensors"}}`, ""},
		"names":            {entries(1<<12, `"t%d":"a.safetensors"`), ""},
		"shards":           {entries(1<<12, `"t%d":"%[1]d.safetensors"`), "is missing; download it too"},
		"one file's names": {entries(9, `"t%d":"%[1]d/../a.safetensors"`), ""},
		"elsewhere":        {entries(1, `"t%d":"../a.safetensors"`), "outside the model's folder"},
		"a device":         {entries(1, `"t%d":"/dev/zero"`), "outside the model's folder"},
		"itself":           {entries(1, `"t%d":"model.safetensors.index.json"`), "model.safetensors.index.json"},
		"a folder":         {entries(1, `"t%d":"."`), "not a regular file"},
		"a NUL":            {entries(1, `"t%d":"a\u0000.safetensors"`), "invalid argument"},
	} {
		dir := hostiletest.Folder(t, map[string][]byte{"model.safetensors.index.json": []byte(c[0]), "a.safetensors": shard})
		t.Run(what, func(t *testing.T) {
			hostiletest.Refused(t, len(c[0]), func() error { return openAll(dir) }, c[1])
		})
	}
}
