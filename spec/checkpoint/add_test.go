package checkpoint

import (
	"slices"
	"strings"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/ir/tensor"
	"github.com/iflowc/iflowc/spec/checkpoint/checkpointtest"
)

// TestAddTo adds to matrices of stored blocks, to ones that are collected from several
// tensors and to ones whose rows are decoded on demand.
func TestAddTo(t *testing.T) {
	t.Parallel()
	blocks := checkpointtest.Quantized("blocks", tensor.GQ4_1, 6, 64)
	fixtures := []checkpointtest.Fixture{blocks, checkpointtest.Ramp("plain", 0, 6, 64), checkpointtest.Ramp("decoded", 3, 6, 64), checkpointtest.Ramp("vector", 0, 4)}
	for i := range 6 { // more than recent holds
		fixtures = append(fixtures, checkpointtest.Ramp("collected"+string(rune('0'+i)), float32(i), 6, 64))
	}
	s := openBytes(t, "m.gguf", checkpointtest.GGUF(nil, fixtures...))
	collected := 0
	for i := range s.entries {
		e := &s.entries[i]
		whole := *e
		switch {
		case strings.HasPrefix(e.Name, "collected"):
			e.collect = func() []byte { collected++; return whole.raw() }
		case e.Name == "decoded":
			e.values = func(r int, x []float32) {
				for i := range x {
					x[i] = whole.number(r*len(x) + i)
				}
			}
		}
	}
	for _, info := range s.Tensors() {
		if info.Name == "vector" {
			continue
		}
		want := ascending(t, s, info.Name)
		collected = 0
		addAndCompare(t, s, info.Name, want)
		if strings.HasPrefix(info.Name, "collected") && collected != 1 {
			t.Errorf("%s is collected %d times", info.Name, collected)
		}
	}
	if f := s.Files(); len(f) != 2 || f[1] != "adapter" {
		t.Errorf("files %v", f)
	}
	for name, want := range map[string]string{"vector": "is no matrix", "plane": `did you mean "plain"`} {
		if err := s.AddTo(name, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: %v", name, err)
		}
	}
}

// ascending returns a matrix plus the matrix of 0, 1, 2, ….
func ascending(t *testing.T, s *Set, name string) []float32 {
	t.Helper()
	want := floatsOf(t, s, name)
	for i := range want {
		want[i] += float32(i)
	}
	return want
}

// addAndCompare adds the matrix of 0, 1, 2, …, and reads the sum in several goroutines.
func addAndCompare(t *testing.T, s *Set, name string, want []float32) {
	t.Helper()
	err := s.AddTo(name, func(r int, row []float32) {
		for c := range row {
			row[c] += float32(r*64 + c)
		}
	}, "adapter")
	if now, _ := s.Lookup(name); err != nil || now.DType != tensor.F32 || now.Bytes != 6*64*4 {
		t.Fatalf("%+v %v", now, err)
	}
	var wg sync.WaitGroup
	for range 3 {
		wg.Go(func() {
			if got, err := s.Float32(name); err != nil || !slices.Equal(got, want) {
				t.Errorf("%s: %v %v", name, got, err)
			}
		})
	}
	wg.Wait()
}
