//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"math"
	"slices"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/tune"
)

// A Timer times the matmuls and the attention of a model on its GPU under the
// conditions of a step: with the surrounding ops and cold caches. CUDA events measure
// each run. It implements tune.Timer and is not safe for concurrent use.
type Timer struct {
	m       *model
	matmuls []matmulLaunches
	step    *device.Step // with as many sequences as rows
	events  []event
	flush   pointer // overwritten before each run to clear the caches
	next    int     // next layer to measure
}

var _ tune.Timer = (*Timer)(nil)

// matmulLaunches are the launches of a matmul.
type matmulLaunches struct {
	entry    int
	launches []manifest.CUDALaunch
	lo, hi   int // range of layers
}

// Timer opens the model for steps of up to rows rows.
func (d *Device) Timer(weights []byte, rows int) (*Timer, error) {
	pages := d.pages()
	cfg := &device.Config{Weights: weights, Pages: pages, MaxPages: max(rows, pages), MaxTokens: rows, MaxOutRows: rows, MaxSeqs: rows}
	if d.Manifest.CellBytes() != nil {
		cfg.Cells, cfg.MaxCells = 1, rows
	}
	for i := range d.Manifest.Graphs {
		for _, o := range d.Manifest.Graphs[i].Outputs {
			cfg.Outputs = append(cfg.Outputs, device.Array{Rows: rows, Cols: o.Cols})
		}
	}
	d.measuring = true
	m, err := d.open(cfg)
	if err != nil {
		return nil, err
	}
	t := &Timer{m: m, step: stepOf(rows)}
	for matmul := range d.Plan.Matmuls {
		t.matmuls = append(t.matmuls, m.find(matmul))
	}
	if err := d.GPU.enter(); err != nil {
		m.Close()
		return nil, err
	}
	defer d.GPU.leave()
	if t.flush, err = d.GPU.alloc(d.GPU.flushBytes(), "what keeps caches cold"); err != nil {
		m.Close()
		return nil, err
	}
	m.memory.blocks = append(m.memory.blocks, t.flush)
	return t, nil
}

// flushBytes is the amount of memory to overwrite to evict everything else from the
// caches.
func (g *GPU) flushBytes() int64 { return int64(max(4*g.L2Bytes, 4<<20)) }

// stepOf returns a step of n sequences of one token, all in one page and one cell.
func stepOf(n int) *device.Step {
	list := func(n int, of func(i int) int32) []int32 {
		out := make([]int32, n)
		for i := range out {
			out[i] = of(i)
		}
		return out
	}
	zero, same := func(int) int32 { return 0 }, func(i int) int32 { return int32(i) }
	return &device.Step{
		ID: list(n, zero), Pos: list(n, zero), Seq: list(n, same), Slot: list(n, zero), Types: list(n, zero), OutRow: list(n, same), TopK: list(n, zero),
		First: list(n+1, same), PageAt: list(n+1, same), Past: list(n, zero), Page: list(n, zero),
		XPageAt: list(n+1, same), XPage: list(n, zero), XRows: list(n, func(int) int32 { return 1 }),
		CellAt: list(n+1, same), CellFrom: list(n, zero), Cell: list(n, zero),
	}
}

// find returns a matmul's launches.
func (m *model) find(matmul int) (p matmulLaunches) {
	var walk func(list []manifest.CUDALaunch, lo, hi int) bool
	walk = func(list []manifest.CUDALaunch, lo, hi int) bool {
		for _, l := range list {
			if l.Body != nil && walk(l.Body, l.Lo, l.Hi) {
				return true
			}
			if l.Choice != nil && l.Choice.Matmul == matmul && l.Adapted == nil {
				p.launches, p.lo, p.hi = append(p.launches, l), lo, hi
			}
		}
		return len(p.launches) > 0
	}
	for i, list := range m.Plan.Graphs {
		if p.entry = i; walk(list, 0, 1) {
			break
		}
	}
	return p
}

// Shapes returns the shapes to measure.
func (t *Timer) Shapes() []tune.Shape {
	var shapes []tune.Shape
	for _, s := range t.m.Plan.Matmuls {
		if slices.ContainsFunc(shapes, func(o tune.Shape) bool { return o.N == s.N && o.K == s.K && o.DType == s.DType }) {
			continue
		}
		shape := tune.Shape{N: s.N, K: s.K, DType: s.DType}
		for _, impl := range s.Impls {
			if t.m.Device.has(impl) && (impl != implCublas || t.m.blas != nil) {
				shape.Candidates = append(shape.Candidates, tune.Candidate{Impl: impl})
			}
		}
		shapes = append(shapes, shape)
	}
	return shapes
}

