package ptx

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// Instructions of sm_90a: mbarriers, bulk copies and wgmma. Bulk copies and wgmma
// belong to the async proxy, which has its own copy of shared memory; writes of
// threads reach it with fence.proxy.async. A bulk copy completes when no thread can
// run any more, and wgmma reads its operands when it is waited for: the latest
// moments that the ISA allows.

// A phase is the state of an mbarrier.
type phase struct {
	parity         uint64
	count, pending int // arrivals per phase, and those that it waits for
	bytes          int // of copies that it waits for
}

func (p *phase) advance() {
	if p.pending == 0 && p.bytes == 0 {
		p.parity ^= 1
		p.pending = p.count
	}
}

// A bulk is a bulk copy that has not completed.
type bulk struct {
	to   uint64 // address in shared memory
	from []byte
	on   *phase
}

// copyOne completes the oldest bulk copy.
func (b *block) copyOne() bool {
	if len(b.bulks) == 0 {
		return false
	}
	c := b.bulks[0]
	b.bulks = b.bulks[1:]
	copy(b.shared[c.to:], c.from)
	copy(b.proxy[c.to:], c.from)
	c.on.bytes -= len(c.from)
	c.on.advance()
	return true
}

// mbarrier decodes the ops on barriers in shared memory.
func (b *body) mbarrier(in *instruction, mods, args []string) error {
	if mods[len(mods)-1] != "b64" || !slices.Contains(mods, "shared::cta") {
		return fmt.Errorf("type or space is not known")
	}
	result := args[0]
	if mods[1] != "init" {
		args = args[1:]
	}
	at, err := b.address(args[0])
	if err != nil {
		return err
	}
	src, err := b.sources(args[1:])
	if err != nil {
		return err
	}
	switch name := strings.Join(mods[1:len(mods)-2], "."); {
	case name == "init":
		in.do = func(t *thread) error { return t.block.initPhase(t, at(t), int(src[0](t))) }
	case (name == "arrive" || name == "arrive.expect_tx") && result == "_":
		in.do = func(t *thread) error {
			p, err := t.block.phaseAt(at(t))
			if err != nil {
				return err
			}
			if p.pending == 0 {
				return fmt.Errorf("more arrivals than the barrier expects")
			}
			if len(src) > 0 {
				p.bytes += int(src[0](t))
			}
			p.pending--
			p.advance()
			return nil
		}
	case name == "try_wait.parity":
		to, err := b.dest(result)
		if err != nil {
			return err
		}
		in.do = func(t *thread) error { return t.tryWait(to, at(t), src[0](t)) }
	default:
		return fmt.Errorf("instruction is not known")
	}
	return nil
}

func (b *block) initPhase(t *thread, at uint64, count int) error {
	if _, err := t.bytes("shared", at, 8); err != nil || count < 1 {
		return fmt.Errorf("count of %d: %w", count, err)
	}
	b.phases[at] = &phase{count: count, pending: count}
	b.unfenced = true
	return nil
}

func (b *block) phaseAt(at uint64) (*phase, error) {
	p := b.phases[at]
	if p == nil {
		return nil, fmt.Errorf("no mbarrier was initialized at %#x", at)
	}
	return p, nil
}

// tryWait suspends the thread until the phase with a parity has completed.
func (t *thread) tryWait(to int, at, parity uint64) error {
	p, err := t.block.phaseAt(at)
	if err != nil {
		return err
	}
	if parity > 1 {
		return fmt.Errorf("parity %d", parity)
	}
	t.set(to, 1)
	if p.parity == parity {
		t.phase = func() bool { return p.parity != parity }
	}
	return nil
}

