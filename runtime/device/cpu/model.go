//go:build unix

package cpu

import (
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A model is a started library: its memory and the handle of its thread pool. The
// thread that calls Submit is one of the pool's threads during a step.
type model struct {
	lib     *Library
	threads int
	handle  uintptr

	pages     int64
	pageBytes []int64
	populator *populator // nil: disabled

	header *stepHeader   // of the running step
	maxima []device.Best // [threads][output rows] maxima over the columns that each thread computed

	kv, arena, slab *device.Region
	calibration     calibration
	tracer          tracer

	sites    []manifest.Site
	orders   [][]manifest.RowRun
	adapters [device.MaxAdapters]*device.Region
}

// Start maps the memory of the model and starts its threads.
func (l *Library) Start(cfg *device.Config) (device.Context, error) {
	if err := cfg.Check(); err != nil {
		return nil, err
	}
	m := &model{lib: l, pages: int64(cfg.Pages), pageBytes: cfg.PageBytes, threads: cfg.Threads, sites: cfg.Sites, orders: cfg.Orders}
	m.calibration.rows = max(cfg.MaxTokens, cfg.MaxOutRows)
	if err := m.start(cfg); err != nil {
		m.Close()
		return nil, err
	}
	return m, nil
}

func (m *model) start(cfg *device.Config) error {
	if err := m.mapMemory(cfg); err != nil {
		return err
	}
	config := m.place(&device.Slab{Bytes: m.slab.Bytes}, cfg)
	m.handle, _, _ = purego.SyscallN(m.lib.open, uintptr(unsafe.Pointer(config)))
	if m.handle == 0 {
		return fmt.Errorf("starting the model: its %s library refused (step ABI %d, %d threads)", m.lib.ISA, device.ABI, cfg.Threads)
	}
	if cfg.Populate > 0 && sum(cfg.PageBytes) > 0 {
		m.populator = startPopulator(m, cfg.Populate)
	}
	return nil
}

// mapMemory maps the states, pages and then cells, the scratch memory and the parts that place lays out.
func (m *model) mapMemory(cfg *device.Config) (err error) {
	bytes := m.lib.bytes(cfg.Pages, cfg.Cells)
	if m.kv, err = device.Map(bytes, "KV cache"); err != nil {
		return err
	}
	listed := (sum(cfg.PageBytes)*int64(cfg.Pages)+63)&^63 + sum(cfg.CellBytes)*int64(cfg.Cells)
	if (cfg.PageBytes != nil || cfg.CellBytes != nil) && listed != bytes {
		return fmt.Errorf("bug: the manifest lists %d bytes of state, the library expects %d", listed, bytes)
	}
	if m.arena, err = device.Map(m.lib.ScratchBytes(cfg), "scratch memory of a step"); err != nil {
		return err
	}
	m.arena.SmallPages() // sized for the largest step; most steps touch only the beginning of each part
	var measure device.Slab
	m.place(&measure, cfg)
	m.slab, err = measure.Map("headers of a step")
	return err
}

// place lays out the memory that C code uses besides the arrays of a Step. It also
// fills in the configuration, unless the slab only measures.
func (m *model) place(s *device.Slab, cfg *device.Config) *configHeader {
	headers, config := device.Carve[stepHeader](s, 1), device.Carve[configHeader](s, 1)
	cpus, dispatch := device.Carve[int32](s, cfg.Threads), device.Carve[byte](s, len(cfg.Dispatch))
	m.maxima = device.Carve[device.Best](s, cfg.Threads*cfg.MaxOutRows)
	if s.Bytes == nil {
		return nil
	}
	for i := range cpus {
		cpus[i] = -1
		if i < len(cfg.CPUs) {
			cpus[i] = int32(cfg.CPUs[i])
		}
	}
	copy(dispatch, cfg.Dispatch)
	m.header = &headers[0]
	config[0] = configHeader{
		abi: device.ABI, threads: int32(cfg.Threads), cpus: device.Pointer(cpus),
		weights: device.Pointer(cfg.Weights), weightsBytes: int64(len(cfg.Weights)),
		state: device.Pointer(m.kv.Bytes), pages: int32(cfg.Pages), cells: int32(cfg.Cells),
		maxTokens: int32(cfg.MaxTokens), maxOutRows: int32(cfg.MaxOutRows), maxSeqs: int32(cfg.MaxSeqs),
		arena: device.Pointer(m.arena.Bytes), dispatch: device.Pointer(dispatch), comm: cfg.Comm,
	}
	return &config[0]
}

func (m *model) MoveRow(to, from device.Row) {
	purego.SyscallN(m.lib.move, m.handle, uintptr(to.Page), uintptr(to.Row), uintptr(from.Page), uintptr(from.Row))
}

func (m *model) MoveInCells(to, from device.CellRow) {
	purego.SyscallN(m.lib.moveInCells, m.handle, uintptr(to.Cell), uintptr(to.Row), uintptr(from.Cell), uintptr(from.Row))
}

func (m *model) CopyCell(to, from int32) {
	purego.SyscallN(m.lib.copyCell, m.handle, uintptr(to), uintptr(from))
}

func (m *model) CopyPage(to, from int32) {
	base := int64(0) // offset of the element, which stores all its pages contiguously
	for _, n := range m.pageBytes {
		copy(m.kv.Bytes[base+int64(to)*n:][:n], m.kv.Bytes[base+int64(from)*n:][:n])
		base += n * m.pages
	}
}

func sum(list []int64) (total int64) {
	for _, n := range list {
		total += n
	}
	return total
}

// Counters returns no counts: Submit computes the step itself.
func (m *model) Counters() device.Counters { return device.Counters{} }

// Close stops the threads and frees the memory.
func (m *model) Close() {
	m.populator.stop()
	if m.handle != 0 {
		purego.SyscallN(m.lib.close, m.handle)
		m.handle = 0
	}
	for i := range m.adapters {
		m.adapters[i].Free()
	}
	for _, r := range []*device.Region{m.kv, m.arena, m.slab, m.calibration.sums, m.calibration.hessians, m.calibration.inputs, m.tracer.marks} {
		r.Free()
	}
}
