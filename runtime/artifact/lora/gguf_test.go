package lora

import (
	"path/filepath"
	"slices"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
	"github.com/iflowc/iflowc/tools/check/hostiletest"
)

// TestGGUF reads every type in which llama.cpp stores adapters.
func TestGGUF(t *testing.T) {
	t.Parallel()
	q8 := checkpointtest.Quantized("blk.0.attn_v.weight.lora_a", tensor.GQ8_0, 2, 32)
	a := open(t, ggufFile(t, matrix("blk.0.attn_q.weight.lora_a", tensor.F16, 2, 32), matrix("blk.0.attn_q.weight.lora_b", tensor.F32, 8, 2),
		matrix("blk.0.attn_k.weight.lora_a", tensor.BF16, 4, 32), matrix("blk.0.attn_k.weight.lora_b", tensor.F64, 8, 4),
		q8, matrix("blk.0.attn_v.weight.lora_b", tensor.F32, 8, 2)))
	want := []Matrix{{"blk.0.attn_q", 2, 32, 8, 2}, {"blk.0.attn_k", 4, 32, 8, 1}, {"blk.0.attn_v", 2, 32, 8, 2}}
	if !slices.Equal(a.Matrices(), want) || a.Rank() != 4 {
		t.Errorf("%+v", a.Matrices())
	}
	for i, f := range []checkpointtest.Fixture{matrix("blk.0.attn_q.weight.lora_a", tensor.F16, 2, 32), matrix("blk.0.attn_k.weight.lora_a", tensor.BF16, 4, 32), q8} {
		got, b, err := a.Read(i)
		if err != nil || len(b) != want[i].Out*want[i].Rank || !slices.Equal(got, checkpointtest.DecodeAll(t, f.DType, f.Raw)) {
			t.Errorf("%s: %v", f.Name, err)
		}
	}
}

// TestGGUFWithoutAlpha checks that the scale is 1, as in llama.cpp.
func TestGGUFWithoutAlpha(t *testing.T) {
	t.Parallel()
	path := filepath.Join(t.TempDir(), "a.gguf")
	write(t, path, checkpointtest.GGUF([]checkpointtest.GGUFPair{text("general.type", "adapter"), text("adapter.type", "lora")},
		matrix("blk.0.attn_q.weight.lora_a", tensor.F32, 2, 8), matrix("blk.0.attn_q.weight.lora_b", tensor.F32, 8, 2)))
	if m := open(t, path).Matrices(); m[0].Scale != 1 {
		t.Errorf("scale %v", m[0].Scale)
	}
}

func TestRefusedGGUF(t *testing.T) {
	t.Parallel()
	meta := []checkpointtest.GGUFPair{text("general.type", "adapter"), text("adapter.type", "lora")}
	paths := map[string]string{}
	for want, data := range map[string][]byte{
		`general.type is ""; want "adapter"`: checkpointtest.GGUF(nil),
		`general.type is "model"`:            checkpointtest.GGUF([]checkpointtest.GGUFPair{text("general.type", "model")}),
		`adapter.type is "control_vector"`:   checkpointtest.GGUF([]checkpointtest.GGUFPair{text("general.type", "adapter"), text("adapter.type", "control_vector")}),
		"only after its invocation tokens":   checkpointtest.GGUF(append(slices.Clone(meta), checkpointtest.Pair("adapter.alora.invocation_tokens", 0, []byte{1}))),
		"adapter.lora.alpha is a string":     checkpointtest.GGUF(append(slices.Clone(meta), text("adapter.lora.alpha", "8"))),
		"want names that end in .weight":     checkpointtest.GGUF(meta, checkpointtest.Ramp("blk.0.attn_norm.weight", 0, 8)),
		"adapters of embeddings":             checkpointtest.GGUF(meta, matrix("token_embd.weight.lora_a", tensor.F32, 2, 8)),
		"an older ggml file":                 []byte("ggla"),
		"Git LFS":                            []byte("version https://git-lfs.github.com/spec/v1\n"),
		"no LoRA matrices":                   checkpointtest.GGUF(meta),
		"save the adapter as one of these":   checkpointtest.GGUF(meta, checkpointtest.Quantized("x.weight.lora_a", tensor.GQ4_0, 2, 32), matrix("x.weight.lora_b", tensor.F32, 8, 2)),
	} {
		path := filepath.Join(t.TempDir(), "a.gguf")
		write(t, path, data)
		paths[want] = path
	}
	wantErrors(t, paths)
}

// fuzzAdapter opens an adapter and uses it, within the bounds of a reader.
func fuzzAdapter(t *testing.T, size int, path string) {
	_ = hostiletest.Read(t, size, func() error {
		a, err := Open(path)
		if err == nil {
			defer a.Close()
			useAdapter(t, a)
		}
		return err
	})
}

// useAdapter packs an adapter for a model with the sites that it wants.
func useAdapter(t *testing.T, a *Adapter) {
	var sites []manifest.Site
	var orders [][]manifest.RowRun
	for _, m := range a.Matrices() {
		if m.Out > 64 || m.In > 64 || len(sites) == 16 {
			continue
		}
		orders = append(orders, []manifest.RowRun{{ToStep: 1, FromStep: 1, Count: m.Out}})
		sites = append(sites, manifest.Site{Weight: "w", Rows: m.Out, Cols: m.In, Parts: []manifest.SitePart{{Names: []manifest.SiteName{{Name: m.Name, Order: len(orders) - 1}}, Out: m.Out, In: m.In}}})
	}
	size, sizeErr := a.Size(sites, orders)
	p, err := a.Pack(sites, orders)
	switch {
	case err != nil:
	case sizeErr != nil || size != 4*int64(len(p.Data)):
		t.Fatalf("packed %d floats, announced %d bytes: %v", len(p.Data), size, sizeErr)
	case len(p.Sites) != len(sites):
		t.Fatalf("%d of %d sites", len(p.Sites), len(sites))
	}
}

func FuzzOpenGGUF(f *testing.F) {
	meta := []checkpointtest.GGUFPair{text("general.type", "adapter"), text("adapter.type", "lora"), alpha(8)}
	f.Add(checkpointtest.GGUF(meta, matrix("blk.0.attn_q.weight.lora_a", tensor.F32, 2, 8), matrix("blk.0.attn_q.weight.lora_b", tensor.F16, 8, 2)))
	f.Add(checkpointtest.GGUF(meta[:2], checkpointtest.Quantized("output.weight.lora_a", tensor.GQ8_0, 1, 32), matrix("output.weight.lora_b", tensor.BF16, 4, 1)))
	f.Fuzz(func(t *testing.T, data []byte) {
		fuzzAdapter(t, len(data), hostiletest.File(t, "a.gguf", data))
	})
}
