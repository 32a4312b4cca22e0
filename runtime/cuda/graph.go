//go:build unix

package cuda

import (
	"slices"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/manifest"
)

// A shape is what the grids of a step depend on.
type shape struct {
	entry, tokens, wanted, seqs int
	context                     int // which of the profile's
}

const (
	maxGraphTokens = 64 // larger steps take long enough to hide their launches
	maxGraphs      = 48 // kept for a model
)

// compute launches a step's kernels. A small step runs as a graph that was
// captured for its shape, rounded up, when the shape came a second time:
// kernels look at the step itself for how many rows there are.
func (m *model) compute(s shape) error {
	if !m.Graphs || m.exchange.told != nil || s.tokens > maxGraphTokens { // a graph cannot wait for other ranks
		return m.launchAll(m.Plan.Graphs[s.entry], s, 0)
	}
	b := shape{s.entry, bucket(s.tokens), bucket(s.wanted), bucket(s.seqs), s.context}
	exec, seen := m.graphs[b]
	if exec == 0 {
		if !seen { // libraries load their kernels at the first run, which must not be while a graph is captured
			if len(m.graphs) < maxGraphs {
				m.graphs[b] = 0
			}
			return m.launchAll(m.Plan.Graphs[s.entry], s, 0)
		}
		var err error
		if exec, err = m.capture(b); err != nil {
			return err
		}
		m.graphs[b] = exec
	}
	return m.GPU.call(fnGraphLaunch, exec, uintptr(m.stream))
}

// bucket rounds a number of rows up to a power of two.
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

// capture records the launches of a shape as an executable graph.
func (m *model) capture(s shape) (exec uintptr, err error) {
	const threadLocal = 1
	if err := m.GPU.call(fnStreamBeginCapture, uintptr(m.stream), threadLocal); err != nil {
		return 0, err
	}
	failed := m.launchAll(m.Plan.Graphs[s.entry], s, 0)
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

// launchAll puts the launches of a list into the stream.
func (m *model) launchAll(list []manifest.CUDALaunch, s shape, layer int) error {
	for i := range list {
		l := &list[i]
		if l.Body != nil {
			for at := l.Lo; at < l.Hi; at++ {
				if err := m.launchAll(l.Body, s, at); err != nil {
					return err
				}
			}
			continue
		}
		if l.Comm != nil {
			if err := m.talk(l, s); err != nil {
				return err
			}
			continue
		}
		if !s.runs(l) {
			continue
		}
		impl := 0
		if l.Choice != nil {
			if impl = m.choice.of(l.Choice.Site, m.rows(l, s)); !slices.Contains(l.Choice.Impls, impl) {
				continue
			}
		}
		if err := m.launchOne(l, s, layer, impl); err != nil {
			return err
		}
	}
	return nil
}

// launchOne puts a kernel, or a product of 16-bit matrices by an implementation
// of its site, into the stream.
func (m *model) launchOne(l *manifest.CUDALaunch, s shape, layer, impl int) error {
	if l.Gemm != nil {
		return m.gemm(l, s, layer, m.Plan.Sites[l.Choice.Site].Impls[impl] == implCublas)
	}
	g := m.grid(l, s)
	if g[0]*g[1]*g[2] == 0 {
		return nil
	}
	return m.start(l, g, layer)
}
