package checkpoint

import (
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

func TestOpenShards(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "model-00001-of-00002.safetensors", checkpointtest.Safetensors(checkpointtest.Ramp("a", 1, 2)))
	writeFile(t, dir, "model-00002-of-00002.safetensors", checkpointtest.Safetensors(checkpointtest.Ramp("b", 5, 2)))
	noIndex, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	noIndex.Close()
	index := `{"metadata":{"total_size":16},"weight_map":{"a":"model-00001-of-00002.safetensors","b":"model-00002-of-00002.safetensors"}}`
	writeFile(t, dir, "model.safetensors.index.json", []byte(index))
	s, err := OpenDir(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if !slices.Equal(floatsOf(t, s, "a"), []float32{1, 2}) || !slices.Equal(floatsOf(t, s, "b"), []float32{5, 6}) {
		t.Error("values of the shards")
	}
	if f := s.Files(); len(f) != 3 || !strings.HasSuffix(f[0], ".index.json") {
		t.Errorf("files %v", f)
	}
}

func TestOpenSplitGGUF(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	first := writeFile(t, dir, "m-00001-of-00002.gguf", checkpointtest.GGUF(sampleMeta(), checkpointtest.Ramp("a", 1, 2)))
	if _, err := Open(first); err == nil || !strings.Contains(err.Error(), "m-00002-of-00002.gguf") {
		t.Errorf("a missing file of a split model: %v", err)
	}
	writeFile(t, dir, "m-00002-of-00002.gguf", checkpointtest.GGUF([]checkpointtest.GGUFPair{checkpointtest.Pair("flag", 7, []byte{0})}, checkpointtest.Ramp("b", 5, 2)))
	if _, err := Open(strings.Replace(first, "00001-of", "00002-of", 1)); err == nil || !strings.Contains(err.Error(), "part 2 of 2 of a split model; give the first one, m-00001-of-00002.gguf") {
		t.Errorf("a later part: %v", err)
	}
	for _, path := range []string{first, dir} {
		s, err := Open(path)
		if err != nil {
			t.Fatal(err)
		}
		if len(s.Tensors()) != 2 || s.Meta()["flag"] != true {
			t.Errorf("%s: %d tensors, metadata %v", path, len(s.Tensors()), s.Meta())
		}
		s.Close()
	}
}

// TestIndexDecides: of two shards with a tensor the index names one; a name without a tensor is
// a note, and a whole file comes before an index.
func TestIndexDecides(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "base.safetensors", checkpointtest.Safetensors(checkpointtest.Ramp("a", 1, 2), checkpointtest.Ramp("b", 3, 2)))
	writeFile(t, dir, "over.safetensors", checkpointtest.Safetensors(checkpointtest.Ramp("a", 7, 2), checkpointtest.Ramp("c", 9, 2)))
	writeFile(t, dir, "model.safetensors.index.json", []byte(`{"weight_map":{"a":"over.safetensors","b":"base.safetensors","gone":"base.safetensors"}}`))
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	for name, want := range map[string][]float32{"a": {7, 8}, "b": {3, 4}, "c": {9, 10}} {
		if got := floatsOf(t, s, name); !slices.Equal(got, want) {
			t.Errorf("%s: have %v, want %v", name, got, want)
		}
	}
	if notes := strings.Join(s.Notes(), "\n"); !strings.Contains(notes, `1 tensors of the index are not in their shards, such as "gone"`) {
		t.Errorf("notes %q", notes)
	}
	if _, err := s.Bytes("gone"); !slices.Equal(s.Absent(), []string{"gone"}) || err == nil || !strings.Contains(err.Error(), `lists the tensor "gone"`) {
		t.Errorf("absent %q: %v", s.Absent(), err)
	}
	writeFile(t, dir, "model.safetensors", checkpointtest.Safetensors(checkpointtest.Ramp("a", 5, 2)))
	whole, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer whole.Close()
	if n := len(whole.Tensors()); n != 1 {
		t.Errorf("%d tensors of a whole file beside an index, want 1", n)
	}
}

