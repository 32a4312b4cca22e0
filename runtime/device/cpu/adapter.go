//go:build unix

package cpu

import (
	"errors"
	"fmt"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/device"
)

// siteHeader mirrors struct ifl_lora.
type siteHeader struct {
	rank int32
	a, b unsafe.Pointer
}

// PackAdapter packs the adapter for the model's sites.
func (m *model) PackAdapter(a lora.Packer) (lora.Packer, error) {
	return lora.PackProgram(a, m.sites, m.orders)
}

// SetAdapter copies the adapter's matrices to memory that C code reads.
func (m *model) SetAdapter(number int32, a lora.Packer) error {
	if number < 0 || number >= device.MaxAdapters {
		return fmt.Errorf("bug: adapter number %d", number)
	}
	if len(m.sites) == 0 { // a rank without matrices that adapters can change
		return nil
	}
	if m.lib.setAdapter == 0 {
		return errors.New("the model's library cannot load adapters; compile the model again")
	}
	var region *device.Region
	at := uintptr(0)
	if a != nil {
		packed, err := a.PackRank(m.sites, m.orders, m.sites)
		if err != nil {
			return err
		}
		if region, err = mapAdapter(packed); err != nil {
			return err
		}
		at = uintptr(unsafe.Pointer(&region.Bytes[0]))
	}
	purego.SyscallN(m.lib.setAdapter, m.handle, uintptr(number), at)
	m.adapters[number].Free()
	m.adapters[number] = region
	return nil
}

// mapAdapter lays out an adapter: the headers of its sites, then its matrices.
func mapAdapter(p *lora.Packed) (*device.Region, error) {
	place := func(s *device.Slab) ([]siteHeader, []float32) {
		return device.Carve[siteHeader](s, len(p.Sites)), device.Carve[float32](s, len(p.Data))
	}
	var measure device.Slab
	place(&measure)
	region, err := measure.Map("adapter")
	if err != nil {
		return nil, err
	}
	headers, data := place(&device.Slab{Bytes: region.Bytes})
	copy(data, p.Data)
	for i, s := range p.Sites {
		if s.Rank > 0 {
			headers[i] = siteHeader{int32(s.Rank), unsafe.Pointer(&data[s.A]), unsafe.Pointer(&data[s.B])}
		}
	}
	return region, nil
}
