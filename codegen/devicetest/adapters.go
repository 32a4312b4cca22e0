package devicetest

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// Adapters is a device with adapters. The n-th adapter that is loaded shifts the token
// ids of its sequences by n, so that their rows in the KV cache and their outputs differ from
// those of all other adapters. A step that uses a free number, or a number that is set
// while a step uses it, is an error.
type Adapters struct {
	device.Device
	Refused error // of the next SetAdapter; may be nil

	mu     sync.Mutex
	loads  int32
	loaded [device.MaxAdapters]int32 // what each adds; 0: the number is free
	inStep [device.MaxAdapters]int   // steps in flight that use each
	steps  int                       // steps with an adapter
	plain  int                       // steps without
}

// Start starts the inner device.
func (a *Adapters) Start(cfg *device.Config) (device.Context, error) {
	inner, err := a.Device.Start(cfg)
	if err != nil {
		return nil, err
	}
	return &adapted{inner, a}, nil
}

// Loaded returns the number of adapters that the device holds.
func (a *Adapters) Loaded() (n int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	for _, shift := range a.loaded {
		if shift > 0 {
			n++
		}
	}
	return n
}

// Steps returns the numbers of steps with and without an adapter.
func (a *Adapters) Steps() (adapted, plain int) {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.steps, a.plain
}

// An adapted is an opened Adapters.
type adapted struct {
	device.Context
	a *Adapters
}

// PackAdapter packs nothing.
func (m *adapted) PackAdapter(a lora.Packer) (lora.Packer, error) { return a, nil }

// SetAdapter loads or frees an adapter; its files are not read.
func (m *adapted) SetAdapter(number int32, file lora.Packer) error {
	m.a.mu.Lock()
	defer m.a.mu.Unlock()
	if err := m.a.Refused; err != nil {
		m.a.Refused = nil
		return err
	}
	if n := m.a.inStep[number]; n > 0 {
		return fmt.Errorf("adapter %d is set while %d steps in flight use it", number, n)
	}
	if (file == nil) == (m.a.loaded[number] == 0) {
		return fmt.Errorf("adapter %d is loaded or freed twice", number)
	}
	m.a.loaded[number] = 0
	if file != nil {
		m.a.loads++
		m.a.loaded[number] = m.a.loads
	}
	return nil
}

// Submit shifts the ids of sequences with adapters.
func (m *adapted) Submit(s *device.Step) func() error {
	used, err := m.a.shift(s)
	if err != nil {
		return device.Ended(err)
	}
	s.Adapted = false // the inner model has no adapters
	wait := m.Context.Submit(s)
	return func() error {
		err := wait()
		m.a.mu.Lock()
		defer m.a.mu.Unlock()
		for _, n := range used {
			m.a.inStep[n]--
		}
		return err
	}
}

// shift shifts the ids of a step and returns the numbers that it uses, once for each
// sequence.
func (a *Adapters) shift(s *device.Step) (used []int32, err error) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if !s.Adapted {
		a.plain++
		return nil, nil
	}
	for q, n := range s.Adapter[:s.Seqs] {
		if n < -1 || n >= device.MaxAdapters || n >= 0 && a.loaded[n] == 0 {
			return nil, fmt.Errorf("sequence %d uses adapter %d, which is not loaded", q, n)
		}
		if n < 0 {
			continue
		}
		used = append(used, n)
		for t := s.First[q]; t < s.First[q+1]; t++ {
			s.ID[t] = Shift(s.ID[t], int(a.loaded[n]))
		}
	}
	if len(used) == 0 {
		return nil, errors.New("the step has adapters, but no sequence has one")
	}
	for _, n := range used {
		a.inStep[n]++
	}
	a.steps++
	return used, nil
}

// Shift returns the token that a sequence with the n-th loaded adapter computes. Tokens
// with a meaning of their own stay.
func Shift(id int32, n int) int32 {
	const first, count = StopID + 1, NaNID - StopID - 1
	if id < first || id >= first+count {
		return id
	}
	return first + (id-first+int32(n))%count
}

// Shifted returns the tokens that a sequence with the n-th loaded adapter computes.
func Shifted(ids []int32, n int) []int32 {
	out := make([]int32, len(ids))
	for i, id := range ids {
		out[i] = Shift(id, n)
	}
	return out
}

// WithSites gives a manifest the matrix that WriteAdapter's adapters change.
func WithSites(m *manifest.Manifest) {
	m.Sites = []manifest.Site{{Weight: "w", Rows: 16, Cols: 16, Parts: []manifest.SitePart{{Names: []manifest.SiteName{{Name: "layers.0.w"}}, Out: 16, In: 16}}}}
	m.RowOrders = [][]manifest.RowRun{{{ToStep: 1, FromStep: 1, Count: 16}}}
}

// WriteAdapter writes a PEFT folder of an adapter that shifts token ids by n, as the n-th
// loaded one of an Adapters does.
func WriteAdapter(t testing.TB, dir string, n int) {
	t.Helper()
	matrix := func(name string, rows, cols int, first float32) checkpointtest.Fixture {
		f := checkpointtest.New("base_model.model.layers.0.w."+name+".weight", tensor.F32, []int{rows, cols}, nil)
		f.Raw = make([]byte, 4*rows*cols)
		binary.LittleEndian.PutUint32(f.Raw, math.Float32bits(first))
		return f
	}
	files := map[string][]byte{
		"adapter_config.json":       []byte(`{"peft_type":"LORA","r":1,"lora_alpha":1}`),
		"adapter_model.safetensors": checkpointtest.Safetensors(matrix("lora_A", 1, 16, float32(n)), matrix("lora_B", 16, 1, 1)),
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		t.Fatal(err)
	}
	for name, data := range files {
		if err := os.WriteFile(filepath.Join(dir, name), data, 0o644); err != nil {
			t.Fatal(err)
		}
	}
}
