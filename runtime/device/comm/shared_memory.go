//go:build unix

package comm

import (
	"errors"
	"runtime"
	"time"
	"unsafe"

	"github.com/ebitengine/purego"

	"github.com/iflowc/iflowc/runtime/device/cpu"
)

// spin is how long a rank spins that waits for another one: longer than ranks
// of equal shares are apart, much shorter than a scheduler's slice.
const spin = 100 * time.Microsecond

// A Hub is the transport between the ranks of one process.
type Hub struct {
	f         *functions
	hub       uintptr
	endpoints []*Endpoint
}

// OpenHub opens the ends of all ranks with the C of a library. With more threads
// than processors nobody spins: it would keep off the processor the one that is
// waited for.
func OpenHub(lib *cpu.Library, places []Place, oversubscribed bool, timeout time.Duration) (*Hub, error) {
	f, err := bind(lib)
	if err != nil {
		return nil, err
	}
	h := &Hub{f: f}
	wait := spin
	if oversubscribed {
		wait = 0
	}
	h.hub, _, _ = purego.SyscallN(f.hubOpen, uintptr(len(places)), uintptr(unsafe.Pointer(unsafe.SliceData(places))),
		uintptr(wait.Nanoseconds()), uintptr(timeout.Nanoseconds()))
	runtime.KeepAlive(places)
	if h.hub == 0 {
		return nil, errors.New("no memory for the exchange between ranks")
	}
	for r := range places {
		at, _, _ := purego.SyscallN(f.hubAt, h.hub, uintptr(r))
		h.endpoints = append(h.endpoints, &Endpoint{f: f, table: at})
	}
	return h, nil
}

// Endpoint is a rank's end.
func (h *Hub) Endpoint(rank int) *Endpoint { return h.endpoints[rank] }

// Fail makes every rank leave the step that it is in: one of them cannot go on.
func (h *Hub) Fail(rank int) { purego.SyscallN(h.f.hubFail, h.hub, uintptr(rank)) }

// Close frees the transport; no step may be running.
func (h *Hub) Close() {
	for _, e := range h.endpoints {
		e.closed.Store(true)
	}
	if h.hub != 0 {
		purego.SyscallN(h.f.hubClose, h.hub)
		h.hub = 0
	}
}
