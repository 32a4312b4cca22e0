package checkpoint

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// openAll opens weights and reads tensors, up to a few MB.
func openAll(path string) error {
	s, err := Open(path)
	if err != nil {
		return err
	}
	defer s.Close()
	left := int64(4 << 20)
	for _, i := range s.Tensors() {
		if left -= max(i.Bytes, 4*int64(i.Elements())); left < 0 {
			break
		}
		if _, err := s.Float32(i.Name); err != nil {
			return err
		}
	}
	return nil
}

// FuzzTorch opens archives of torch.save with any pickle and any storage; the checksums of
// the archive are right.
func FuzzTorch(f *testing.F) {
	other := plainTensor
	other.class, other.numel, other.size, other.stride = "BFloat16Storage", 12, []int{4, 3}, []int{1, 4}
	f.Add(state(func(a *assembler) { a.tensor(plainTensor) }), sixFloats["0"])
	f.Add(state(func(a *assembler) { a.tensor(other) }), sixFloats["0"])
	f.Add(newPickle().raw("}").text("model").raw("}q\x00(").text("w").tensor(plainTensor).raw("q\x01").text("v").raw("h\x01us.").done(), sixFloats["0"])
	f.Fuzz(func(t *testing.T, program, storage []byte) {
		data := archive(t, program, map[string][]byte{"0": storage})
		path := hostiletest.File(t, "m.pt", data)
		_ = hostiletest.Read(t, len(data), func() error { return openAll(path) })
	})
}

// FuzzFolder opens model folders: weights in two files, with an index and configurations of
// quantization. The kind selects the names of the files.
func FuzzFolder(f *testing.F) {
	kinds := [][3]string{
		{"model.safetensors.index.json", "a.safetensors", "b.safetensors"},
		{"unused.json", "m-00001-of-00002.gguf", "m-00002-of-00002.gguf"},
		{"pytorch_model.bin.index.json", "a.bin", "b.bin"},
		{"config.json", "model.safetensors", "quantize_config.json"},
		{"config.json", "model.bin", "tokenizer.bin"},
	}
	first, second := checkpointtest.Ramp("a", 0, 2, 3), checkpointtest.Ramp("b", 1, 4)
	f.Add(uint8(0), []byte(`{"weight_map":{"a":"a.safetensors","b":"b.safetensors"}}`), checkpointtest.Safetensors(first), checkpointtest.Safetensors(second))
	f.Add(uint8(0), []byte(`{"metadata":{"total_size":1},"weight_map":{"a":"./a.safetensors","b":"../b.safetensors"}}`), checkpointtest.Safetensors(first), []byte{})
	f.Add(uint8(1), []byte{}, checkpointtest.GGUF(sampleMeta(), first), checkpointtest.GGUF(nil, checkpointtest.Quantized("q", tensor.GQ4_0, 1, 32)))
	f.Add(uint8(2), []byte(`{"weight_map":{"w":"a.bin"}}`), archive(f, state(func(a *assembler) { a.tensor(plainTensor) }), sixFloats), []byte{})
	found, err := filepath.Glob("testdata/quantized/*/model.safetensors")
	if err != nil || len(found) == 0 {
		f.Fatalf("no seeds: %v", err)
	}
	for _, path := range found {
		weights, err := os.ReadFile(path)
		if err != nil {
			f.Fatal(err)
		}
		config, _ := os.ReadFile(filepath.Join(filepath.Dir(path), "config.json")) // some have none
		f.Add(uint8(3), config, weights, []byte(`{"bits":4,"group_size":32,"desc_act":false}`))
	}
	f.Fuzz(func(t *testing.T, kind uint8, index, first, second []byte) {
		files := map[string][]byte{}
		for i, data := range [][]byte{index, first, second} {
			if len(data) > 0 {
				files[kinds[int(kind)%len(kinds)][i]] = data
			}
		}
		dir := hostiletest.Folder(t, files)
		_ = hostiletest.Read(t, len(index)+len(first)+len(second), func() error { return openAll(dir) })
	})
}
