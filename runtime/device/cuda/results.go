//go:build unix

package cuda

import (
	"unsafe"

	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
)

// results are the rows of outputs on their way to the host, and those that stay on the
// GPU until they are read (device.Step.Kept).
type results struct {
	copies []rowCopy
	bytes  int64 // of the staging memory that the copies fill
	kept   [device.MaxOut]keptRows
	best   int64 // offset in the staging memory of the argmaxes, and of the lists behind them
}

// A rowCopy is adjacent rows of an output that are copied through the staging memory.
type rowCopy struct {
	output, row, rows, cols int
	at                      int64 // offset in the staging memory
}

// keptRows are the rows of an output that are only on the GPU.
type keptRows struct {
	cols int
	rows []bool
}

// collect enqueues the copies of a step's results: the outputs without rows that may
// stay on the GPU, and the largest logits of each row.
func (m *model) collect(s *device.Step) error {
	r := &m.results
	r.copies, r.bytes = r.copies[:0], 0
	count := map[string]int{"tokens": s.Tokens, "out_rows": s.OutRows, "sequences": s.Seqs}
	for i, o := range m.outputs(s.Graph) {
		at := m.Manifest.Graphs[s.Graph].At + i
		if err := m.collectOutput(s, at, o, count[o.Rows]); err != nil {
			return err
		}
	}
	return m.collectLargest(s)
}

// collectLargest enqueues the copies of the argmaxes and, for the rows that need them,
// of further logits.
func (m *model) collectLargest(s *device.Step) error {
	r, parts := &m.results, m.bestParts(s.Graph)
	n := int64(parts) * int64(unsafe.Sizeof(device.Best{}))
	r.best = r.bytes
	if err := m.collectBytes(m.memory.best, int64(s.OutRows)*n); err != nil || parts == 0 {
		return err
	}
	return ranges(s.OutRows, func(row int) bool { return listed(s.TopK[row]) }, func(first, rows int) error {
		return m.collectBytes(m.memory.top+pointer(int64(first)*manifest.TopLogits*n), int64(rows)*manifest.TopLogits*n)
	})
}

// listed reports whether the kernel best lists the k largest logits of a row.
func listed(k int32) bool { return k > 1 && k <= manifest.TopLogits }

// ranges calls f for each longest range of rows below n for which is holds.
func ranges(n int, is func(row int) bool, f func(first, rows int) error) error {
	for row := 0; row < n; row++ {
		first := row
		for row < n && is(row) {
			row++
		}
		if row > first {
			if err := f(first, row-first); err != nil {
				return err
			}
		}
	}
	return nil
}

// collectOutput enqueues the copies of an output with the given number of rows.
func (m *model) collectOutput(s *device.Step, at int, o manifest.Output, rows int) error {
	kept := &m.results.kept[at]
	kept.cols, kept.rows = o.Cols, kept.rows[:0]
	if at >= len(s.Kept) || !s.Kept[at] || o.Rows != "out_rows" {
		return m.collectRows(rowCopy{output: at, rows: rows, cols: o.Cols})
	}
	if s.Fetch == nil {
		s.Fetch = func(output, row int) error { return m.fetch(s, output, row) }
	}
	whole := func(row int) bool { return s.TopK[row] == 0 || s.TopK[row] > manifest.TopLogits }
	for row := range rows {
		kept.rows = append(kept.rows, !whole(row))
	}
	return ranges(rows, whole, func(first, n int) error {
		return m.collectRows(rowCopy{output: at, row: first, rows: n, cols: o.Cols})
	})
}

// collectRows enqueues a copy into the staging memory.
func (m *model) collectRows(c rowCopy) error {
	r := &m.results
	c.at = r.bytes
	r.copies = append(r.copies, c)
	return m.collectBytes(m.memory.out[c.output]+pointer(4*c.row*c.cols), int64(c.rows*c.cols)*4)
}

func (m *model) collectBytes(from pointer, n int64) error {
	at := m.results.bytes
	m.results.bytes += n
	return m.GPU.toHost(m.staging.results.Bytes[at:at+n], from, m.stream)
}

// deliver copies a finished step's results from the staging memory to the step.
func (m *model) deliver(s *device.Step) {
	r := &m.results
	for _, c := range r.copies {
		copy(s.Out[c.output][c.row*c.cols:], floatsAt(m.staging.results.Bytes[c.at:], c.rows*c.cols))
	}
	parts := m.bestParts(s.Graph)
	if parts == 0 {
		if !m.Manifest.Graphs[s.Graph].Follows() {
			s.ForgetLargest()
		}
		return
	}
	all := unsafe.Slice((*device.Best)(unsafe.Pointer(unsafe.SliceData(m.staging.results.Bytes[r.best:]))), uintptr(r.bytes-r.best)/unsafe.Sizeof(device.Best{}))
	lists := all[s.OutRows*parts:]
	for row := range s.OutRows {
		s.SetArgmax(row, all[row*parts:][:parts], 1)
		if n := parts * manifest.TopLogits; listed(s.TopK[row]) {
			s.SetLargest(row, lists[:n])
			lists = lists[n:]
		}
	}
}

// fetch copies a row to the step if it is only on the GPU.
func (m *model) fetch(s *device.Step, output, row int) (err error) {
	m.mu.Lock()
	defer m.mu.Unlock()
	kept := &m.results.kept[output]
	if row >= len(kept.rows) || !kept.rows[row] || m.failed != nil {
		return m.failed
	}
	if err := m.GPU.enter(); err != nil {
		return err
	}
	defer m.GPU.leave()
	staged := m.staging.results.Bytes[:4*kept.cols]
	if err = m.GPU.toHost(staged, m.memory.out[output]+pointer(4*row*kept.cols), m.stream); err == nil {
		err = m.GPU.wait(m.stream)
	}
	if err != nil {
		m.failed = err
		return err
	}
	copy(s.Out[output][row*kept.cols:], floatsAt(staged, kept.cols))
	kept.rows[row] = false
	return nil
}

// floatsAt returns the first n floats of b.
func floatsAt(b []byte, n int) []float32 {
	return unsafe.Slice((*float32)(unsafe.Pointer(unsafe.SliceData(b))), n)
}

// bestParts returns in how many parts the argmax of a row of a graph's logits arrives;
// 0: the graph does not compute it.
func (d *Device) bestParts(graph int) int {
	if graph < len(d.Plan.Best) {
		return d.Plan.Best[graph]
	}
	return 0
}

// bestBytes returns the size of the argmaxes of the largest step.
func (d *Device) bestBytes(cfg *device.Config) (n int64) {
	for _, parts := range d.Plan.Best {
		n = max(n, int64(parts*cfg.MaxOutRows)*int64(unsafe.Sizeof(device.Best{})))
	}
	return n
}