// bulkCopy is cp.async.bulk from global to shared memory.
func (b *body) bulkCopy(in *instruction, mods, args []string) error {
	if want := "cp async bulk shared::cluster global mbarrier::complete_tx::bytes"; strings.Join(mods, " ") != want {
		return fmt.Errorf("only %q is known", want)
	}
	to, err := b.address(args[0])
	if err != nil {
		return err
	}
	from, err := b.address(args[1])
	if err != nil {
		return err
	}
	size, err := b.source(args[2])
	if err != nil {
		return err
	}
	on, err := b.address(args[3])
	if err != nil {
		return err
	}
	in.do = func(t *thread) error {
		p, err := t.block.phaseAt(on(t))
		if err != nil {
			return err
		}
		if t.block.unfenced {
			return fmt.Errorf("an mbarrier was initialized without a proxy fence")
		}
		n, at := size(t), to(t)
		if (n|at|from(t))%16 != 0 || at+n > uint64(len(t.block.shared)) {
			return fmt.Errorf("%d bytes to %#x from %#x", n, at, from(t))
		}
		data, err := t.block.memory.At(from(t), int(n))
		if err != nil {
			return err
		}
		for i := range data {
			t.block.shared[at+uint64(i)], t.block.proxy[at+uint64(i)] = 0xff, 0xff
		}
		t.block.bulks = append(t.block.bulks, bulk{at, data, p})
		return nil
	}
	return nil
}

// proxyFence makes what threads wrote visible to the async proxy.
func proxyFence(t *thread) error {
	copy(t.block.proxy, t.block.shared)
	t.block.unfenced = false
	return nil
}

// A wgmma is an op of a warp that has not been waited for: its quarter of the rows.
// Each register of the result holds a token until then, which mov may copy.
type wgmma struct {
	n    int
	desc uint64
	a    []source
	in   [32][]uint64 // accumulators when the op was issued: numbers or tokens
	out  [32][]uint64 // tokens
}

// token is the first NaN that stands for a result; there are four million.
const token = 0x7fc01000

func isToken(v uint64) bool { return v >= token && v < 0x7fffffff }

// wgmma decodes the ops of warpgroups.
func (b *body) wgmma(in *instruction, mods, args []string) error {
	if !slices.Contains(mods, "sync") || !slices.Contains(mods, "aligned") {
		return fmt.Errorf("sync.aligned is missing")
	}
	var act func(w *warp, lanes []*thread) error
	switch mods[1] {
	case "fence":
		act = func(w *warp, _ []*thread) error { w.fenced = true; return nil }
	case "commit_group":
		act = func(w *warp, _ []*thread) error { w.groups, w.open = append(w.groups, w.open), nil; return nil }
	case "wait_group":
		left, ok := immediate(args[0])
		if !ok {
			return fmt.Errorf("number of groups")
		}
		act = func(w *warp, lanes []*thread) error { return w.settle(lanes, int(left)) }
	case "mma_async":
		var err error
		if act, err = b.multiply(mods, args); err != nil {
			return err
		}
	default:
		return fmt.Errorf("instruction is not known")
	}
	in.meet = &meeting{do: func(lanes []*thread) error {
		if len(lanes) != 32 {
			return fmt.Errorf("%d lanes take part, 32 must", len(lanes))
		}
		return act(lanes[0].warp, lanes)
	}}
	return nil
}

// multiply decodes d, {a}, descriptor of b, 1, 1, 1, 0: D += A·B with A in registers
// and B along K.
func (b *body) multiply(mods, args []string) (func(w *warp, lanes []*thread) error, error) {
	n := 0
	_, err := fmt.Sscanf(mods[4], "m64n%dk16", &n)
	if err != nil || strings.Join(mods[5:], ".") != "f32.f16.f16" || len(args) != 7 || strings.Join(args[3:], " ") != "1 1 1 0" {
		return nil, fmt.Errorf("shape, types or operands are not known")
	}
	d, err := b.dests(args[0])
	if err != nil {
		return nil, err
	}
	a, err := b.sources(vector(args[1]))
	if err != nil {
		return nil, err
	}
	desc, err := b.source(args[2])
	if err != nil {
		return nil, err
	}
	if len(d) != n/2 || len(a) != 4 || n%8 != 0 {
		return nil, fmt.Errorf("%d and %d registers", len(d), len(a))
	}
	return func(w *warp, lanes []*thread) error {
		if !w.fenced {
			return fmt.Errorf("no wgmma.fence before it")
		}
		o := &wgmma{n: n, desc: desc(lanes[0]), a: a}
		for l, t := range lanes {
			if desc(t) != o.desc {
				return fmt.Errorf("lanes have different descriptors")
			}
			for _, r := range d {
				w.tokens++
				o.in[l], o.out[l] = append(o.in[l], t.frame.reg[r]), append(o.out[l], token+w.tokens%(1<<21))
				t.set(r, o.out[l][len(o.out[l])-1])
			}
		}
		w.open = append(w.open, o)
		w.count++
		return nil
	}, nil
}

