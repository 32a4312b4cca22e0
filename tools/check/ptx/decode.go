package ptx

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// decode sets the action of an instruction.
func (b *body) decode(in *instruction, mods, args []string, rest string) error {
	switch mods[0] {
	case "ret", "exit":
		in.do = leave
		return nil
	case "ld", "ldu":
		return b.load(in, mods, args)
	case "st":
		return b.store(in, mods, args)
	case "cvta":
		return b.cvta(in, mods, args)
	case "atom", "red":
		return b.atom(in, mods, args)
	case "fence":
		if in.do = func(*thread) error { return nil }; slices.Contains(mods, "proxy") {
			in.do = proxyFence
		}
		return nil
	case "griddepcontrol":
		wait := slices.Contains(mods, "wait")
		in.do = func(t *thread) error { t.waited = t.waited || wait; return nil }
		return nil
	case "mbarrier":
		return b.mbarrier(in, mods, args)
	case "wgmma":
		return b.wgmma(in, mods, args)
	case "membar", "setmaxnreg", "prefetch", "discard", "applypriority":
		in.do = func(*thread) error { return nil }
		return nil
	case "call":
		return b.call(in, rest)
	case "bar", "barrier", "shfl", "vote", "mma", "ldmatrix", "activemask", "redux":
		return b.together(in, mods, args)
	case "cp":
		return b.async(in, mods, args)
	case "mov":
		return b.move(in, mods, args)
	case "cvt":
		return b.convert(in, mods, args)
	case "setp":
		return b.compare(in, mods, args)
	case "trap", "brkpt":
		in.do = func(*thread) error { return fmt.Errorf("the kernel trapped") }
		return nil
	}
	return b.compute(in, mods, args)
}

// leave ends a function or the thread.
func leave(t *thread) error {
	if t.frame.caller == nil {
		t.done = true
		return nil
	}
	t.frame.back()
	t.frame = t.frame.caller
	return nil
}

// call is call.uni (result), name, (arguments).
func (b *body) call(in *instruction, rest string) error {
	parts := operands(rest)
	var results, args []string
	if strings.HasPrefix(parts[0], "(") {
		results, parts = operands(strings.Trim(parts[0], "()")), parts[1:]
	}
	if len(parts) > 1 {
		args = operands(strings.Trim(parts[1], "()"))
	}
	name := strings.TrimSpace(parts[0])
	from, to := make([]int, len(args)), make([]int, len(results)) // a later call has other parameters of the same names
	for i, arg := range args {
		from[i] = b.params[arg]
	}
	for i, result := range results {
		to[i] = b.params[result]
	}
	in.do = func(t *thread) error {
		f := b.m.functions[name]
		if f == nil || len(args) != len(f.params) || len(results) != len(f.result) {
			return fmt.Errorf("no function %s with %d arguments", name, len(args))
		}
		caller, callee := t.frame, newFrame(f)
		callee.caller = caller
		for i, p := range f.params {
			copy(callee.param[p.offset:][:p.size], caller.param[from[i]:])
		}
		callee.back = func() {
			for i, p := range f.result {
				copy(caller.param[to[i]:], callee.param[p.offset:][:p.size])
			}
		}
		t.frame = callee
		return nil
	}
	return nil
}

// move copies, packs {a, b} into one register, or takes one apart.
func (b *body) move(in *instruction, mods, args []string) error {
	typ := mods[len(mods)-1]
	to, err := b.dests(args[0])
	if err != nil {
		return err
	}
	from, err := b.sources(vector(args[1]))
	if err != nil {
		return err
	}
	if typ == "pred" {
		in.do = func(t *thread) error { t.set(to[0], from[0](t)&1); return nil }
		return nil
	}
	bits := 8 * width(typ) / max(len(to), len(from))
	in.do = func(t *thread) error {
		v := uint64(0)
		for i, f := range from {
			part := f(t)
			if len(from) > 1 {
				part &= 1<<bits - 1
			}
			v |= part << (bits * i)
		}
		if len(to) == 1 {
			t.set(to[0], value(typ, v))
			return nil
		}
		for i, r := range to {
			t.set(r, v>>(bits*i)&(1<<bits-1))
		}
		return nil
	}
	return nil
}

