//go:build unix

package cuda

import (
	"fmt"
	"sync"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A model is an open model: its GPU memory and its kernels.
type model struct {
	device.Uninstrumented
	*Device
	cfg       device.Config
	paged     bool // the model has a KV cache
	celled    bool // it has fixed-size states
	memory    memory
	choice    *choice // selects kernels
	blas      *blasHandle
	stream    stream
	staging   staging
	host      hostShare // data in host memory
	transport transport
	pieces    [][]piece         // of each list of launches; nil: no graphs
	graphs    map[shape][]graph // executable graphs of the pieces; nil: the shape ran once
	counts    graphCounts
	adapters  adapters
	results   results
	moves     moves
	cellMoves moves
	mu        sync.Mutex // for rows that are fetched concurrently
	failed    error      // error of a kernel or a copy; the context is lost
}

func (m *model) open(cfg *device.Config, s *sizes) (err error) {
	if m.stream, err = m.GPU.newStream(); err != nil {
		return err
	}
	if err := m.place(cfg, s); err != nil {
		return err
	}
	if s.gemm.blas > 0 {
		if m.blas, err = m.choice.blas.on(m.memory.blas, s.gemm.blas); err != nil {
			return err
		}
	}
	if err := m.staging.open(m, cfg); err != nil {
		return err
	}
	if err := m.moves.open(m, cfg.MaxTokens); err != nil {
		return err
	}
	if m.celled {
		if err := m.cellMoves.open(m, cfg.MaxTokens); err != nil {
			return err
		}
	}
	if m.transport, err = m.openTransport(s.comm); err != nil {
		return err
	}
	for _, list := range m.Plan.Graphs {
		m.pieces = append(m.pieces, piecesOf(list, m.transport.link() != nil))
	}
	header := unsafe.Slice((*byte)(unsafe.Pointer(&m.memory.header)), unsafe.Sizeof(m.memory.header))
	if err := m.GPU.toDevice(m.memory.ctx, m.staging.step.Bytes[:copy(m.staging.step.Bytes, header)], m.stream); err != nil {
		return err
	}
	table := m.hostTables()
	if err := m.GPU.upload(m.memory.header.weights+pointer(table), cfg.Weights[table:], m.stream, m.Progress); err != nil {
		return fmt.Errorf("uploading the weights to %s: %w", m.GPU.Name, err)
	}
	return m.GPU.wait(m.stream)
}

// Close synchronizes with the GPU and frees its memory.
func (m *model) Close() {
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.GPU.enter() != nil {
		return
	}
	defer m.GPU.leave()
	if m.stream != 0 {
		m.GPU.wait(m.stream) // after a failed kernel this fails too; ignore the error
	}
	m.dropGraphs(func(shape) bool { return true })
	if m.blas != nil {
		m.blas.close()
	}
	m.staging.close(m.GPU)
	m.GPU.unpin(m.moves.region)
	m.GPU.unpin(m.cellMoves.region)
	m.host.free(m.GPU)
	m.transport.close(m.GPU)
	m.transport = noTransport{}
	m.freeAdapters()
	m.memory.free(m.GPU)
	if m.stream != 0 {
		m.GPU.call(fnStreamDestroy, uintptr(m.stream))
		m.stream = 0
	}
}

func (m *model) copyPage(to, from int32) error {
	h := &m.memory.header
	at := int64(0) // offset of the element, which stores all its pages contiguously
	for _, n := range m.Manifest.PageBytes() {
		base := h.state + pointer(at)
		if at += n * int64(m.cfg.Pages); at > h.stateSplit {
			if err := m.host.copyPage(m, at-n*int64(m.cfg.Pages), to, from, n); err != nil {
				return err
			}
			continue
		}
		if err := m.GPU.copyWithin(base+pointer(int64(to)*n), base+pointer(int64(from)*n), n, m.stream); err != nil {
			return err
		}
	}
	return nil
}

func (m *model) copyCell(to, from int32) error {
	base := m.memory.header.cell // of the element, which stores all its cells contiguously
	for _, n := range m.Manifest.CellBytes() {
		if err := m.GPU.copyWithin(base+pointer(int64(to)*n), base+pointer(int64(from)*n), n, m.stream); err != nil {
			return err
		}
		base += pointer(n * int64(m.cfg.Cells))
	}
	return nil
}

// start enqueues a kernel of the plan.
func (m *model) start(l *manifest.CUDALaunch, grid [3]int, layer int) error {
	n := int32(layer)
	return m.GPU.launch(m.kernels[l.Kernel], grid, m.stream, unsafe.Pointer(&m.memory.ctx), unsafe.Pointer(&m.memory.step), unsafe.Pointer(&n))
}

// outputs returns the outputs of a graph.
func (m *model) outputs(entry int) []manifest.Output { return m.Manifest.Graphs[entry].Outputs }
