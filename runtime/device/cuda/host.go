//go:build unix

package cuda

import (
	"unsafe"

	"github.com/iflowc/iflowc/runtime/device"
)

// A Host selects the data that stays in host memory, from which the GPU reads it over
// the bus. It makes room for larger models but is slower.
type Host struct {
	KVPercent  int  // percentage of the KV cache's elements, from the last on, that stay in host memory
	Embeddings bool // keep embedding tables in host memory, unless a matmul reads them too
}

// hostKV returns the bytes of the KV cache in host memory: those of its last elements.
func (d *Device) hostKV(pages int) (bytes int64) {
	elements := len(d.Manifest.PageBytes())
	left := elements - (elements*d.Host.KVPercent+99)/100 // elements on the GPU
	for _, s := range d.Manifest.States {
		if s.CellBytes > 0 {
			continue // fixed-size states stay on the GPU
		}
		here := min(left, s.Count)
		left -= here
		bytes += int64(s.Count-here) * s.PageBytes * int64(pages)
	}
	return bytes
}

// hostTables returns how many bytes of the weights, from the first on, stay in host
// memory.
func (d *Device) hostTables() int64 {
	if d.Host.Embeddings {
		return d.Plan.HostBytes
	}
	return 0
}

// A hostShare is host memory that the GPU accesses.
type hostShare struct {
	state  *device.Region
	shared []uintptr // registered with the driver
}

// share registers host memory with the GPU and returns its GPU address.
func (h *hostShare) share(g *GPU, data []byte) (p pointer, err error) {
	const deviceMap = 2
	at := uintptr(unsafe.Pointer(&data[0]))
	if err := g.call(fnMemHostRegister, at, uintptr(len(data)), deviceMap); err != nil {
		return 0, err
	}
	h.shared = append(h.shared, at)
	return p, g.call(fnMemHostGetDevicePointer, uintptr(unsafe.Pointer(&p)), at, 0)
}

// placeOnHost allocates and registers the data that Host selects, and completes the
// context header.
func (m *model) placeOnHost(cfg *device.Config) (err error) {
	m.memory.header.tables = m.memory.header.weights
	if n := m.hostTables(); n > 0 {
		if m.memory.header.tables, err = m.host.share(m.GPU, cfg.Weights[:n]); err != nil {
			return err
		}
	}
	n := m.hostKV(cfg.Pages)
	if n == 0 {
		return nil
	}
	if m.host.state, err = device.Map(n, "KV cache in host memory"); err != nil {
		return err
	}
	p, err := m.host.share(m.GPU, m.host.state.Bytes)
	m.memory.header.hostState = p - pointer(m.memory.header.stateSplit)
	return err
}

// copyPage copies a page of the element at offset at of the state.
func (h *hostShare) copyPage(m *model, at int64, to, from int32, bytes int64) error {
	if err := m.GPU.wait(m.stream); err != nil {
		return err
	}
	element := h.state.Bytes[at-m.memory.header.stateSplit:]
	copy(element[int64(to)*bytes:][:bytes], element[int64(from)*bytes:][:bytes])
	return nil
}

func (h *hostShare) free(g *GPU) {
	for _, at := range h.shared {
		g.call(fnMemHostUnregister, at)
	}
	if h.state != nil {
		h.state.Free()
	}
	*h = hostShare{}
}
