//go:build unix

package engine_test

import (
	"errors"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/codegen/devicetest"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/engine"
)

// withAdapters gives a model's device adapters.
func withAdapters(m engine.Model) (engine.Model, *devicetest.Adapters) {
	a := &devicetest.Adapters{Device: m.Device}
	m.Device = a
	return m, a
}

// load loads an adapter of 1,000 bytes.
func load(t testing.TB, e *engine.Engine) *engine.Adapter {
	t.Helper()
	x, err := e.LoadAdapter(&lora.Packed{}, 1000)
	if err != nil {
		t.Fatal(err)
	}
	return x
}

// TestAdapters runs random sequences with and without adapters, which are loaded and
// unloaded while sequences use them: every row must be that of the sequence's tokens with
// its adapter, and nothing may be lost.
func TestAdapters(t *testing.T) {
	t.Parallel()
	plain := fake(t)
	for i, opt := range []engine.Options{
		{MaxSeqs: 4},
		{MaxSeqs: 6, MaxTokens: 50, Prefix: true},
		{MaxSeqs: 6, Draft: 9, MaxTokens: 64, Prefix: true},
		{MaxSeqs: 8, Draft: 20, Pages: 12, Prefix: true},
	} {
		for seed := range uint64(6) {
			m, dev := withAdapters(plain)
			opt.Context, opt.AdapterBytes = 400, 1<<20
			c := &devicetest.Crowd{T: t, Engine: open(t, m, opt), Vocab: devicetest.NaNID, Adapters: true}
			c.Check = func(tokens []int32, row []float32) bool {
				return slices.Equal(row, devicetest.Logits(tokens, salt))
			}
			c.Start(rand.New(rand.NewPCG(seed, uint64(i))), 260)
			for range 300 {
				c.Round()
			}
			stats := c.Engine.Stats()
			c.End()
			adapted, without := dev.Steps()
			if dev.Loaded() != 0 || adapted == 0 || without == 0 {
				t.Errorf("%d adapters were not freed; %d steps with adapters, %d without", dev.Loaded(), adapted, without)
			}
			t.Logf("options %d, seed %d: %d steps with adapters, %d without, %d of %d prompt tokens reused, %d preempted", i, seed, adapted, without, stats.PromptsReused, stats.Prompts, stats.Preempted)
		}
	}
}

// TestPipelineAdapters loads and unloads adapters while steps that use them are in flight.
func TestPipelineAdapters(t *testing.T) {
	t.Parallel()
	plain := fake(t)
	for depth := 2; depth <= 4; depth++ {
		r := rand.New(rand.NewPCG(uint64(depth), 7))
		m, p := onPipeline(t, plain, depth, nil)
		m, dev := withAdapters(m)
		e := open(t, m, engine.Options{MaxTokens: 40, MaxSeqs: 8, Pages: 14, Context: 256, Prefix: true, AdapterBytes: 1 << 20})
		c := &burst{r: r, e: e, shared: prompt(r, 80), live: map[engine.ID]*request{}}
		for c.finished < 60 {
			if c.adapter == nil || r.IntN(6) == 0 { // the last one is unloaded, also while it is in flight
				if c.adapter != nil {
					if err := e.UnloadAdapter(c.adapter); err != nil {
						t.Fatal(err)
					}
				}
				c.adapter = load(t, e)
				c.loads++
			}
			c.come(t)
			c.step(t)
			if id := c.ids[r.IntN(len(c.ids))]; c.live[id] != nil && r.IntN(4) == 0 {
				c.leave(id)
			}
		}
		for id := range c.live {
			c.leave(id)
		}
		c.step(t)
		if s := e.Stats(); s.Adapters != 1 || dev.Loaded() != 1 || s.Used != 0 || p.Most() < 2 {
			t.Errorf("%d adapters and %d pages are left, %d steps at once", s.Adapters, s.Used, p.Most())
		}
		t.Logf("%d stages: %d adapters", depth, c.loads)
	}
}

// TestAdapterPrefix checks that pages are reused only with the same load of an adapter.
func TestAdapterPrefix(t *testing.T) {
	t.Parallel()
	m, _ := withAdapters(fake(t))
	e := open(t, m, engine.Options{MaxSeqs: 2, Prefix: true, AdapterBytes: 1 << 20})
	p := prompt(rand.New(rand.NewPCG(5, 5)), 150)
	compute := func(x *engine.Adapter, n int, cached int) {
		t.Helper()
		id, row, res, _ := run(t, e, engine.Query{Tokens: p, Adapter: x})
		e.Remove(id)
		if want := devicetest.Logits(devicetest.Shifted(p, n), salt); !slices.Equal(row, want) || res.Cached != cached {
			t.Errorf("load %d: %d tokens cached, expected %d; the row is right: %v", n, res.Cached, cached, slices.Equal(row, want))
		}
	}
	first, second := load(t, e), load(t, e)
	for _, cached := range []int{0, 128} {
		compute(nil, 0, cached)
		compute(first, 1, cached)
		compute(second, 2, cached)
	}
	if err := e.UnloadAdapter(first); err != nil {
		t.Fatal(err)
	}
	again := load(t, e) // it has the number of the first
	compute(again, 3, 0)
	compute(again, 3, 128)
	compute(second, 2, 128)
	e.UseAdapter(second)
	compute(nil, 2, 128)
	e.UseAdapter(nil)
	compute(nil, 0, 128)
}

