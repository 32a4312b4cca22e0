//go:build unix

package engine

import (
	"errors"
	"fmt"

	"github.com/iflowc/iflowc/runtime/artifact/lora"
	"github.com/iflowc/iflowc/runtime/device"
)

// Errors of LoadAdapter.
var (
	ErrAdapterMemory = errors.New("the memory for adapters is full")
	ErrLoad          = errors.New("the device did not load the adapter")
	ErrAdapters      = fmt.Errorf("%d adapters are loaded, which is the most", device.MaxAdapters)
)

// An Adapter is a LoRA adapter that an engine has loaded.
type Adapter struct {
	number   int32  // in steps; a later adapter may have it again
	load     uint64 // counts loads, so it is not reused: the prefix cache is keyed by it
	bytes    int64
	users    int // live sequences, and removed ones in a step in flight
	unloaded bool
}

// Bytes returns the memory of the adapter's matrices.
func (x *Adapter) Bytes() int64 { return x.bytes }

// adapters are the adapters of an engine.
type adapters struct {
	list  [device.MaxAdapters]*Adapter // by number; nil: the number is free
	usual *Adapter                     // of queries that name none
	last  uint64                       // number of loads
	n     int
	bytes int64
}

// PackAdapter reads and packs an adapter with matrices of the given size, so that
// LoadAdapter takes less time. It may run beside all other calls.
func (e *Engine) PackAdapter(a lora.Packer, bytes int64) (lora.Packer, error) {
	if err := e.fitsAdapter(bytes, e.opt.AdapterBytes); err != nil {
		return nil, err
	}
	return e.ctx.PackAdapter(a)
}

// fitsAdapter returns an error if an adapter needs more than the memory that is left.
func (e *Engine) fitsAdapter(bytes, left int64) error {
	if bytes <= left {
		return nil
	}
	return fmt.Errorf("%w: the adapter needs %.1f MB, and %.1f of %.1f MB are free", ErrAdapterMemory, float64(bytes)/1e6, float64(left)/1e6, float64(e.opt.AdapterBytes)/1e6)
}

// LoadAdapter loads an adapter with matrices of the given size. It returns
// ErrAdapterMemory if Options.AdapterBytes does not suffice, and ErrAdapters if no number
// is free.
func (e *Engine) LoadAdapter(a lora.Packer, bytes int64) (*Adapter, error) {
	l := &e.adapters
	if l.n == len(l.list) {
		return nil, ErrAdapters
	}
	if err := e.fitsAdapter(bytes, e.opt.AdapterBytes-l.bytes); err != nil {
		return nil, err
	}
	number := int32(0)
	for l.list[number] != nil {
		number++
	}
	if err := e.ctx.SetAdapter(number, a); err != nil {
		return nil, fmt.Errorf("%w: %w", ErrLoad, err)
	}
	l.last++
	x := &Adapter{number: number, load: l.last, bytes: bytes}
	l.list[number] = x
	l.n++
	l.bytes += bytes
	return x, nil
}

// UnloadAdapter refuses further queries of an adapter. Its number and memory are freed
// when the last of its sequences ends.
func (e *Engine) UnloadAdapter(x *Adapter) error {
	x.unloaded = true
	return e.freeAdapter(x)
}

// UseAdapter sets the adapter of queries that name none; nil: none.
func (e *Engine) UseAdapter(x *Adapter) { e.adapters.usual = x }

// freeAdapter frees an adapter that is unloaded and that no sequence uses. If the device
// reports an error, the number is never used again.
func (e *Engine) freeAdapter(x *Adapter) error {
	l := &e.adapters
	if !x.unloaded || x.users > 0 || l.list[x.number] != x {
		return nil
	}
	if err := e.ctx.SetAdapter(x.number, nil); err != nil {
		return err
	}
	l.list[x.number] = nil
	l.n--
	l.bytes -= x.bytes
	return nil
}

// adapterOf returns the adapter of a query.
func (e *Engine) adapterOf(q *Query) (*Adapter, error) {
	x := q.Adapter
	if x == nil {
		x = e.adapters.usual
	}
	if x != nil && x.unloaded {
		return nil, errors.New("the query's adapter was unloaded")
	}
	return x, nil
}

// dismiss frees what a removed sequence used that is in no step in flight.
func (e *Engine) dismiss(s *sequence) {
	e.pages.free(s.pages)
	e.dropCells(s)
	s.pages = nil
	if x := s.adapter; x != nil {
		s.adapter = nil
		x.users--
		e.freeAdapter(x) // after an error the number is never used again
	}
}