// Time implements tune.Timer. It cannot detect other programs on the GPU, so clean is
// always true.
func (t *Timer) Time(s tune.Shape, rows, blocks int, which []int) ([][]float64, bool, error) {
	g := t.m.GPU
	if err := g.enter(); err != nil {
		return nil, false, err
	}
	defer g.leave()
	matmul := slices.IndexFunc(t.m.Plan.Matmuls, func(o manifest.Matmul) bool { return o.N == s.N && o.K == s.K && o.DType == s.DType })
	at := t.matmuls[matmul]
	if err := t.send(t.step, rows, at.entry); err != nil {
		return nil, false, err
	}
	order := tune.Interleave(which, blocks)
	for i, c := range order {
		impl := slices.Index(t.m.Plan.Matmuls[matmul].Impls, s.Candidates[c].Impl)
		if err := t.once(i, at, impl, rows); err != nil {
			return nil, false, fmt.Errorf("measuring %s for [%d, %d] %s, %d rows: %w", s.Candidates[c].Impl, s.N, s.K, s.DType, rows, err)
		}
	}
	if err := g.wait(t.m.stream); err != nil {
		return nil, false, err
	}
	seconds := make([]float64, len(order))
	for i := range seconds {
		var err error
		if seconds[i], err = g.between(t.events[2*i], t.events[2*i+1]); err != nil {
			return nil, false, err
		}
	}
	times, _ := tune.ByCandidate(len(s.Candidates), 2*len(which), order[1:], seconds[1:], make([]int32, len(order)-1))
	return times, true, nil
}

// send copies a step of the given number of rows to the GPU.
func (t *Timer) send(s *device.Step, rows, graph int) error {
	m := t.m
	s.Graph, s.Tokens, s.OutRows, s.Seqs, s.Typed = graph, rows, rows, rows, true
	n := m.stage(s)
	if err := m.GPU.toDevice(m.memory.step, m.staging.step.Bytes[:n], m.stream); err != nil {
		return err
	}
	return m.GPU.wait(m.stream)
}

// once executes run i: an implementation of a matmul.
func (t *Timer) once(i int, at matmulLaunches, impl, rows int) error {
	layer := at.lo + t.next%(at.hi-at.lo)
	t.next++
	return t.timed(i, func() error {
		for j := range at.launches {
			l := &at.launches[j]
			if !slices.Contains(l.Choice.Impls, impl) {
				continue
			}
			if err := t.m.launchOne(l, shape{at.entry, rows, rows, rows, 0, false}, layer); err != nil {
				return err
			}
		}
		return nil
	})
}

// timed enqueues work between the two events of run i, after clearing the caches.
func (t *Timer) timed(i int, work func() error) error {
	g, on := t.m.GPU, t.m.stream
	for len(t.events) < 2*i+2 {
		e, err := g.newEvent()
		if err != nil {
			return err
		}
		t.events = append(t.events, e)
	}
	if err := g.clear(t.flush, g.flushBytes(), on); err != nil {
		return err
	}
	if err := g.record(t.events[2*i], on); err != nil {
		return err
	}
	if err := work(); err != nil {
		return err
	}
	return g.record(t.events[2*i+1], on)
}

// ReadGBs measures the GPU's memory bandwidth in GB/s: the best of a few passes over
// the weights, with the access pattern of matmuls.
func (t *Timer) ReadGBs() (float64, error) {
	m := t.m
	if m.Plan.Read == nil {
		return 0, errors.New("the program lacks the kernel that measures bandwidth; compile the model again")
	}
	if err := m.GPU.enter(); err != nil {
		return 0, err
	}
	defer m.GPU.leave()
	n := int32(min((int64(len(m.cfg.Weights))-m.hostTables())/16, 1<<27))
	from := m.memory.header.weights + pointer(m.hostTables())
	best := math.Inf(1)
	for range 5 {
		err := t.timed(0, func() error {
			return m.GPU.launch(m.kernels[*m.Plan.Read], [3]int{8 * m.GPU.Processors, 1, 1}, m.stream, unsafe.Pointer(&from), unsafe.Pointer(&t.flush), unsafe.Pointer(&n))
		})
		if err == nil {
			err = m.GPU.wait(m.stream)
		}
		if err != nil {
			return 0, err
		}
		seconds, err := m.GPU.between(t.events[0], t.events[1])
		if err != nil {
			return 0, err
		}
		best = min(best, seconds)
	}
	return 16 * float64(n) / best / 1e9, nil
}

// Close frees the GPU's memory.
func (t *Timer) Close() {
	if t.m.GPU.enter() == nil {
		for _, e := range t.events {
			t.m.GPU.call(fnEventDestroy, uintptr(e))
		}
		t.m.GPU.leave()
	}
	t.m.Close()
}
