package ptx

import (
	"fmt"
	"slices"
)

// A Launch is the configuration of a kernel launch.
type Launch struct {
	Grid, Block [3]uint32
	Shared      int      // bytes of dynamic shared memory
	Args        [][]byte // as for cuLaunchKernel
	Early       bool     // the kernel may start before those in front of it end (programmatic dependent launch)
}

// maxSteps is the maximum number of steps of a thread, so that an endless loop
// is an error.
const maxSteps = 1 << 26

// Run runs a kernel, block after block.
func (m *Module) Run(kernel string, l Launch, memory Memory) error {
	f := m.functions[kernel]
	if f == nil {
		return fmt.Errorf("no kernel %s", kernel)
	}
	if len(l.Args) != len(f.params) {
		return fmt.Errorf("%s takes %d arguments, %d were given", kernel, len(f.params), len(l.Args))
	}
	for z := range l.Grid[2] {
		for y := range l.Grid[1] {
			for x := range l.Grid[0] {
				if err := m.block(f, l, [3]uint32{x, y, z}, memory); err != nil {
					return fmt.Errorf("%s, block %d,%d,%d: %w", kernel, x, y, z, err)
				}
			}
		}
	}
	return nil
}

// Params returns the size of each argument of a kernel.
func (m *Module) Params(kernel string) ([]int, bool) {
	f := m.functions[kernel]
	if f == nil {
		return nil, false
	}
	var sizes []int
	for _, p := range f.params {
		sizes = append(sizes, p.size)
	}
	return sizes, true
}

// block runs one block.
func (m *Module) block(f *function, l Launch, id [3]uint32, memory Memory) error {
	b := &block{memory: memory, early: l.Early, id: id, size: l.Block, grid: l.Grid, dynamic: (f.bytes + 15) &^ 15, phases: map[uint64]*phase{}}
	b.shared = make([]byte, b.dynamic+l.Shared)
	for i := range b.shared {
		b.shared[i] = 0xff // NaN
	}
	b.proxy = slices.Clone(b.shared)
	n := int(l.Block[0] * l.Block[1] * l.Block[2])
	for i := range n {
		t := &thread{block: b, lane: i % 32, bar: -1, frame: newFrame(f)}
		t.index = [3]uint32{uint32(i) % l.Block[0], uint32(i) / l.Block[0] % l.Block[1], uint32(i) / l.Block[0] / l.Block[1]}
		for k, p := range f.params {
			if copy(t.frame.param[p.offset:][:p.size], l.Args[k]) != p.size {
				return fmt.Errorf("argument %d has too few bytes", k)
			}
		}
		if t.lane == 0 {
			b.warps = append(b.warps, &warp{})
		}
		t.warp = b.warps[len(b.warps)-1]
		t.warp.lanes = append(t.warp.lanes, t)
		b.threads = append(b.threads, t)
	}
	return b.run()
}

func newFrame(f *function) *frame {
	fr := &frame{f: f, reg: make([]uint64, f.regs), param: make([]byte, f.space), local: make([]byte, f.local)}
	for i := range fr.local {
		fr.local[i] = 0xff
	}
	return fr
}

// run runs the threads round-robin until all have finished.
func (b *block) run() error {
	for {
		moved, alive := false, 0
		for _, t := range b.threads {
			if t.done || t.waits != nil || t.bar >= 0 || t.phase != nil && !t.phase() {
				continue
			}
			t.phase = nil
			moved = true
			if err := t.run(); err != nil {
				return fmt.Errorf("thread %d,%d,%d: %w", t.index[0], t.index[1], t.index[2], err)
			}
		}
		for _, w := range b.warps {
			met, err := w.meet()
			if err != nil {
				return err
			}
			moved = moved || met
		}
		moved = b.barrier() || moved
		for _, t := range b.threads {
			if !t.done {
				alive++
			}
		}
		if alive == 0 {
			return b.left()
		}
		if !moved && !b.copyOne() {
			return b.stuck()
		}
	}
}

// stuck describes where threads wait.
func (b *block) stuck() error {
	for _, t := range b.threads {
		if !t.done {
			return fmt.Errorf("threads wait for ever; thread %d at %s", t.index[0], t.frame.f.code[t.frame.pc].text)
		}
	}
	return nil
}

// barrier releases the threads at bar.sync when all live threads are there.
func (b *block) barrier() bool {
	id := -1
	for _, t := range b.threads {
		if t.done {
			continue
		}
		if t.bar < 0 || id >= 0 && t.bar != id {
			return false
		}
		id = t.bar
	}
	if id < 0 {
		return false
	}
	for _, t := range b.threads {
		t.bar = -1
	}
	return true
}

// run executes a thread until it ends or waits.
func (t *thread) run() error {
	for range maxSteps {
		fr := t.frame
		if fr.pc >= len(fr.f.code) {
			return fmt.Errorf("%s runs past its end", fr.f.name)
		}
		in := &fr.f.code[fr.pc]
		fr.pc++
		if in.guard >= 0 && (fr.reg[in.guard]&1 != 0) == in.not {
			continue
		}
		if in.meet != nil {
			fr.pc--
			t.waits = in.meet
			return nil
		}
		if err := in.do(t); err != nil {
			return fmt.Errorf("%s: %w", in.text, err)
		}
		if t.done || t.bar >= 0 || t.phase != nil {
			return nil
		}
	}
	return fmt.Errorf("more than %d instructions without waiting", maxSteps)
}
