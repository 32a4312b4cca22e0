//go:build unix

package cuda

import (
	"errors"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// maxSlots is IFL_SLOTS.
const maxSlots = 240

// contextHeader mirrors struct ifl_ctx of ifl_device.cuh.
type contextHeader struct {
	weights, tables, state, hostState     pointer
	stateSplit                            int64
	cell                                  pointer
	cells                                 int64
	act, rows, partial, arrived           pointer
	attention, experts, zeros             pointer
	parts                                 pointer
	wide, panels, product, factor         pointer
	lora                                  pointer
	pages, maxTokens, maxOutRows, maxSeqs int32
	adapter                               [device.MaxAdapters]pointer
	slot                                  [maxSlots]pointer
}

// memory is a model's memory on the GPU.
type memory struct {
	blocks []pointer // all allocations
	header contextHeader
	ctx    pointer   // address of the header
	step   pointer   // address of the step
	out    []pointer // outputs
	best   pointer   // argmaxes of the logits, in parts
	top    pointer   // their largest, in parts
	blas   pointer   // cuBLASLt's workspace
}

func (m *memory) free(g *GPU) {
	for _, p := range m.blocks {
		g.free(p)
	}
	m.blocks = nil
}

// place allocates the GPU memory and fills in the context header.
func (m *model) place(cfg *device.Config, s *sizes) error {
	var failed error
	take := func(n int64, what string) pointer {
		p, err := m.GPU.alloc(n, what)
		failed = errors.Join(failed, err)
		m.memory.blocks = append(m.memory.blocks, p)
		return p
	}
	state := m.kvBytes(cfg.Pages) - m.hostKV(cfg.Pages)
	table := m.hostTables()
	h := &m.memory.header
	*h = contextHeader{
		weights: take(int64(len(cfg.Weights))-table, "weights") - pointer(table), state: take(state, "KV cache"), stateSplit: state,
		cells: int64(cfg.Cells),
		act:   take(s.act, "packed activations"), rows: take(s.rows, "temporaries of row ops"), partial: take(s.partial, "parts of matmuls"), arrived: take(s.arrived, "counters of matmuls"),
		attention: take(s.counters+s.attention, "scratch of attention") + pointer(s.counters),
		experts:   take(s.experts, "scratch of experts"), zeros: take(s.zeros, "zeros"),
		parts: take(s.parts, "parts of the tensor-parallel group"),
		wide:  take(s.gemm.wide, "rows of 16-bit matmuls"), panels: take(s.gemm.panels, "weights of 16-bit matmuls"),
		product: take(s.gemm.product, "results of 16-bit matmuls"), factor: take(s.gemm.factor, "factors of 16-bit matmuls"),
		lora:  take(s.lora, "products of adapters"),
		pages: int32(cfg.Pages), maxTokens: int32(cfg.MaxTokens), maxOutRows: int32(cfg.MaxOutRows), maxSeqs: int32(cfg.MaxSeqs),
	}
	if s.gemm.blas > 0 {
		m.memory.blas = take(s.gemm.blas, "scratch of cuBLASLt")
	}
	cells := m.cellBytes(cfg.Cells)
	if cells > 0 {
		h.cell = take(cells, "fixed-size states")
		m.cellMoves.at = take(int64(cfg.MaxTokens)*int64(unsafe.Sizeof(move{})), "rows of cells to move")
	}
	for i, n := range s.slots {
		h.slot[i] = take(n, "values of a step")
	}
	for _, o := range cfg.Outputs {
		m.memory.out = append(m.memory.out, take(int64(o.Rows)*int64(o.Cols)*4, "results of a step"))
	}
	m.memory.best, m.memory.top = take(m.bestBytes(cfg), "argmaxes of a step"), take(manifest.TopLogits*m.bestBytes(cfg), "largest logits of a step")
	m.moves.at = take(int64(cfg.MaxTokens)*int64(unsafe.Sizeof(move{})), "rows to move")
	if err := m.placeOnHost(cfg); err != nil {
		return err
	}
	m.memory.ctx, m.memory.step = take(int64(unsafe.Sizeof(*h)), "the context"), take(m.stepBytes(), "the step")
	if failed != nil {
		return failed
	}
	for _, r := range []struct {
		p pointer
		n int64
	}{{h.state, state}, {h.cell, cells}, {h.attention - pointer(s.counters), s.counters}, {h.arrived, s.arrived}, {h.zeros, s.zeros}} {
		if r.n > 0 {
			if err := m.GPU.clear(r.p, r.n, m.stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// staging is pinned host memory for a step's inputs and results.
type staging struct{ step, results *device.Region }

func (s *staging) open(m *model, cfg *device.Config) (err error) {
	if s.step, err = m.GPU.pinned(int64(unsafe.Sizeof(contextHeader{}))+m.stepBytes(), "the step as it is sent"); err != nil {
		return err
	}
	results := (1 + manifest.TopLogits) * m.bestBytes(cfg)
	for _, o := range cfg.Outputs {
		results += round64(int64(o.Rows) * int64(o.Cols) * 4)
	}
	s.results, err = m.GPU.pinned(results, "the step's results")
	return err
}

func (s *staging) close(g *GPU) {
	g.unpin(s.step)
	g.unpin(s.results)
	*s = staging{}
}

// pinned allocates pinned (page-locked) host memory. Errors begin with what.
func (g *GPU) pinned(n int64, what string) (*device.Region, error) {
	r, err := device.Map(n, what)
	if err != nil {
		return nil, err
	}
	return r, g.call(fnMemHostRegister, uintptr(unsafe.Pointer(&r.Bytes[0])), uintptr(len(r.Bytes)), 0)
}

func (g *GPU) unpin(r *device.Region) {
	if r != nil {
		g.call(fnMemHostUnregister, uintptr(unsafe.Pointer(&r.Bytes[0])))
		r.Free()
	}
}
