package ptx

import (
	"fmt"
	"strings"
	"unsafe"
)

// addressOf returns the address of bytes of the program.
func addressOf(data []byte) uint64 { return uint64(uintptr(unsafe.Pointer(&data[0]))) }

// access describes a ld or st: space, vector and type.
func access(mods []string) (space string, count int, typ string) {
	count = 1
	for _, m := range mods {
		switch m {
		case "global", "shared", "local", "param", "const":
			space = m
		case "v2":
			count = 2
		case "v4":
			count = 4
		}
		if width(m) > 0 {
			typ = m
		}
	}
	return space, count, typ
}

func (b *body) load(in *instruction, mods, args []string) error {
	space, count, typ := access(mods[1:])
	to, err := b.dests(args[0])
	if err != nil {
		return err
	}
	at, err := b.address(args[1])
	if err != nil {
		return err
	}
	if len(to) != count || typ == "" {
		return fmt.Errorf("%d registers for %d values", len(to), count)
	}
	size, norm := width(typ), normal(typ)
	in.do = func(t *thread) error {
		bytes, err := t.bytes(space, at(t), size*count)
		if err != nil {
			return err
		}
		for i, r := range to {
			t.set(r, norm(load(bytes[i*size:][:size])))
		}
		return nil
	}
	return nil
}

func (b *body) store(in *instruction, mods, args []string) error {
	space, count, typ := access(mods[1:])
	at, err := b.address(args[0])
	if err != nil {
		return err
	}
	from, err := b.sources(vector(args[1]))
	if err != nil {
		return err
	}
	if len(from) != count || typ == "" {
		return fmt.Errorf("%d registers for %d values", len(from), count)
	}
	size := width(typ)
	in.do = func(t *thread) error {
		bytes, err := t.writable(space, at(t), size*count)
		if err != nil {
			return err
		}
		for i, f := range from {
			store(bytes[i*size:][:size], f(t))
		}
		return nil
	}
	return nil
}

// cvta converts between an address in a space and a generic one.
func (b *body) cvta(in *instruction, mods, args []string) error {
	to, err := b.dest(args[0])
	if err != nil {
		return err
	}
	from, err := b.source(args[1])
	if err != nil {
		return err
	}
	window, into := uint64(0), mods[1] == "to"
	for _, m := range mods {
		switch m {
		case "shared":
			window = sharedWindow
		case "local":
			window = localWindow
		}
	}
	in.do = func(t *thread) error {
		v := from(t)
		switch {
		case window == 0:
		case into && v&window == 0:
			return fmt.Errorf("address %#x is not in the space", v)
		case into:
			v &= windowMask
		default:
			v |= window
		}
		t.set(to, v)
		return nil
	}
	return nil
}

// async is cp.async: it copies when something waits for the group, the latest
// moment that the ISA allows.
func (b *body) async(in *instruction, mods, args []string) error {
	if mods[2] == "bulk" {
		return b.bulkCopy(in, mods, args)
	}
	switch mods[2] {
	case "commit_group":
		in.do = func(t *thread) error {
			t.groups = append(t.groups, t.fresh)
			t.fresh = nil
			return nil
		}
		return nil
	case "wait_group", "wait_all":
		keep := func(*thread) uint64 { return 0 }
		if mods[2] == "wait_group" {
			var err error
			if keep, err = b.source(args[0]); err != nil {
				return err
			}
		}
		in.do = func(t *thread) error {
			for n := int(keep(t)); len(t.groups) > n; t.groups = t.groups[1:] {
				for _, c := range t.groups[0] {
					copy(c.to, c.from)
				}
			}
			return nil
		}
		return nil
	}
	to, err := b.address(args[0])
	if err != nil {
		return err
	}
	from, err := b.address(args[1])
	if err != nil {
		return err
	}
	size, ok := immediate(args[2])
	if !ok || len(args) > 3 {
		return fmt.Errorf("size of the copy")
	}
	in.do = func(t *thread) error {
		d, err := t.bytes("shared", to(t), int(size))
		if err != nil {
			return err
		}
		s, err := t.bytes("global", from(t), int(size))
		t.fresh = append(t.fresh, copy16{d, s})
		return err
	}
	return nil
}

// atom reads, modifies and writes; red only modifies.
func (b *body) atom(in *instruction, mods, args []string) error {
	space, _, typ := access(mods[1:])
	what := ""
	for _, m := range mods[1:] {
		if strings.Contains(" add inc min max exch cas or and ", " "+m+" ") {
			what = m
		}
	}
	to, rest := -1, args
	if mods[0] == "atom" {
		var err error
		if to, err = b.dest(args[0]); err != nil {
			return err
		}
		rest = args[1:]
	}
	at, err := b.address(rest[0])
	if err != nil {
		return err
	}
	with, err := b.sources(rest[1:])
	if err != nil {
		return err
	}
	change, err := changed(what, typ)
	if err != nil {
		return err
	}
	in.do = func(t *thread) error {
		bytes, err := t.writable(space, at(t), width(typ))
		if err != nil {
			return err
		}
		old := load(bytes)
		t.set(to, value(typ, old))
		if what == "cas" {
			if old == with[0](t)&mask(typ) {
				store(bytes, with[1](t))
			}
			return nil
		}
		store(bytes, change(old, with[0](t)))
		return nil
	}
	return nil
}

// changed returns the new value of an atomic op for the old value and the
// operand.
func changed(what, typ string) (func(old, v uint64) uint64, error) {
	switch what {
	case "add":
		if typ[0] == 'f' {
			return func(old, v uint64) uint64 { return fbits(typ, float(typ, old)+float(typ, v)) }, nil
		}
		return func(old, v uint64) uint64 { return old + v }, nil
	case "inc":
		return func(old, v uint64) uint64 {
			if old >= v&mask(typ) {
				return 0
			}
			return old + 1
		}, nil
	case "exch", "cas":
		return func(_, v uint64) uint64 { return v }, nil
	case "or":
		return func(old, v uint64) uint64 { return old | v }, nil
	case "and":
		return func(old, v uint64) uint64 { return old & v }, nil
	case "min", "max":
		return func(old, v uint64) uint64 {
			if less(typ, old, v) == (what == "min") {
				return old
			}
			return v
		}, nil
	}
	return nil, fmt.Errorf("atomic %q is not known", what)
}
