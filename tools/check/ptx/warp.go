package ptx

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// A meeting is an op that lanes execute together: it waits for all lanes in its
// mask.
type meeting struct {
	mask source // nil: every lane
	do   func(lanes []*thread) error
}

// meet executes the collective ops of a warp when all their lanes are there.
func (w *warp) meet() (bool, error) {
	moved := false
	for _, t := range w.lanes {
		m := t.waits
		if m == nil {
			continue
		}
		want := uint64(math.MaxUint32)
		if m.mask != nil {
			want = m.mask(t)
		}
		if want>>t.lane&1 == 0 {
			return false, fmt.Errorf("%s: lane %d is not in its own mask %#x", t.frame.f.code[t.frame.pc].text, t.lane, want)
		}
		lanes := make([]*thread, 0, len(w.lanes))
		ready := true
		for _, o := range w.lanes {
			if want>>o.lane&1 == 0 || o.done && m.mask == nil {
				continue
			}
			ready = ready && !o.done && o.waits == m
			lanes = append(lanes, o)
		}
		if !ready {
			continue
		}
		for _, o := range lanes {
			o.waits = nil
		}
		if err := m.do(lanes); err != nil {
			return false, fmt.Errorf("%s: %w", t.frame.f.code[t.frame.pc].text, err)
		}
		for _, o := range lanes {
			o.frame.pc++
		}
		moved = true
	}
	return moved, nil
}

// together decodes the ops of warps and blocks.
func (b *body) together(in *instruction, mods, args []string) (err error) {
	switch name := mods[0] + "." + strings.Join(mods[1:], "."); {
	case strings.HasPrefix(name, "bar.warp.sync"):
		in.meet = &meeting{do: func([]*thread) error { return nil }}
		in.meet.mask, err = b.source(args[0])
	case mods[0] == "bar" || mods[0] == "barrier":
		var id source
		if id, err = b.source(args[0]); err == nil {
			in.do = func(t *thread) error { t.bar = int(id(t)); return nil }
		}
		if len(args) > 1 {
			return fmt.Errorf("a barrier for some threads only")
		}
	case mods[0] == "shfl":
		err = b.shuffle(in, mods, args)
	case mods[0] == "vote":
		err = b.vote(in, mods, args)
	case mods[0] == "redux":
		err = b.redux(in, mods, args)
	case mods[0] == "mma":
		err = b.mma(in, mods, args)
	case mods[0] == "ldmatrix":
		err = b.ldmatrix(in, mods, args)
	default:
		err = fmt.Errorf("instruction is not known")
	}
	return err
}

// shuffle is shfl.sync: d|p, a, lane, clamp, mask.
func (b *body) shuffle(in *instruction, mods, args []string) error {
	first, second, _ := strings.Cut(args[0], "|")
	to, err := b.dest(first)
	if err != nil {
		return err
	}
	found := -1
	if second != "" {
		if found, err = b.dest(second); err != nil {
			return err
		}
	}
	src, err := b.sources(args[1:])
	if err != nil {
		return err
	}
	mode := mods[2]
	in.meet = &meeting{mask: src[3], do: func(lanes []*thread) error {
		got := make([]uint64, len(lanes))
		ok := make([]bool, len(lanes))
		for i, t := range lanes {
			n, c := int(src[1](t)&31), src[2](t)
			segment := int(c >> 8 & 31)
			last := t.lane&segment | int(c&31)&^segment
			low := t.lane & segment
			var from int
			switch mode {
			case "bfly":
				from = t.lane ^ n
			case "down":
				from = t.lane + n
			case "up":
				from = t.lane - n
			case "idx":
				from = low | n&^segment
			}
			ok[i] = from <= last
			if mode == "up" {
				ok[i] = from >= low|int(c&31)&^segment
			}
			if !ok[i] {
				from = t.lane
			}
			at := slices.IndexFunc(lanes, func(o *thread) bool { return o.lane == from })
			if at < 0 {
				return fmt.Errorf("lane %d reads lane %d, which does not take part", t.lane, from)
			}
			got[i] = src[0](lanes[at])
		}
		for i, t := range lanes {
			t.set(to, got[i]&math.MaxUint32)
			t.set(found, bit(ok[i]))
		}
		return nil
	}}
	return nil
}

// vote is vote.sync: all, any, uni or ballot of a predicate.
func (b *body) vote(in *instruction, mods, args []string) error {
	to, err := b.dest(args[0])
	if err != nil {
		return err
	}
	negate := strings.HasPrefix(args[1], "!")
	p, err := b.source(strings.TrimPrefix(args[1], "!"))
	if err != nil {
		return err
	}
	among, err := b.source(args[2])
	if err != nil {
		return err
	}
	mode := mods[2]
	in.meet = &meeting{mask: among, do: func(lanes []*thread) error {
		ballot, count := uint64(0), 0
		for _, t := range lanes {
			if (p(t)&1 != 0) != negate {
				ballot |= 1 << t.lane
				count++
			}
		}
		v := map[string]uint64{"ballot": ballot, "any": bit(count > 0), "all": bit(count == len(lanes)), "uni": bit(count == 0 || count == len(lanes))}[mode]
		for _, t := range lanes {
			t.set(to, v)
		}
		return nil
	}}
	return nil
}

// redux is redux.sync: one op over the lanes of a mask.
func (b *body) redux(in *instruction, mods, args []string) error {
	to, err := b.dest(args[0])
	if err != nil {
		return err
	}
	src, err := b.sources(args[1:])
	if err != nil {
		return err
	}
	f, typ := integers[mods[2]], mods[3]
	if f == nil {
		return fmt.Errorf("reduction %q is not known", mods[2])
	}
	in.meet = &meeting{mask: src[1], do: func(lanes []*thread) error {
		v := src[0](lanes[0])
		for _, t := range lanes[1:] {
			v = f(typ, []uint64{v, src[0](t)})
		}
		for _, t := range lanes {
			t.set(to, value(typ, v))
		}
		return nil
	}}
	return nil
}