// TestUnload checks that an unloaded adapter takes no queries and is freed with its last
// sequence.
func TestUnload(t *testing.T) {
	t.Parallel()
	m, dev := withAdapters(fake(t))
	e := open(t, m, engine.Options{MaxSeqs: 3, AdapterBytes: 2000})
	x := load(t, e)
	tokens := []int32{9, 10}
	id, row, _, _ := run(t, e, engine.Query{Tokens: tokens, Adapter: x})
	if !slices.Equal(row, devicetest.Logits(devicetest.Shifted(tokens, 1), salt)) {
		t.Error("the row differs")
	}
	fork, err := e.Fork(id)
	if err != nil {
		t.Fatal(err)
	}
	e.Suspend(fork)
	for range 2 { // the second time has no effect
		if err := e.UnloadAdapter(x); err != nil {
			t.Fatal(err)
		}
	}
	if _, err := e.AddQuery(engine.Query{Tokens: tokens, Adapter: x}); err == nil || !strings.Contains(err.Error(), "unloaded") {
		t.Errorf("a query of an unloaded adapter: %v", err)
	}
	e.Remove(id)
	if s := e.Stats(); dev.Loaded() != 1 || s.Adapters != 1 || s.AdapterBytes != 1000 {
		t.Errorf("freed while a suspended sequence uses it: %+v", s)
	}
	load(t, e)
	if _, err := e.LoadAdapter(&lora.Packed{}, 1); !errors.Is(err, engine.ErrAdapterMemory) {
		t.Errorf("more than the memory: %v", err)
	}
	e.Remove(fork)
	if s := e.Stats(); dev.Loaded() != 1 || s.Adapters != 1 || s.AdapterBytes != 1000 {
		t.Errorf("not freed with its last sequence: %+v", s)
	}
}

// TestMostAdapters loads as many adapters as there are numbers.
func TestMostAdapters(t *testing.T) {
	t.Parallel()
	m, dev := withAdapters(fake(t))
	e := open(t, m, engine.Options{AdapterBytes: 1 << 20})
	refused := errors.New("refused")
	dev.Refused = refused
	if _, err := e.LoadAdapter(&lora.Packed{}, 1000); !errors.Is(err, refused) {
		t.Errorf("the device's error: %v", err)
	}
	list := make([]*engine.Adapter, device.MaxAdapters)
	for i := range list {
		list[i] = load(t, e)
	}
	if _, err := e.LoadAdapter(&lora.Packed{}, 1); !errors.Is(err, engine.ErrAdapters) {
		t.Errorf("one more: %v", err)
	}
	if err := e.UnloadAdapter(list[100]); err != nil {
		t.Fatal(err)
	}
	load(t, e)
	if s := e.Stats(); s.Adapters != device.MaxAdapters || s.AdapterBytes != 1000*device.MaxAdapters {
		t.Errorf("%+v", s)
	}
}

// TestEncoderAdapters checks encoders and the sources of encoder-decoders.
func TestEncoderAdapters(t *testing.T) {
	t.Parallel()
	m, dev := withAdapters(fakeEncoder(t))
	e := open(t, m, engine.Options{MaxSeqs: 2, AdapterBytes: 1 << 20})
	r := rand.New(rand.NewPCG(6, 6))
	text := prompt(r, 40)
	_, row, _, _ := run(t, e, engine.Query{Tokens: text, Rows: []int{0}, Adapter: load(t, e)})
	if row[3] != devicetest.Encode(devicetest.Shifted(text, 1), nil, salt) {
		t.Error("the encoder's row differs")
	}
	if adapted, _ := dev.Steps(); adapted != 1 {
		t.Errorf("%d steps with adapters", adapted)
	}
	m, dev = withAdapters(fakeTranslator(t))
	e = open(t, m, engine.Options{MaxSeqs: 3, AdapterBytes: 1 << 20})
	x := load(t, e)
	sources := [][]int32{text, prompt(r, 70), prompt(r, 5)}
	tokens := map[engine.ID]int{}
	for i, source := range sources {
		q := engine.Query{Tokens: []int32{10 + int32(i)}, Source: source}
		if i > 0 {
			q.Adapter = x
		}
		id, err := e.AddQuery(q)
		if err != nil {
			t.Fatal(err)
		}
		tokens[id] = i
	}
	results, err := e.Infer(t.Context())
	if err != nil || len(results) != 3 {
		t.Fatal(results, err)
	}
	for _, res := range results {
		i := tokens[res.ID]
		n := min(i, 1)
		want := devicetest.Translated(devicetest.Shifted(sources[i], n), devicetest.Shifted([]int32{10 + int32(i)}, n), salt)
		if !slices.Equal(res.Row(0, 0), want) {
			t.Errorf("source %d: the row differs", i)
		}
		e.Remove(res.ID)
	}
	if adapted, plain := dev.Steps(); adapted != 2 || plain != 0 {
		t.Errorf("%d steps with adapters and %d without, expected the encoder's and the decoder's", adapted, plain)
	}
}

// TestAdapterMemory checks that the plan counts adapters.
func TestAdapterMemory(t *testing.T) {
	t.Parallel()
	m := fake(t)
	without, _, err := engine.Plan(m, engine.Options{Threads: 1})
	if err != nil {
		t.Fatal(err)
	}
	with, _, err := engine.Plan(m, engine.Options{Threads: 1, AdapterBytes: 5_000_000})
	if err != nil || with.Adapters != 5_000_000 || with.Total() != without.Total()+5_000_000 {
		t.Errorf("%+v, %v", with, err)
	}
	with.Available = 1_000_000
	if err := with.Check(); err == nil || !strings.Contains(err.Error(), "adapters 5,") {
		t.Errorf("more than available: %v", err)
	}
	for _, bytes := range []int64{-1, 1 << 60} {
		if _, _, err := engine.Plan(m, engine.Options{Threads: 1, AdapterBytes: bytes}); err == nil {
			t.Errorf("%d bytes are accepted", bytes)
		}
	}
}
