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

// spin is how long a waiting rank spins: longer than the skew between ranks with equal
// work, much shorter than a scheduler's time slice.
const spin = 100 * time.Microsecond

// A Hub is the transport between ranks in one process.
type Hub struct {
	f         *functions
	hub       uintptr
	endpoints []*Endpoint
}

// OpenHub opens the endpoints of all ranks with the C functions of a model's library.
// If the process is oversubscribed, with more threads than cores, ranks do not spin,
// because spinning could keep the awaited rank off its core.
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
		return nil, errors.New("cannot open the transport between ranks: out of memory")
	}
	for r := range places {
		at, _, _ := purego.SyscallN(f.hubAt, h.hub, uintptr(r))
		h.endpoints = append(h.endpoints, &Endpoint{f: f, table: at})
	}
	return h, nil
}

// Endpoint returns a rank's endpoint.
func (h *Hub) Endpoint(rank int) *Endpoint { return h.endpoints[rank] }

// Fail makes all ranks abort their current step, because the given rank failed.
func (h *Hub) Fail(rank int) { purego.SyscallN(h.f.hubFail, h.hub, uintptr(rank)) }

// Close frees the transport. No step may be running.
func (h *Hub) Close() {
	for _, e := range h.endpoints {
		e.closed.Store(true)
	}
	if h.hub != 0 {
		purego.SyscallN(h.f.hubClose, h.hub)
		h.hub = 0
	}
}
