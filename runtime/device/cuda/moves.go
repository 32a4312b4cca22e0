//go:build unix

package cuda

import (
	"errors"
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// A move copies a row of the KV cache, or of a cell in place of a page; move.cu.tmpl reads
// such numbers.
type move struct{ to, from device.Row }

// moves are the copies of KV cache rows, or of rows of cells, since the last step. They wait until something
// reads the rows, because most come several at a time, for the accepted nodes of a
// draft. The host does not wait for them.
type moves struct {
	region   *device.Region // pinned
	list     []move         // the region's
	at       pointer        // the list on the GPU
	enqueued int            // entries of the list that are enqueued
	launches []manifest.CUDALaunch
}

func (w *moves) open(m *model, most int) (err error) {
	if w.region, err = m.GPU.pinned(int64(most)*int64(unsafe.Sizeof(move{})), "rows to move"); err != nil {
		return err
	}
	w.list = unsafe.Slice((*move)(unsafe.Pointer(&w.region.Bytes[0])), most)[:0]
	return nil
}

// add appends a move. It first enqueues those that must precede it, because the moves of
// a launch run in any order.
func (m *model) addMove(w *moves, one move) error {
	for _, b := range w.list[w.enqueued:] {
		if one.to == b.to || one.to == b.from || one.from == b.to {
			if err := m.flushMoves(w); err != nil {
				return err
			}
			break
		}
	}
	if len(w.list) == cap(w.list) {
		if err := errors.Join(m.flushMoves(w), m.GPU.wait(m.stream)); err != nil {
			return err
		}
		w.reset()
	}
	w.list = append(w.list, one)
	return nil
}

// flushMoves enqueues the moves that are not enqueued yet.
func (m *model) flushMoves(w *moves) error {
	n := len(w.list) - w.enqueued
	if n == 0 {
		return nil
	}
	size := int(unsafe.Sizeof(move{}))
	at := w.at + pointer(w.enqueued*size)
	if err := m.GPU.toDevice(at, w.region.Bytes[w.enqueued*size:len(w.list)*size], m.stream); err != nil {
		return err
	}
	w.enqueued = len(w.list)
	for i := range w.launches {
		l, layer := &w.launches[i], int32(0)
		grid := m.grid(l, shape{})
		grid[1] = n
		if err := m.GPU.launch(m.kernels[l.Kernel], grid, m.stream, unsafe.Pointer(&m.memory.ctx), unsafe.Pointer(&at), unsafe.Pointer(&layer)); err != nil {
			return err
		}
	}
	return nil
}

// reset empties the list when all its moves are done.
func (w *moves) reset() { w.list, w.enqueued = w.list[:0], 0 }

// MoveRow copies a row before the next step.
func (m *model) MoveRow(to, from device.Row) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = errors.Join(m.failed, m.inContext(func() error { return m.addMove(&m.moves, move{to, from}) }))
}

// CopyPage copies a page after the rows that were moved before.
func (m *model) CopyPage(to, from int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = errors.Join(m.failed, m.inContext(func() error { return errors.Join(m.flushMoves(&m.moves), m.copyPage(to, from)) }))
}

// MoveInCells copies a row before the next step.
func (m *model) MoveInCells(to, from device.CellRow) {
	m.mu.Lock()
	defer m.mu.Unlock()
	one := move{device.Row{Page: to.Cell, Row: to.Row}, device.Row{Page: from.Cell, Row: from.Row}}
	m.failed = errors.Join(m.failed, m.inContext(func() error { return m.addMove(&m.cellMoves, one) }))
}

// CopyCell copies a cell after the rows that were moved before.
func (m *model) CopyCell(to, from int32) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.failed = errors.Join(m.failed, m.inContext(func() error { return errors.Join(m.flushMoves(&m.cellMoves), m.copyCell(to, from)) }))
}

// inContext calls f with the GPU's context on this thread.
func (m *model) inContext(f func() error) error {
	if err := m.GPU.enter(); err != nil {
		return err
	}
	defer m.GPU.leave()
	return f()
}
