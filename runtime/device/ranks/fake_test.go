//go:build unix

package ranks_test

import (
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"sync"
	"testing"

	"github.com/iflowc/iflowc/codegen/toolchain"
	"github.com/iflowc/iflowc/runtime/artifact/dtype"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/cpu"
	"github.com/iflowc/iflowc/runtime/device/ranks"
	"github.com/iflowc/iflowc/runtime/sampling/decode"
)

// Parameters of the fake model, as in testdata/rank.c.
const (
	vocab = 61
	cols  = 64
)

// A program is the fake model for groups of ranks.
type program struct {
	t        testing.TB
	lib      string
	manifest *manifest.Manifest
	salt     []byte // of each rank's weights; all equal in a valid program
	source   []string
	fault    int // the faulty rank and its fault
	how      byte
	hash     string
}

// newProgram returns the model with one pipeline stage per group of as many TP ranks.
func newProgram(t testing.TB, lib string, groups ...int) *program {
	p := &program{t: t, lib: lib, fault: -1, hash: "same"}
	part := &manifest.Partition{Devices: fmt.Sprint(groups)}
	for stage, tpSize := range groups {
		for m := range tpSize {
			part.Ranks = append(part.Ranks, manifest.Rank{Device: fmt.Sprint(len(part.Ranks)), Stage: stage, TPRank: m, TPSize: tpSize})
			p.salt, p.source = append(p.salt, 5), append(p.source, "files")
		}
	}
	p.manifest = &manifest.Manifest{
		Format: manifest.Format, Compiler: "test", Name: "fake", Network: "decoder_only", Vocab: vocab, Context: 512, BOS: 1, EOS: []int32{2}, Pad: -1,
		Graphs:    []manifest.Graph{{Name: "decode", Outputs: []manifest.Output{{Name: "logits", Rows: "out_rows", Cols: cols, Used: vocab}}}},
		Weights:   []manifest.Weight{{Name: "w", DType: dtype.F32, Rows: 16, Cols: 16, Layout: "panel16", Bytes: 1024}},
		States:    []manifest.State{{Name: "kv", Count: 1, PageRows: 64, PageBytes: 256, Type: "f16"}},
		Partition: part,
	}
	return p
}

// withCells gives the model a fixed-size state.
func (p *program) withCells() *program {
	p.manifest.States = append(p.manifest.States, manifest.State{Name: "sum", Count: 1, CellBytes: 4 * (1 + device.CellRows), Type: "f32"})
	return p
}

func (p *program) Manifest() *manifest.Manifest { return p.manifest }
func (p *program) Hash() string                 { return p.hash }

func (p *program) Shares() ([]*manifest.Manifest, error) {
	return slices.Repeat([]*manifest.Manifest{p.manifest}, len(p.manifest.Partition.Ranks)), nil
}

func (p *program) Rank(rank int, s *ranks.Settings) (*ranks.Rank, error) {
	data, err := os.ReadFile(p.lib)
	if err != nil {
		return nil, err
	}
	lib, err := cpu.Open("portable", string(data))
	return &ranks.Rank{Manifest: p.manifest, Device: lib, Library: lib}, err
}

func (p *program) Weights(rank int, s *ranks.Settings) ([]byte, string, error) {
	w, err := device.Map(1024, "weights")
	if err != nil {
		return nil, "", err
	}
	k := p.manifest.Partition.Ranks[rank]
	copy(w.Bytes, []byte{p.salt[rank], byte(rank), byte(rank - k.TPRank), byte(k.TPSize), byte(p.manifest.Partition.Stages() - 1 - k.Stage)})
	if rank == p.fault {
		w.Bytes[5] = p.how
	}
	return w.Bytes, p.source[rank], nil
}

// continuation returns the tokens that the model and the query's sampler have after its prompt.
func (p *program) continuation(q *query) ([]int32, error) {
	pick, err := decode.NewSampler(q.set, 0)
	all := slices.Clone(q.prompt)
	for range q.n {
		if err != nil {
			return nil, err
		}
		var token int32
		token, err = pick.Next(p.logits(all), nil)
		all = append(all, token)
	}
	return all[len(q.prompt):], err
}

// logits returns the expected logits after a prefix.
func (p *program) logits(prefix []int32) []float32 {
	x := make([]float64, len(prefix))
	for i, id := range prefix {
		x[i] = float64(id)
	}
	ranks := p.manifest.Partition.Ranks
	for first := 0; first < len(ranks); first += ranks[first].TPSize {
		next := make([]float64, len(x))
		for r := first; r < first+ranks[first].TPSize; r++ {
			sum := 0.0
			for i := range x {
				sum += math.Mod(x[i]*31+float64(r*7+int(p.salt[r])), 997)
				next[i] += sum
			}
		}
		for i := range next {
			next[i] = math.Mod(next[i], 1009)
		}
		x = next
	}
	row := make([]float32, vocab)
	for v := range row {
		row[v] = float32(math.Mod(x[len(x)-1]*float64(v+3), 101))
	}
	return row
}

// built caches the compiled model for all tests.
var built struct {
	sync.Mutex
	data []byte
}

// library returns the file of the fake model, linked with the real transports.
func library(t testing.TB) string {
	t.Helper()
	built.Lock()
	defer built.Unlock()
	if built.data == nil {
		built.data = read(t, compile(t))
	}
	path := filepath.Join(t.TempDir(), "rank.so")
	if err := os.WriteFile(path, built.data, 0o644); err != nil {
		t.Fatal(err)
	}
	return path
}

func compile(t testing.TB) string {
	t.Helper()
	cc, err := toolchain.FindCompiler(t.Context(), "")
	if err != nil {
		t.Skipf("no C compiler: %v", err)
	}
	cache, err := toolchain.OpenCache(t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	root := "../../../templates/"
	headers := map[string][]byte{}
	for _, name := range []string{"ifl_step.h", "ifl_comm.h", "ifl_endpoint.h"} {
		headers[name] = read(t, root+"include/"+name)
	}
	var units []toolchain.Unit
	for _, name := range []string{"testdata/rank.c", root + "comm/endpoint.c", root + "comm/threads.c", root + "comm/mpi.c"} {
		units = append(units, toolchain.Unit{Name: filepath.Base(name), Source: read(t, name), Headers: headers, Flags: []string{"-O1", "-fPIC", "-Wall", "-Wextra", "-Werror"}})
	}
	b := &toolchain.Builder{Cache: cache, CC: cc}
	objects, err := b.Objects(t.Context(), units)
	if err != nil {
		t.Fatal(err)
	}
	lib, err := b.Shared(t.Context(), objects, []string{"-lm", "-lpthread"})
	if err != nil {
		t.Fatal(err)
	}
	return lib
}

func read(t testing.TB, path string) []byte {
	t.Helper()
	data, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	return data
}
