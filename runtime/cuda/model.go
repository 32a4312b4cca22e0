//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/load"
	"github.com/iflowc/iflowc/runtime/manifest"
)

// maxSlots is IFL_SLOTS.
const maxSlots = 240

// contextHeader is struct ifl_ctx of ifl_device.cuh.
type contextHeader struct {
	weights, tables, state, hostState    pointer
	stateSplit                           int64
	act, attention, experts, zeros       pointer
	parts                                pointer
	partBytes                            int64
	pages, maxTokens, maxWanted, maxSeqs int32
	slot                                 [maxSlots]pointer
}

// A model is one opened model: its memory on the GPU and its kernels.
type model struct {
	*Device
	cfg     load.Config
	memory  []pointer
	header  contextHeader
	ctx     pointer   // the header, on the GPU
	step    pointer   // the step, on the GPU
	out     []pointer // outputs
	kernels []kernel
	stream  stream
	staging *load.Region // the step as it is sent
	results *load.Region // outputs as they come back
	link    Link         // to other GPUs, or nil
	host    hostShare    // what stays in the host's memory
	told    *load.Region // rows on their way to another rank or from it; nil: there is none
	graphs  map[shape]uintptr
	failed  error // of a kernel: the context is lost
}

func (m *model) open(cfg *load.Config, s sizes) (err error) {
	if m.kernels, err = m.GPU.loadKernels(m.Plan, m.Files); err != nil {
		return err
	}
	if m.stream, err = m.GPU.newStream(); err != nil {
		return err
	}
	if err := m.place(cfg, s); err != nil {
		return err
	}
	if m.staging, err = load.Map(int64(unsafe.Sizeof(m.header))+m.stepBytes(), "the step as it is sent"); err != nil {
		return err
	}
	results := int64(0)
	for _, o := range cfg.Outputs {
		results += round64(int64(o.Rows) * int64(o.Cols) * 4)
	}
	if m.results, err = load.Map(results, "the step's results"); err != nil {
		return err
	}
	if s.talk > 0 && m.Reach != nil {
		if m.link, err = m.Reach(); err != nil {
			return err
		}
	}
	if s.talk > 0 {
		if m.told, err = load.Map(s.talk, "rows for other ranks"); err != nil {
			return err
		}
	}
	for _, r := range []*load.Region{m.staging, m.results, m.told} { // pinned, so that copies need no detour
		if r == nil {
			continue
		}
		if err := m.GPU.call(fnMemHostRegister, uintptr(unsafe.Pointer(&r.Bytes[0])), uintptr(len(r.Bytes)), 0); err != nil {
			return err
		}
	}
	copy(m.staging.Bytes, unsafe.Slice((*byte)(unsafe.Pointer(&m.header)), unsafe.Sizeof(m.header)))
	if err := m.GPU.toDevice(m.ctx, m.staging.Bytes[:unsafe.Sizeof(m.header)], m.stream); err != nil {
		return err
	}
	table := m.hostTables()
	if err := m.GPU.upload(m.header.weights+pointer(table), cfg.Weights[table:], m.stream, m.Progress); err != nil {
		return fmt.Errorf("sending the weights to %s: %w", m.GPU.Name, err)
	}
	return m.GPU.wait(m.stream)
}

