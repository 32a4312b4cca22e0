//go:build unix

package cuda

import (
	"errors"
	"fmt"
	"slices"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// siteHeader mirrors struct ifl_lora, with GPU addresses.
type siteHeader struct {
	rank int32
	_    int32
	a, b pointer
}

// adapters are the matmuls that the loaded adapters change, by index in CUDA.Adapted.
type adapters struct {
	of      [device.MaxAdapters][]bool // by number
	changed []bool                     // by any of them
}

// set sets what an adapter changes; nil: nothing. It reports whether changed is another.
func (a *adapters) set(number int32, changes []bool) bool {
	a.of[number] = changes
	before := a.changed
	a.changed = make([]bool, len(before))
	for _, list := range a.of {
		for i, c := range list {
			a.changed[i] = a.changed[i] || c
		}
	}
	return !slices.Equal(a.changed, before)
}

// sitesOf returns the number of sites of a program.
func sitesOf(plan *manifest.CUDA) (n int) {
	for _, parts := range plan.Adapted {
		for _, s := range parts {
			n = max(n, s.First+s.Count)
		}
	}
	return n
}

// changesOf returns the matmuls that an adapter changes; nil for nil.
func changesOf(plan *manifest.CUDA, p *lora.Packed) []bool {
	if p == nil {
		return nil
	}
	out := make([]bool, len(plan.Adapted))
	for i, parts := range plan.Adapted {
		for _, s := range parts {
			out[i] = out[i] || slices.ContainsFunc(p.Sites[s.First:s.First+s.Count], func(s lora.PackedSite) bool { return s.Rank > 0 })
		}
	}
	return out
}

// PackAdapter packs the adapter for the program's sites.
func (m *model) PackAdapter(a lora.Packer) (lora.Packer, error) {
	return lora.PackProgram(a, m.cfg.Sites, m.cfg.Orders)
}

// SetAdapter copies the adapter's matrices to the GPU. It reads the files while steps run,
// and waits for a step in progress to enter the matrices into the table of adapters, which
// captured graphs read too.
func (m *model) SetAdapter(number int32, a lora.Packer) error {
	if number < 0 || number >= device.MaxAdapters {
		return fmt.Errorf("bug: adapter number %d", number)
	}
	switch n := sitesOf(m.Plan); {
	case n == 0: // a rank without matrices that adapters can change
		return nil
	case n > len(m.cfg.Sites):
		return fmt.Errorf("bug: %d sites of adapters, the program has %d", len(m.cfg.Sites), n)
	}
	var packed *lora.Packed
	if a != nil {
		var err error
		if packed, err = a.PackRank(m.cfg.Sites, m.cfg.Orders, m.cfg.Sites); err != nil {
			return err
		}
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	if m.failed != nil {
		return fmt.Errorf("%s failed in an earlier step (%w); restart the program", m.GPU.Name, m.failed)
	}
	if err := m.GPU.enter(); err != nil {
		return err
	}
	defer m.GPU.leave()
	at, err := m.uploadAdapter(packed)
	if err == nil {
		err = m.enterAdapter(number, at)
	}
	if err != nil {
		return errors.Join(err, m.GPU.free(at))
	}
	old := m.memory.header.adapter[number]
	m.memory.header.adapter[number] = at
	if m.adapters.set(number, changesOf(m.Plan, packed)) { // graphs have the launches of the matmuls that were changed before
		m.dropGraphs(func(s shape) bool { return s.adapted })
	}
	return m.GPU.free(old)
}

// loaded reports whether a step may use an adapter's number; -1 is none.
func (m *model) loaded(number int32) bool {
	return number == -1 || number >= 0 && number < device.MaxAdapters && (m.memory.header.adapter[number] != 0 || len(m.Plan.Adapted) == 0)
}

// uploadAdapter copies the headers of an adapter's sites, then its matrices, to one
// allocation; 0 for nil.
func (m *model) uploadAdapter(p *lora.Packed) (pointer, error) {
	if p == nil {
		return 0, nil
	}
	headers := make([]siteHeader, len(p.Sites))
	before := round64(int64(len(headers)) * int64(unsafe.Sizeof(siteHeader{})))
	at, err := m.GPU.alloc(before+4*int64(len(p.Data)), "adapter")
	if err != nil {
		return 0, fmt.Errorf("%w, or unload another adapter", err)
	}
	for i, s := range p.Sites {
		if s.Rank > 0 {
			headers[i] = siteHeader{rank: int32(s.Rank), a: at + pointer(before+4*int64(s.A)), b: at + pointer(before+4*int64(s.B))}
		}
	}
	err = m.GPU.upload(at, bytesOf(headers), m.stream, nil)
	if err == nil {
		err = m.GPU.upload(at+pointer(before), bytesOf(p.Data), m.stream, nil)
	}
	return at, err
}

// enterAdapter sets the address of an adapter in the context on the GPU.
func (m *model) enterAdapter(number int32, at pointer) error {
	to := m.memory.ctx + pointer(unsafe.Offsetof(m.memory.header.adapter)) + pointer(number)*pointer(unsafe.Sizeof(at))
	entry := m.staging.step.Bytes[:copy(m.staging.step.Bytes, bytesOf([]pointer{at}))]
	if err := m.GPU.toDevice(to, entry, m.stream); err != nil {
		return err
	}
	return m.GPU.wait(m.stream)
}

// freeAdapters frees the memory of all adapters.
func (m *model) freeAdapters() {
	for _, at := range m.memory.header.adapter {
		m.GPU.free(at)
	}
	m.memory.header.adapter = [device.MaxAdapters]pointer{}
}

// bytesOf returns the memory of a list.
func bytesOf[T any](list []T) []byte {
	return unsafe.Slice((*byte)(unsafe.Pointer(unsafe.SliceData(list))), uintptr(len(list))*unsafe.Sizeof(*new(T)))
}
