// Package cuda emits the kernels of a model as CUDA C, and the order in which
// the host launches them.
//
// Each region of the layout becomes one translation unit with one or more kernels,
// rendered from the templates of package templates. The prologue and the epilogue of
// a matmul are device functions of the unit, which all its kernels call. Weights and
// states have the same layout as on the CPU target.
package cuda

import (
	"errors"
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/codegen/ctext"
	"github.com/iflowc/iflowc/codegen/layout"
	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/templates"
)

// A Unit is one translation unit: the kernels of one region.
type Unit struct {
	Name     string // "r3_wqkv"
	Source   string
	Promises map[string]map[string]int // kernel → requirements on its machine code, see templates.CUDAKernel
	Compute  int                       // compute capability of the only GPUs that it is for, e.g. 90 for sm_90a; 0: all
}

// A Model is the code of a module for GPUs.
type Model struct {
	Units   []Unit
	Plan    manifest.CUDA
	Regions int // launches in the body of the longest loop, with one row
}

const (
	maxBuffers = 240       // IFL_SLOTS
	maxShared  = 96 << 10  // bytes of shared memory per block on every supported GPU
	hopShared  = 227 << 10 // the same with compute capability 9.0
	rowThreads = 256
)

// Emit returns the kernels of a module and their launches. context is the maximum
// number of rows of a sequence. If scores is not nil, attention may use the unified
// maximum of FlashDecoding++ §3.
func Emit(m *ir.Module, cat *templates.CUDACatalog, context int, scores *ScoreRange) (*Model, error) {
	l, err := layout.New(m, context)
	if err != nil {
		return nil, fmt.Errorf("%w (cuda target)", err)
	}
	if len(l.Buffers) > maxBuffers {
		return nil, fmt.Errorf("%s: %d buffers of values; the cuda target supports at most %d", m.Name, len(l.Buffers), maxBuffers)
	}
	e := &emitter{layout: l, cat: cat, scores: scores}
	e.describe()
	for _, g := range l.Graphs {
		if err := e.graph(g); err != nil {
			return nil, fmt.Errorf("%w (graph %s)", err, g.Name)
		}
	}
	if err := errors.Join(e.moves(), e.cellMoves()); err != nil {
		return nil, fmt.Errorf("%s: %w", m.Name, err)
	}
	if e.wgmma != nil {
		if err := e.wgmma.end("matmuls of many rows"); err != nil {
			return nil, err
		}
	}
	return &e.out, nil
}

// An emitter holds the state of one call of Emit.
type emitter struct {
	layout *layout.Layout
	cat    *templates.CUDACatalog
	scores *ScoreRange
	out    Model
	wgmma  *unit // of all matmuls, or nil
}

// describe sets the fields of the plan that depend on the layout.
func (e *emitter) describe() {
	p := &e.out.Plan
	p.HostBytes = e.hostBytes()
	p.Cross = e.layout.CrossEntry()
	for _, b := range e.layout.Buffers {
		p.Slots = append(p.Slots, manifest.CUDASlot{Cols: b.Cols, Rows: b.Role})
	}
	for _, g := range e.layout.Graphs {
		for _, l := range g.Lookups {
			p.Lookups = append(p.Lookups, manifest.CUDALookup{Entry: g.Entry, Input: l.Field, Below: l.Below})
		}
	}
}

// hostBytes returns the size of the tables at the start of the weights that only embed
// reads. The runtime may leave them in host memory, and transfers only the rows.
func (e *emitter) hostBytes() (n int64) {
	for _, w := range e.layout.Packed {
		if !e.layout.Weights[e.layout.Module.Weight(w.Name)].Table {
			break
		}
		n += w.Bytes
	}
	return n
}

// graph emits the kernels of a graph and their launches.
func (e *emitter) graph(g *layout.Graph) error {
	s := &schedule{}
	for _, n := range g.Schedule {
		if n.Region != nil {
			if err := e.region(s, n.Region); err != nil {
				return err
			}
			continue
		}
		// The body is emitted once; the host runs it for each layer.
		in := &schedule{}
		for _, r := range n.Loop.Regions {
			if err := e.region(in, r); err != nil {
				return err
			}
		}
		e.out.Regions = max(e.out.Regions, in.forOneRow())
		s.launches = append(s.launches, manifest.CUDALaunch{Lo: n.Loop.Lo, Hi: n.Loop.Hi, Body: in.launches})
	}
	if err := e.best(s, g); err != nil {
		return err
	}
	e.out.Plan.Graphs = append(e.out.Plan.Graphs, s.launches)
	return nil
}

func (e *emitter) region(s *schedule, r *layout.Region) error {
	switch work := r.Work.(type) {
	case *layout.Rows:
		return e.rows(s, r, work)
	case *layout.Matmul:
		return e.matmul(s, r, work)
	case *layout.Attention:
		return e.attention(s, r, work)
	case *layout.Experts:
		return e.experts(s, r, work)
	case *layout.Exchange:
		return e.exchange(s, r, work)
	case *layout.Copy:
		return e.copy(s, r, work)
	case *layout.Recurrent:
		return e.recurrent(s, r, work)
	}
	return fmt.Errorf("bug: region %s does %T", r.Name, r.Work)
}

// A schedule is the order in which the host launches kernels.
type schedule struct{ launches []manifest.CUDALaunch }

func (s *schedule) launch(kernel int, grid ...manifest.CUDADim) *manifest.CUDALaunch {
	l := manifest.CUDALaunch{Kernel: kernel}
	for i := range l.Grid {
		l.Grid[i] = manifest.CUDADim{N: 1}
		if i < len(grid) {
			l.Grid[i] = grid[i]
		}
	}
	s.launches = append(s.launches, l)
	return &s.launches[len(s.launches)-1]
}

// forOneRow returns the number of launches of a step with one row.
func (s *schedule) forOneRow() (n int) {
	for _, l := range s.launches {
		if l.Adapted == nil && l.From <= 1 && (l.Choice == nil || slices.Contains(l.Choice.Impls, 0)) { // implementation 0 is for one row
			n++
		}
	}
	return n
}

func blocksOf(n int) manifest.CUDADim { return manifest.CUDADim{N: n} }

func blocksPer(role string, per int) manifest.CUDADim {
	return manifest.CUDADim{N: 1, Rows: role, Per: per}
}

// rowCount returns the C expression of the number of rows of a role.
func rowCount(role string) string {
	return map[string]string{"tokens": "s->tokens", "out_rows": "s->out_rows", "sequences": "s->seqs"}[role]
}

// written returns the text that f writes.
func written(depth int, f func(w *ctext.Writer) error) (string, error) {
	w := ctext.NewWriter(depth)
	err := f(w)
	return w.String(), err
}