// settle waits until at most left groups are pending, and puts results into every
// register that holds their token.
func (w *warp) settle(lanes []*thread, left int) error {
	for ; len(w.groups) > left; w.groups = w.groups[1:] {
		for _, o := range w.groups[0] {
			if err := w.execute(lanes, o); err != nil {
				return err
			}
		}
	}
	for l, t := range lanes {
		for r, v := range t.frame.reg {
			if isToken(v) {
				if x, ok := w.results[l][v]; ok {
					t.frame.reg[r] = x
				}
			}
		}
		if len(w.groups) == 0 {
			clear(w.results[l])
		}
	}
	return nil
}

// execute computes an op. Lane 4·g + t holds rows g and g + 8 of its warp's 16 rows of
// A and D: of A columns 2t, 2t+1 and 2t+8, 2t+9, of D the columns 2t, 2t+1 of every
// eight.
func (w *warp) execute(lanes []*thread, o *wgmma) error {
	var a [16][16]float64
	for l, t := range lanes {
		for r, src := range o.a {
			v := src(t)
			for i := range 2 {
				a[l>>2+8*(r&1)][2*(l&3)+i+8*(r>>1)] = float("f16", v>>(16*i)&math.MaxUint16)
			}
		}
	}
	b := make([][16]float64, o.n)
	for row := range b {
		for k := range 16 {
			v, err := lanes[0].block.element(o.desc, row, k)
			if err != nil {
				return err
			}
			b[row][k] = v
		}
	}
	for l := range lanes {
		if w.results[l] == nil {
			w.results[l] = map[uint64]uint64{}
		}
		for i, v := range o.in[l] {
			if isToken(v) {
				x, ok := w.results[l][v]
				if !ok {
					return fmt.Errorf("an accumulator depends on an op that is not complete")
				}
				v = x
			}
			row, col := l>>2+8*(i>>1&1), i/4*8+2*(l&3)+i&1
			sum := float("f32", v)
			for k := range 16 {
				sum += a[row][k] * b[col][k]
			}
			w.results[l][o.out[l][i]] = fbits("f32", sum)
		}
	}
	return nil
}

// element returns an element of the matrix of a descriptor, for the 128-byte swizzle
// along K: the address of 16-byte pieces is combined with the number of the 128-byte
// line in its 1024 bytes.
func (b *block) element(desc uint64, row, k int) (float64, error) {
	start, eight := desc&0x3fff<<4, desc>>32&0x3fff<<4
	if desc>>62 != 1 || desc>>49&7 != 0 {
		return 0, fmt.Errorf("descriptor %#x: only the 128-byte swizzle without a base offset is known", desc)
	}
	at := start + uint64(row/8)*eight + uint64(row%8*128+2*k)
	at ^= at >> 7 & 7 << 4
	if at+2 > uint64(len(b.proxy)) {
		return 0, fmt.Errorf("descriptor %#x: row %d is outside of shared memory", desc, row)
	}
	return float("f16", load(b.proxy[at:][:2])), nil
}

// left reports what a block must not leave behind.
func (b *block) left() error {
	if len(b.bulks) > 0 {
		return fmt.Errorf("the block ended before %d bulk copies", len(b.bulks))
	}
	for i, w := range b.warps {
		if len(w.open)+len(w.groups) > 0 {
			return fmt.Errorf("warp %d ended without waiting for wgmma", i)
		}
		if w.count != b.warps[i/4*4].count {
			return fmt.Errorf("the warps of a warpgroup executed %d and %d wgmma", b.warps[i/4*4].count, w.count)
		}
	}
	return nil
}