// place takes the memory and notes where everything is.
func (m *model) place(cfg *load.Config, s sizes) error {
	take := func(n int64, what string) pointer {
		p, err := m.GPU.alloc(n, what)
		m.failed = errors.Join(m.failed, err)
		m.memory = append(m.memory, p)
		return p
	}
	state := m.StateBytes(cfg.Pages) - m.hostState(cfg.Pages)
	table := m.hostTables()
	m.header = contextHeader{
		weights: take(int64(len(cfg.Weights))-table, "weights") - pointer(table), state: take(state, "state of the sequences"), stateSplit: state,
		act: take(s.act, "packed activations"), attention: take(s.counters+s.attention, "scratch of attention") + pointer(s.counters),
		experts: take(s.experts, "scratch of experts"), zeros: take(s.zeros, "zeros"),
		parts: take(int64(m.Plan.Members)*s.part, "what the other ranks of the group said"), partBytes: s.part,
		pages: int32(cfg.Pages), maxTokens: int32(cfg.MaxTokens), maxWanted: int32(cfg.MaxWanted), maxSeqs: int32(cfg.MaxSeqs),
	}
	for i, n := range s.slots {
		m.header.slot[i] = take(n, "values of a step")
	}
	for _, o := range cfg.Outputs {
		m.out = append(m.out, take(int64(o.Rows)*int64(o.Cols)*4, "results of a step"))
	}
	if err := m.placeOnHost(cfg); err != nil {
		return err
	}
	m.ctx, m.step = take(int64(unsafe.Sizeof(m.header)), "the context"), take(m.stepBytes(), "the step")
	if m.failed != nil {
		return m.failed
	}
	for _, r := range []struct {
		p pointer
		n int64
	}{{m.header.state, state}, {m.header.attention - pointer(s.counters), s.counters}, {m.header.zeros, s.zeros}} {
		if r.n > 0 {
			if err := m.GPU.clear(r.p, r.n, m.stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// Close waits for the GPU and gives its memory back.
func (m *model) Close() {
	if m.GPU.enter() != nil {
		return
	}
	defer m.GPU.leave()
	if m.stream != 0 {
		m.GPU.wait(m.stream) // after a failed kernel this fails too; nothing more can be done
	}
	for _, g := range m.graphs {
		m.GPU.call(fnGraphExecDestroy, g)
	}
	for _, r := range []*load.Region{m.staging, m.results, m.told} {
		if r != nil {
			m.GPU.call(fnMemHostUnregister, uintptr(unsafe.Pointer(&r.Bytes[0])))
			r.Free()
		}
	}
	m.host.free(m.GPU)
	if m.link != nil {
		m.link.Close()
		m.link = nil
	}
	for _, p := range m.memory {
		m.GPU.free(p)
	}
	if m.stream != 0 {
		m.GPU.call(fnStreamDestroy, uintptr(m.stream))
	}
	m.memory, m.graphs, m.stream, m.staging, m.results, m.told = nil, nil, 0, nil, nil, nil
}

// CopyPage copies a state page, in every element of every state.
func (m *model) CopyPage(to, from int32) error {
	if err := m.GPU.enter(); err != nil {
		return err
	}
	defer m.GPU.leave()
	at := int64(0) // of the element: all its pages lie together
	for _, s := range m.Manifest.States {
		for range s.Count {
			base := m.header.state + pointer(at)
			if at += s.PageBytes * int64(m.cfg.Pages); at > m.header.stateSplit {
				if err := m.host.copyPage(m, at-s.PageBytes*int64(m.cfg.Pages), to, from, s.PageBytes); err != nil {
					return err
				}
				continue
			}
			if err := m.GPU.copyWithin(base+pointer(int64(to)*s.PageBytes), base+pointer(int64(from)*s.PageBytes), s.PageBytes, m.stream); err != nil {
				return err
			}
		}
	}
	return nil
}

// MoveRow copies a state row, in every element of every state.
func (m *model) MoveRow(toPage, toRow, fromPage, fromRow int) error {
	if err := m.GPU.enter(); err != nil {
		return err
	}
	defer m.GPU.leave()
	numbers := unsafe.Slice((*int32)(unsafe.Pointer(&m.staging.Bytes[0])), 4)
	copy(numbers, []int32{int32(toPage), int32(toRow), int32(fromPage), int32(fromRow)})
	if err := m.GPU.toDevice(m.step, m.staging.Bytes[:16], m.stream); err != nil {
		return err
	}
	for i := range m.Plan.Moves {
		l := &m.Plan.Moves[i]
		if err := m.GPU.launch(m.kernels[l.Kernel], m.grid(l, shape{}), m.ctx, m.step, 0, m.stream); err != nil {
			return err
		}
	}
	return m.GPU.wait(m.stream) // the staging memory is used again
}

// outputs are the results of a graph.
func (m *model) outputs(entry int) []manifest.Output { return m.Manifest.Graphs[entry].Outputs }