func TestBadIndexes(t *testing.T) {
	t.Parallel()
	for index, want := range map[string]string{
		`{"weight_map":{"a":"../../x.safetensors"}}`: "outside the model's folder",
		`{"weight_map":{"a":"/etc/hostname"}}`:       "outside the model's folder",
		`{"weight_map":{"a":"s2.safetensors"}}`:      "s2.safetensors is missing",
		`{"weight_map":{"a":7}}`:                     "not a shard index",
		`{"metadata":{}}`:                            "missing or empty weight_map",
		`<html>`:                                     "not a shard index",
	} {
		dir := t.TempDir()
		writeFile(t, dir, "s1.safetensors", checkpointtest.Safetensors(checkpointtest.Ramp("a", 1, 2)))
		writeFile(t, dir, "model.safetensors.index.json", []byte(index))
		if _, err := OpenDir(dir); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: error %v, want …%s…", index, err, want)
		}
	}
}

func TestOpenDirPrefersSafetensors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	writeFile(t, dir, "tokenizer.bin", []byte("not weights"))
	writeFile(t, dir, "pytorch_model.bin", []byte("ignored"))
	writeFile(t, dir, "model.safetensors", checkpointtest.Safetensors(checkpointtest.Ramp("a", 1, 2)))
	s, err := Open(dir)
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if s.Format() != "safetensors" {
		t.Error(s.Format())
	}
}

func TestOpenErrors(t *testing.T) {
	t.Parallel()
	dir := t.TempDir()
	two := t.TempDir()
	writeFile(t, two, "a.gguf", checkpointtest.GGUF(nil))
	writeFile(t, two, "b.gguf", checkpointtest.GGUF(nil))
	gguf := writeFile(t, dir, "m.gguf", checkpointtest.GGUF(nil, checkpointtest.Ramp("a", 0, 1)))
	st := writeFile(t, dir, "m.safetensors", checkpointtest.Safetensors(checkpointtest.Ramp("b", 0, 1)))
	again := writeFile(t, dir, "again.gguf", checkpointtest.GGUF(nil, checkpointtest.Ramp("a", 0, 1)))
	for _, c := range []struct {
		want  string
		paths []string
	}{
		{"no weights; looked for", []string{t.TempDir()}},
		{"name the one to use", []string{two}},
		{"of one format", []string{gguf, st}},
		{"each name may occur once", []string{gguf, again}},
		{"no such file", []string{filepath.Join(dir, "none")}},
		{"the file is empty", []string{writeFile(t, dir, "empty.gguf", nil)}},
		{"git lfs pull", []string{writeFile(t, dir, "lfs.bin", []byte("version https://git-lfs.github.com/spec/v1\n"))}},
		{"a web page", []string{writeFile(t, dir, "web.bin", []byte("<!DOCTYPE html>"))}},
		{"not a weight file", []string{writeFile(t, dir, "x.txt", []byte("hello, world"))}},
		{"no weight files", nil},
	} {
		s, err := Open(c.paths...)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: error %v, want …%s…", c.paths, err, c.want)
		}
		if err == nil {
			s.Close()
		}
	}
}

func TestSetAfterClose(t *testing.T) {
	t.Parallel()
	s := openBytes(t, "m.gguf", checkpointtest.GGUF(nil, checkpointtest.New("w", tensor.F32, []int{1}, make([]byte, 4))))
	if err := s.Close(); err != nil {
		t.Fatal(err)
	}
	if _, err := s.Bytes("w"); err == nil {
		t.Error("a closed set gives bytes")
	}
	if err := s.Close(); err != nil {
		t.Error(err)
	}
}

func TestOpenDirOfAFile(t *testing.T) {
	t.Parallel()
	file := writeFile(t, t.TempDir(), "m.gguf", checkpointtest.GGUF(nil, checkpointtest.Ramp("a", 0, 1)))
	if _, err := OpenDir(file); err == nil || !strings.Contains(err.Error(), "is a file, not a model folder") {
		t.Errorf("error %v", err)
	}
}
