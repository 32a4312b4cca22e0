//go:build unix

package cuda

import (
	"iter"
	"slices"
	"sync/atomic"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/comm"
)

// A shape contains everything that the grids of a step depend on.
type shape struct {
	graph, tokens, outRows, seqs int
	context                      int // index of the profile's measured context length
	adapted                      bool
}

const (
	maxGraphTokens = 64 // larger steps take long enough to hide launch latency
	maxShapes      = 48 // maximum number of shapes with captured graphs
	maxGraphs      = 4  // maximum graphs per step; exchanges through the host, two per layer, leave graphs no advantage
)

// graphCounts are a model's graph counters, which may be read concurrently.
type graphCounts struct{ kept, steps atomic.Int64 }

// Counters returns the graph counters.
func (m *model) Counters() device.Counters {
	return device.Counters{Graphs: m.counts.kept.Load(), GraphSteps: m.counts.steps.Load()}
}

// A piece of a step is a list of launches that one graph can hold, or a communication
// with other ranks through the host between graphs.
type piece struct {
	list []placed
	comm *manifest.CUDALaunch
}

// A graph is the captured launches of a piece.
type graph struct {
	exec uintptr
	told comm.Counts // what a launch communicates
}

// A placed launch is a launch in a given layer.
type placed struct {
	*manifest.CUDALaunch
	layer int
}

// launches iterates over a list of launches with their layers. A body is repeated for
// each of its layers.
func launches(list []manifest.CUDALaunch) iter.Seq2[*manifest.CUDALaunch, int] {
	return func(yield func(*manifest.CUDALaunch, int) bool) { walk(list, 0, yield) }
}

func walk(list []manifest.CUDALaunch, layer int, yield func(*manifest.CUDALaunch, int) bool) bool {
	for i := range list {
		l := &list[i]
		if l.Body == nil {
			if !yield(l, layer) {
				return false
			}
			continue
		}
		for at := l.Lo; at < l.Hi; at++ {
			if !walk(l.Body, at, yield) {
				return false
			}
		}
	}
	return true
}

// piecesOf splits a list of launches at communications, unless graphs can contain them
// (whole). It returns nil if there would be too many graphs.
func piecesOf(list []manifest.CUDALaunch, whole bool) (pieces []piece) {
	graphs := 0
	for l, layer := range launches(list) {
		switch n := len(pieces); {
		case l.Comm != nil && !whole:
			pieces = append(pieces, piece{comm: l})
		case n > 0 && pieces[n-1].comm == nil:
			pieces[n-1].list = append(pieces[n-1].list, placed{l, layer})
		default:
			pieces = append(pieces, piece{list: []placed{{l, layer}}})
			graphs++
		}
	}
	if graphs > maxGraphs {
		return nil
	}
	return pieces
}

// compute launches a step's kernels. A small step runs as CUDA graphs, which are
// captured when its rounded-up shape occurs for the second time. Kernels read the
// actual row counts from the step.
func (m *model) compute(s shape) error {
	pieces := m.pieces[s.graph]
	if !m.Graphs || pieces == nil || s.tokens > maxGraphTokens {
		return m.launchAll(m.Plan.Graphs[s.graph], s, s)
	}
	b := shape{s.graph, bucket(s.tokens), bucket(s.outRows), bucket(s.seqs), s.context, s.adapted}
	execs, seen := m.graphs[b]
	if !seen && len(m.graphs) >= maxShapes {
		return m.launchAll(m.Plan.Graphs[s.graph], s, s)
	}
	if !seen { // cuBLASLt loads the kernels of a shape in its first run, which is not allowed during a capture
		m.graphs[b] = nil
		return m.launchAll(m.Plan.Graphs[s.graph], b, s)
	}
	for i, p := range pieces {
		if p.comm != nil {
			if err := m.communicate(p.comm, s); err != nil {
				return err
			}
			continue
		}
		if execs == nil {
			execs = make([]graph, len(pieces))
			m.graphs[b] = execs
		}
		if err := m.replay(&execs[i], p.list, b); err != nil {
			return err
		}
	}
	m.counts.steps.Add(1)
	return nil
}