// convert is cvt with its rounding modes.
func (b *body) convert(in *instruction, mods, args []string) error {
	to, err := b.dest(args[0])
	if err != nil {
		return err
	}
	types := slices.DeleteFunc(slices.Clone(mods), func(m string) bool { return width(m) == 0 })
	if len(types) != 2 {
		return fmt.Errorf("types %v", types)
	}
	out, from := types[0], types[1]
	src, err := b.sources(args[1:])
	if err != nil {
		return err
	}
	if strings.HasSuffix(out, "x2") { // two numbers into one register, the first in the high half
		half := strings.TrimSuffix(out, "x2")
		in.do = func(t *thread) error {
			t.set(to, fbits(half, float(from, src[0](t)))<<16|fbits(half, float(from, src[1](t))))
			return nil
		}
		return nil
	}
	round := ""
	for _, m := range mods {
		if len(m) == 3 && m[0] == 'r' && m[2] == 'i' {
			round = m
		}
	}
	saturate := slices.Contains(mods, "sat")
	in.do = func(t *thread) error {
		v, err := converted(out, from, src[0](t), round, saturate)
		t.set(to, v)
		return err
	}
	return nil
}

// converted converts a value to another type.
func converted(out, from string, v uint64, round string, saturate bool) (uint64, error) {
	isFloat := func(t string) bool { return t[0] == 'f' || t == "bf16" }
	switch {
	case isFloat(from):
		x := float(from, v)
		if round != "" || !isFloat(out) {
			var err error
			if x, err = whole(round, x); err != nil {
				return 0, err
			}
		}
		if !isFloat(out) {
			return clamp(out, x), nil
		}
		if saturate {
			x = math.Min(math.Max(x, 0), 1)
		}
		return fbits(out, x), nil
	case isFloat(out) && from[0] == 's':
		return fbits(out, float64(signed(from, v))), nil
	case isFloat(out):
		return fbits(out, float64(v&mask(from))), nil
	case saturate:
		return clamp(out, float64(signed(from, v))), nil
	}
	return value(out, value(from, v)), nil
}

// compare is setp, optionally with a second, negated result and a predicate to
// combine with.
func (b *body) compare(in *instruction, mods, args []string) error {
	first, second, two := strings.Cut(args[0], "|")
	p, err := b.dest(first)
	if err != nil {
		return err
	}
	q := -1
	if two {
		if q, err = b.dest(second); err != nil {
			return err
		}
	}
	src, err := b.sources(args[1:3])
	if err != nil {
		return err
	}
	typ, cmp, combine := mods[len(mods)-1], mods[1], ""
	var third source
	if len(args) == 4 {
		name := args[3]
		negate := strings.HasPrefix(name, "!")
		if third, err = b.source(strings.TrimPrefix(name, "!")); err != nil {
			return err
		}
		combine = mods[2]
		if negate {
			inner := third
			third = func(t *thread) uint64 { return inner(t) ^ 1 }
		}
	}
	in.do = func(t *thread) error {
		r, err := compared(cmp, typ, src[0](t), src[1](t))
		if err != nil {
			return err
		}
		a, n := r, !r
		if combine != "" {
			c := third(t)&1 != 0
			a, n = combined(combine, a, c), combined(combine, n, c)
		}
		t.set(p, bit(a))
		t.set(q, bit(n))
		return nil
	}
	return nil
}

func combined(how string, a, b bool) bool {
	switch how {
	case "and":
		return a && b
	case "or":
		return a || b
	}
	return a != b
}

func bit(b bool) uint64 {
	if b {
		return 1
	}
	return 0
}

// compared returns a comparison; those with suffix u are true for NaN.
func compared(cmp, typ string, x, y uint64) (bool, error) {
	nan := typ[0] == 'f' && (float(typ, x) != float(typ, x) || float(typ, y) != float(typ, y))
	switch cmp {
	case "num":
		return !nan, nil
	case "nan":
		return nan, nil
	}
	if typ[0] == 'f' && len(cmp) == 3 && cmp[2] == 'u' {
		if nan {
			return true, nil
		}
		cmp = cmp[:2]
	}
	if nan {
		return false, nil
	}
	if typ[0] == 'u' || typ[0] == 'b' {
		cmp = map[string]string{"lo": "lt", "ls": "le", "hi": "gt", "hs": "ge"}[cmp] + cmp
		cmp = cmp[:2]
	}
	same := value(typ, x) == value(typ, y)
	if typ[0] == 'f' {
		same = float(typ, x) == float(typ, y)
	}
	switch cmp {
	case "eq":
		return same, nil
	case "ne":
		return !same, nil
	case "lt":
		return less(typ, x, y), nil
	case "le":
		return same || less(typ, x, y), nil
	case "gt":
		return less(typ, y, x), nil
	case "ge":
		return same || less(typ, y, x), nil
	}
	return false, fmt.Errorf("comparison %q is not known", cmp)
}
