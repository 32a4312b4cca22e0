package compiler

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/ir/irtest"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cuda"
	"github.com/iflowc/iflowc/runtime/engine"
)

// TestEmulatedAdapterMemory: loading, replacing and freeing adapters, also with errors,
// leaks no memory of the GPU and changes no step with another adapter, nor a replayed graph
// without one. The test is not parallel: others use the same GPU.
func TestEmulatedAdapterMemory(t *testing.T) {
	devicetest.NeedEmulation(t)
	p, err := generate("../../spec/testdata/families/qwen2", Options{Quant: "f32", KV: "f16", Target: "cuda-emu"})
	if err != nil {
		t.Fatal(err)
	}
	defer p.Close()
	m := emulatedModel(t, p)
	gpu := m.Device.(*cuda.Device).GPU
	before := free(t, gpu)
	c := startAdapted(t, m)
	rng := rand.New(rand.NewPCG(irtest.Seed(t), 3))
	one, _ := packedAdapter(rng, p.whole.CPU.Sites, 4)
	other, _ := packedAdapter(rng, p.whole.CPU.Sites, 8)
	plain, started := c.step(t, false), free(t, gpu)
	c.load(t, 0, one)
	c.load(t, 5, other)
	want, loaded := c.step(t, true), free(t, gpu)
	if started-loaded < 4*int64(len(one.Data)+len(other.Data)) || slices.Equal(want, plain) {
		t.Fatalf("adapters take %d bytes, or have no effect", started-loaded)
	}
	for i := range int32(100) {
		c.load(t, 7+i, other)
		c.load(t, 5, other)
		refuseAdapters(t, c, one)
		if i%10 == 0 { // each graph is captured and replayed
			sameBits(t, "with adapters", c.step(t, true), want)
			sameBits(t, "without", c.step(t, false), plain)
		}
		c.load(t, 7+i, nil)
	}
	if now := free(t, gpu); now != loaded {
		t.Errorf("%d bytes are free after 100 loads, %d before", now, loaded)
	}
	c.load(t, 5, one)
	if slices.Equal(c.step(t, true), want) {
		t.Error("another adapter under the same number has no effect in a captured graph")
	}
	c.load(t, 0, nil)
	c.load(t, 5, nil)
	c.load(t, 5, nil)
	if now := free(t, gpu); now != started {
		t.Errorf("%d bytes are free after the last adapter is freed, %d before the first", now, started)
	}
	c.load(t, device.MaxAdapters-1, one)
	c.Close()
	if now := free(t, gpu); now != before {
		t.Errorf("%d bytes are free after the model is closed, %d before it was opened", now, before)
	}
}

// A startedModel is a started model and a step for it.
type startedModel struct {
	device.Context
	s    *device.Step
	cols int
}

func startAdapted(t *testing.T, m engine.Model) *startedModel {
	t.Helper()
	cfg := device.Config{Threads: 1, Weights: m.Weights, Pages: stepPages, MaxTokens: 8, MaxOutRows: 4, MaxSeqs: 2, Sites: m.Manifest.Sites, Orders: m.Manifest.RowOrders}
	for _, o := range m.Manifest.Graphs[0].Outputs {
		cfg.Outputs = append(cfg.Outputs, device.Array{Rows: 8, Cols: o.Cols})
	}
	c, err := m.Device.Start(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	s, err := device.NewStep(&cfg)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(s.Free)
	return &startedModel{c, s, cfg.Outputs[0].Cols}
}

// step computes a step whose output row is of a sequence with adapter 5, or without one.
func (c *startedModel) step(t *testing.T, adapted bool) []float32 {
	t.Helper()
	goodStep(c.s)
	c.s.Tokens, c.s.OutRows, c.s.Seqs, c.s.Adapted = 3, 1, 2, adapted
	copy(c.s.Adapter, []int32{0, 5})
	if err := c.Submit(c.s)(); err != nil {
		t.Fatal(err)
	}
	return slices.Clone(c.s.Out[0][:c.cols])
}

func (c *startedModel) load(t *testing.T, number int32, a lora.Packer) {
	t.Helper()
	if err := c.SetAdapter(number, a); err != nil {
		t.Fatal(err)
	}
}

func free(t *testing.T, gpu *cuda.GPU) int64 {
	t.Helper()
	n, err := gpu.Available()
	if err != nil {
		t.Fatal(err)
	}
	return n
}

// A brokenAdapter is an adapter that cannot be read.
type brokenAdapter struct{}

func (brokenAdapter) PackRank([]manifest.Site, [][]manifest.RowRun, []manifest.Site) (*lora.Packed, error) {
	return nil, errors.New("the disk is gone")
}

// refuseAdapters checks the errors of adapters that cannot be loaded.
func refuseAdapters(t *testing.T, c device.Context, good *lora.Packed) {
	t.Helper()
	fewer := *good
	fewer.Sites = fewer.Sites[1:]
	for want, bad := range map[string]struct {
		number int32
		a      lora.Packer
	}{
		"adapter number -1":  {-1, good},
		"adapter number 256": {device.MaxAdapters, good},
		"the disk is gone":   {5, brokenAdapter{}},
		"the model has":      {5, &fewer},
	} {
		if err := c.SetAdapter(bad.number, bad.a); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %s", err, want)
		}
	}
}
