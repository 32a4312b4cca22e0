//go:build unix

package cuda

import (
	"fmt"
	"slices"

	"github.com/iflowc/iflowc/runtime/artifact/dispatch"
	"github.com/iflowc/iflowc/runtime/artifact/manifest"
	"github.com/iflowc/iflowc/runtime/device"
	"github.com/iflowc/iflowc/runtime/device/tune"
)

// fillingBlocks returns the number of thread blocks that keep the GPU busy: two per SM.
func (d *Device) fillingBlocks() int { return 2 * d.GPU.Processors }

// splits returns the number of parts into which attention splits the context when each
// part has the given number of blocks: enough to fill the GPU, but at most the number
// that the profile found useful at this context length. It depends on nothing else, so
// one graph serves all lengths that share an entry of the profile.
func (d *Device) splits(blocks, context int) int {
	most := dispatch.MaxSplits
	if d.Profile != nil && context < len(d.Profile.Splits) {
		most = d.Profile.Splits[context].Parts
	}
	return manifest.Filling(blocks, d.fillingBlocks(), most)
}

// contextOf returns the profile's index for the longest context of a step.
func (d *Device) contextOf(s *device.Step) int {
	rows := 0
	for q := range s.Seqs {
		rows = max(rows, int(s.Past[q]+s.First[q+1]-s.First[q]))
	}
	return d.Profile.SplitsAt(rows)
}

// contexts returns the KV cache lengths, in rows, at which a Timer measures attention.
func (d *Device) contexts() (list []int) {
	for n := device.PageRows; n <= 4096; n *= 4 {
		if n <= d.Manifest.Context {
			list = append(list, n)
		}
	}
	return list
}

// pages returns the number of pages of a Timer's longest context, at least 1.
func (d *Device) pages() int {
	most := 1
	for _, n := range d.contexts() {
		most = n / device.PageRows
	}
	return most
}

// Splits times the model's single-token attention over contexts of several lengths,
// each with several numbers of splits. It returns nil for a model without a KV cache.
func (t *Timer) Splits() (list []dispatch.Splits, err error) {
	m := t.m
	matmul, l := m.findAttention()
	if l == nil {
		return nil, nil
	}
	if err := m.GPU.enter(); err != nil {
		return nil, err
	}
	defer m.GPU.leave()
	// On uninitialized memory the unified softmax may have to recompute parts.
	if err := m.GPU.clear(m.memory.header.state, m.memory.header.stateSplit, m.stream); err != nil {
		return nil, err
	}
	for _, rows := range m.contexts() {
		s, err := t.splitsAt(matmul, l, rows)
		if err != nil {
			return nil, fmt.Errorf("measuring attention over %d rows: %w", rows, err)
		}
		list = append(list, s)
	}
	return list, nil
}

// findAttention returns the first single-token launch that splits the context, in the
// decoder if the model has one.
func (m *model) findAttention() (matmulLaunches, *manifest.CUDALaunch) {
	p := matmulLaunches{entry: max(m.Plan.Cross, 0)}
	var walk func(list []manifest.CUDALaunch, lo, hi int) *manifest.CUDALaunch
	walk = func(list []manifest.CUDALaunch, lo, hi int) *manifest.CUDALaunch {
		for i := range list {
			l := &list[i]
			if l.Body != nil {
				if l = walk(l.Body, l.Lo, l.Hi); l != nil {
					return l
				}
				continue
			}
			one := shape{p.entry, 1, 1, 1, 0, false}
			if one.runs(l) && slices.ContainsFunc(l.Grid[:], func(d manifest.CUDADim) bool { return d.Splits }) {
				p.lo, p.hi = lo, hi
				return l
			}
		}
		return nil
	}
	return p, walk(m.Plan.Graphs[p.entry], 0, 1)
}

// splitsAt measures one context length.
func (t *Timer) splitsAt(matmul matmulLaunches, l *manifest.CUDALaunch, rows int) (dispatch.Splits, error) {
	const rounds = 6
	m, s := t.m, dispatch.Splits{Context: rows}
	if err := t.send(oneOf(rows), 1, matmul.entry); err != nil {
		return s, err
	}
	grid, at := m.grid(l, shape{matmul.entry, 1, 1, 1, 0, false}), slices.IndexFunc(l.Grid[:], func(d manifest.CUDADim) bool { return d.Splits })
	blocks := (shape{matmul.entry, 1, 1, 1, 0, false}).blocks(l.Grid[at])
	most := manifest.Filling(blocks, m.fillingBlocks(), dispatch.MaxSplits)
	for n := 1; n < most; n *= 2 {
		s.Tried = append(s.Tried, n)
	}
	s.Tried = append(s.Tried, most)
	order := tune.Interleave(indices(len(s.Tried)), rounds)
	for i, c := range order {
		grid[at] = s.Tried[c]
		layer := matmul.lo + t.next%(matmul.hi-matmul.lo)
		t.next++
		if err := t.timed(i, func() error { return m.start(l, grid, layer) }); err != nil {
			return s, err
		}
	}
	if err := m.GPU.wait(m.stream); err != nil {
		return s, err
	}
	times := make([][]float64, len(s.Tried))
	for i, c := range order[1:] { // the first run is a warm-up
		x, err := m.GPU.between(t.events[2*(i+1)], t.events[2*(i+1)+1])
		if err != nil {
			return s, err
		}
		times[c] = append(times[c], x)
	}
	for _, list := range times {
		slices.Sort(list)
		s.Seconds = append(s.Seconds, list[len(list)/2])
	}
	least := slices.Min(s.Seconds)
	s.Parts = s.Tried[slices.IndexFunc(s.Seconds, func(x float64) bool { return x <= 1.02*least })]
	return s, nil
}

func indices(n int) []int {
	list := make([]int, n)
	for i := range list {
		list[i] = i
	}
	return list
}

// oneOf returns a step of one token, the last of a sequence with rows rows.
func oneOf(rows int) *device.Step {
	pages, last := rows/device.PageRows, int32(rows-1)
	zero, to := []int32{0}, []int32{0, int32(pages)}
	s := &device.Step{
		ID: zero, Pos: []int32{last}, Seq: zero, Slot: []int32{last}, Types: zero, OutRow: zero, TopK: zero, First: []int32{0, 1}, PageAt: to, Past: []int32{last},
		XPageAt: []int32{0, 1}, XPage: zero, XRows: []int32{1},
		CellAt: []int32{0, 1}, CellFrom: []int32{last / device.CellRows}, Cell: zero,
	}
	for i := range pages {
		s.Page = append(s.Page, int32(i))
	}
	return s
}