// replay launches a graph, which it captures first if it does not exist.
func (m *model) replay(g *graph, list []placed, s shape) error {
	link := m.transport.link()
	if g.exec == 0 {
		var before comm.Counts
		if link != nil {
			before = link.Counts()
		}
		var err error
		if g.exec, err = m.capture(list, s); err != nil {
			return err
		}
		if link != nil {
			g.told = link.Counts().Minus(before)
		}
		m.counts.kept.Add(1)
	} else if link != nil {
		link.Replayed(g.told)
	}
	return m.GPU.call(fnGraphLaunch, g.exec, uintptr(m.stream))
}

// dropGraphs destroys the graphs of some shapes.
func (m *model) dropGraphs(drop func(s shape) bool) {
	for s, execs := range m.graphs {
		if !drop(s) {
			continue
		}
		for _, g := range execs {
			if g.exec != 0 {
				m.GPU.call(fnGraphExecDestroy, g.exec)
				m.counts.kept.Add(-1)
			}
		}
		delete(m.graphs, s)
	}
}

// bucket rounds a row count up to a power of two.
func bucket(n int) int {
	b := 1
	for b < n {
		b *= 2
	}
	if n == 0 {
		return 0
	}
	return b
}

// capture captures launches for a shape as an executable graph.
func (m *model) capture(list []placed, s shape) (exec uintptr, err error) {
	const threadLocal = 1
	if err := m.GPU.call(fnStreamBeginCapture, uintptr(m.stream), threadLocal); err != nil {
		return 0, err
	}
	var failed error
	for _, l := range list {
		if failed == nil {
			failed = m.enqueue(l.CUDALaunch, s, l.layer)
		}
	}
	var graph uintptr
	if err := m.GPU.call(fnStreamEndCapture, uintptr(m.stream), uintptr(unsafe.Pointer(&graph))); err != nil {
		return 0, err
	}
	if failed == nil {
		failed = m.GPU.call(fnGraphInstantiate, uintptr(unsafe.Pointer(&exec)), graph, 0)
	}
	if graph != 0 {
		if err := m.GPU.call(fnGraphDestroy, graph); failed == nil {
			failed = err
		}
	}
	return exec, failed
}

// launchAll enqueues all launches of a list, with grids for one shape and communication
// for another, the step's own.
func (m *model) launchAll(list []manifest.CUDALaunch, grids, step shape) error {
	for l, layer := range launches(list) {
		s := grids
		if l.Comm != nil {
			s = step
		}
		if err := m.enqueue(l, s, layer); err != nil {
			return err
		}
	}
	return nil
}

// enqueue enqueues a launch, or executes a communication.
func (m *model) enqueue(l *manifest.CUDALaunch, s shape, layer int) error {
	if l.Comm != nil {
		return m.communicate(l, s)
	}
	return m.launch(l, s, layer)
}

// launch enqueues the kernels of a launch that run for the shape.
func (m *model) launch(l *manifest.CUDALaunch, s shape, layer int) error {
	if !s.runs(l) || l.Adapted != nil && !(s.adapted && m.adapters.changed[*l.Adapted]) {
		return nil
	}
	if l.Choice != nil && !slices.Contains(l.Choice.Impls, m.choice.of(l.Choice.Matmul, m.rows(l, s))) {
		return nil
	}
	return m.launchOne(l, s, layer)
}

// launchOne enqueues a kernel, or a matmul by cuBLASLt.
func (m *model) launchOne(l *manifest.CUDALaunch, s shape, layer int) error {
	if l.Gemm != nil {
		return m.gemm(l, s, layer)
	}
	g := m.grid(l, s)
	if g[0]*g[1]*g[2] == 0 {
		return nil
	}
	return m.start(l, g, layer)
}
