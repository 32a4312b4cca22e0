package ptx

import (
	"fmt"
	"math"
	"math/bits"
	"slices"
	"strings"
)

// An operation computes a value of its type from its operands.
type operation func(typ string, a []uint64) uint64

// compute decodes the ops that read numbers and write one.
func (b *body) compute(in *instruction, mods, args []string) error {
	name, typ := mods[0], mods[len(mods)-1]
	to, err := b.dest(args[0])
	if err != nil {
		return err
	}
	src, err := b.sources(args[1:])
	if err != nil {
		return err
	}
	if f := carrying(name, mods); f != nil {
		in.do = func(t *thread) error {
			a := read(t, src)
			t.set(to, value(typ, f(t, typ, a)))
			return nil
		}
		return nil
	}
	f := operationOf(name, mods, typ)
	if f == nil {
		return fmt.Errorf("instruction %s is not known", strings.Join(mods, "."))
	}
	out := typ
	if slices.Contains(mods, "wide") {
		out = typ[:1] + map[string]string{"16": "32", "32": "64"}[typ[1:]]
	}
	if name == "dp4a" || name == "selp" || typ == "pred" {
		out = "b64"
	}
	if in.do = quick(name, typ, to, src); in.do != nil {
		return nil
	}
	norm := normal(out)
	in.do = func(t *thread) error {
		t.set(to, norm(f(typ, read(t, src))))
		return nil
	}
	return nil
}

// quick has fast versions of the most frequent ops.
func quick(name, typ string, to int, src []source) func(*thread) error {
	two32 := func(f func(a, b uint32) uint32) func(*thread) error {
		norm := normal(typ)
		return func(t *thread) error { t.set(to, norm(uint64(f(uint32(src[0](t)), uint32(src[1](t)))))); return nil }
	}
	one := func(f func(t *thread) float32) func(*thread) error {
		return func(t *thread) error { t.set(to, single(f(t))); return nil }
	}
	get := func(t *thread, i int) float32 { return math.Float32frombits(uint32(src[i](t))) }
	switch name + "." + typ {
	case "add.s32", "add.u32":
		return two32(func(a, b uint32) uint32 { return a + b })
	case "sub.s32", "sub.u32":
		return two32(func(a, b uint32) uint32 { return a - b })
	case "and.b32":
		return two32(func(a, b uint32) uint32 { return a & b })
	case "or.b32":
		return two32(func(a, b uint32) uint32 { return a | b })
	case "add.s64", "add.u64":
		return func(t *thread) error { t.set(to, src[0](t)+src[1](t)); return nil }
	case "add.f32":
		return one(func(t *thread) float32 { return get(t, 0) + get(t, 1) })
	case "mul.f32":
		return one(func(t *thread) float32 { return get(t, 0) * get(t, 1) })
	case "fma.f32":
		return one(func(t *thread) float32 {
			return float32(math.FMA(float64(get(t, 0)), float64(get(t, 1)), float64(get(t, 2))))
		})
	}
	return nil
}

// read returns an instruction's operands, until the thread's next instruction.
func read(t *thread, src []source) []uint64 {
	for i, s := range src {
		t.args[i] = s(t)
	}
	return t.args[:len(src)]
}

// carrying are the ops with a carry.
func carrying(name string, mods []string) func(*thread, string, []uint64) uint64 {
	writes := slices.Contains(mods, "cc")
	reads := strings.HasSuffix(name, "c") && (name == "addc" || name == "subc" || name == "madc")
	if !writes && !reads {
		return nil
	}
	high := slices.Contains(mods, "hi")
	return func(t *thread, typ string, a []uint64) uint64 {
		w := uint(8 * width(typ))
		x, y := a[0]&mask(typ), a[1]&mask(typ)
		carry := uint64(0)
		if reads {
			carry = t.cc
		}
		if strings.HasPrefix(name, "mad") {
			hi, lo := bits.Mul64(x, y)
			if w == 32 {
				hi, lo = lo>>32, lo&math.MaxUint32
			}
			if x = lo; high {
				x = hi
			}
			y = a[2] & mask(typ)
		}
		var sum, out uint64
		if strings.HasPrefix(name, "sub") {
			sum, out = bits.Sub64(x, y, carry)
		} else {
			sum, out = bits.Add64(x, y, carry)
		}
		if w == 32 {
			out = sum >> 32 & 1
		}
		if writes {
			t.cc = out
		}
		return sum
	}
}

// operationOf returns the op of a name and type.
func operationOf(name string, mods []string, typ string) operation {
	if strings.HasSuffix(typ, "x2") {
		half := strings.TrimSuffix(typ, "x2")
		f := operationOf(name, mods, half)
		if f == nil {
			return nil
		}
		return func(_ string, a []uint64) uint64 {
			lo, hi := make([]uint64, len(a)), make([]uint64, len(a))
			for i, v := range a {
				lo[i], hi[i] = v&0xffff, v>>16&0xffff
			}
			return f(half, hi)<<16 | f(half, lo)&0xffff
		}
	}
	if typ[0] == 'f' || typ == "bf16" {
		if f := floats[name]; f != nil {
			return func(t string, a []uint64) uint64 { return fbits(t, f(mods, t, a)) }
		}
	}
	switch name {
	case "mul", "mad":
		return multiply(name, mods)
	case "shf":
		left, wrap := slices.Contains(mods, "l"), slices.Contains(mods, "wrap")
		return func(_ string, a []uint64) uint64 { return funnel(a, left, wrap) }
	case "dp4a":
		return dot4(mods)
	}
	return integers[name]
}

func arg(t string, a []uint64, i int) float64 { return float(t, a[i]) }

// floats are the ops of floating-point types, computed in float64 and rounded
// once, as in fma.
var floats = map[string]func(mods []string, t string, a []uint64) float64{
	"add": func(_ []string, t string, a []uint64) float64 { return arg(t, a, 0) + arg(t, a, 1) },
	"sub": func(_ []string, t string, a []uint64) float64 { return arg(t, a, 0) - arg(t, a, 1) },
	"mul": func(_ []string, t string, a []uint64) float64 { return arg(t, a, 0) * arg(t, a, 1) },
	"div": func(_ []string, t string, a []uint64) float64 { return arg(t, a, 0) / arg(t, a, 1) },
	"fma": func(_ []string, t string, a []uint64) float64 {
		return math.FMA(arg(t, a, 0), arg(t, a, 1), arg(t, a, 2))
	},
	"neg":      func(_ []string, t string, a []uint64) float64 { return -arg(t, a, 0) },
	"abs":      func(_ []string, t string, a []uint64) float64 { return math.Abs(arg(t, a, 0)) },
	"min":      func(_ []string, t string, a []uint64) float64 { return number(math.Min, arg(t, a, 0), arg(t, a, 1)) },
	"max":      func(_ []string, t string, a []uint64) float64 { return number(math.Max, arg(t, a, 0), arg(t, a, 1)) },
	"sqrt":     func(_ []string, t string, a []uint64) float64 { return math.Sqrt(arg(t, a, 0)) },
	"rsqrt":    func(_ []string, t string, a []uint64) float64 { return 1 / math.Sqrt(arg(t, a, 0)) },
	"rcp":      func(_ []string, t string, a []uint64) float64 { return 1 / arg(t, a, 0) },
	"ex2":      func(_ []string, t string, a []uint64) float64 { return math.Exp2(arg(t, a, 0)) },
	"lg2":      func(_ []string, t string, a []uint64) float64 { return math.Log2(arg(t, a, 0)) },
	"sin":      func(_ []string, t string, a []uint64) float64 { return math.Sin(arg(t, a, 0)) },
	"cos":      func(_ []string, t string, a []uint64) float64 { return math.Cos(arg(t, a, 0)) },
	"tanh":     func(_ []string, t string, a []uint64) float64 { return math.Tanh(arg(t, a, 0)) },
	"copysign": func(_ []string, t string, a []uint64) float64 { return math.Copysign(arg(t, a, 1), arg(t, a, 0)) },
}

// number returns the operand that is a number if the other is NaN.
func number(f func(x, y float64) float64, x, y float64) float64 {
	switch {
	case x != x:
		return y
	case y != y:
		return x
	}
	return f(x, y)
}

// integers are the ops of integers and bits.
var integers = map[string]operation{
	"add": func(_ string, a []uint64) uint64 { return a[0] + a[1] },
	"sub": func(_ string, a []uint64) uint64 { return a[0] - a[1] },
	"neg": func(_ string, a []uint64) uint64 { return -a[0] },
	"abs": func(t string, a []uint64) uint64 { return uint64(max(signed(t, a[0]), -signed(t, a[0]))) },
	"and": func(_ string, a []uint64) uint64 { return a[0] & a[1] },
	"or":  func(_ string, a []uint64) uint64 { return a[0] | a[1] },
	"xor": func(_ string, a []uint64) uint64 { return a[0] ^ a[1] },
	"not": func(t string, a []uint64) uint64 {
		if t == "pred" {
			return a[0] ^ 1
		}
		return ^a[0]
	},
	"shl": func(t string, a []uint64) uint64 { return a[0] << min(a[1]&math.MaxUint32, 64) },
	"shr": func(t string, a []uint64) uint64 {
		if t[0] == 's' {
			return uint64(signed(t, a[0]) >> min(a[1]&math.MaxUint32, 63))
		}
		return a[0] & mask(t) >> min(a[1]&math.MaxUint32, 64)
	},
	"min":  func(t string, a []uint64) uint64 { return either(less(t, a[0], a[1]), a[0], a[1]) },
	"max":  func(t string, a []uint64) uint64 { return either(less(t, a[0], a[1]), a[1], a[0]) },
	"div":  func(t string, a []uint64) uint64 { return quotient(t, a[0], a[1], false) },
	"rem":  func(t string, a []uint64) uint64 { return quotient(t, a[0], a[1], true) },
	"selp": func(_ string, a []uint64) uint64 { return either(a[2]&1 != 0, a[0], a[1]) },
	"popc": func(t string, a []uint64) uint64 { return uint64(bits.OnesCount64(a[0] & mask(t))) },
	"clz": func(t string, a []uint64) uint64 {
		return uint64(bits.LeadingZeros64(a[0]&mask(t)) - 64 + 8*width(t))
	},
	"brev": func(t string, a []uint64) uint64 { return bits.Reverse64(a[0]&mask(t)) >> (64 - 8*width(t)) },
	"bfe":  extract,
	"bfi": func(t string, a []uint64) uint64 {
		m := (uint64(1)<<min(a[3]&255, 63) - 1) << min(a[2]&255, 63)
		return a[1]&^m | a[0]<<min(a[2]&255, 63)&m
	},
	"lop3": func(_ string, a []uint64) uint64 {
		out := uint64(0)
		for k := range uint(8) {
			if a[3]>>k&1 != 0 {
				out |= flip(a[0], k&4 == 0) & flip(a[1], k&2 == 0) & flip(a[2], k&1 == 0)
			}
		}
		return out
	},
	"prmt": func(_ string, a []uint64) uint64 {
		both, out := a[0]&math.MaxUint32|a[1]<<32, uint64(0)
		for i := range 4 {
			s := a[2] >> (4 * i)
			v := both >> (8 * (s & 7)) & 255
			if s&8 != 0 { // the sign of the byte, repeated
				v = uint64(int64(int8(v))>>7) & 255
			}
			out |= v << (8 * i)
		}
		return out
	},
}

func flip(v uint64, not bool) uint64 {
	if not {
		return ^v
	}
	return v
}

func either(first bool, a, b uint64) uint64 {
	if first {
		return a
	}
	return b
}

// quotient divides; like a GPU it returns all ones for a division by zero.
func quotient(t string, a, b uint64, rest bool) uint64 {
	if b&mask(t) == 0 {
		return math.MaxUint64
	}
	if t[0] == 's' {
		x, y := signed(t, a), signed(t, b)
		if rest {
			return uint64(x % y)
		}
		return uint64(x / y)
	}
	x, y := a&mask(t), b&mask(t)
	if rest {
		return x % y
	}
	return x / y
}

// extract is bfe: a bit field, sign-extended for signed types.
func extract(t string, a []uint64) uint64 {
	at, n := a[1]&255, a[2]&255
	if n == 0 {
		return 0
	}
	v := value(t, a[0])
	if t[0] == 's' {
		return uint64(int64(uint64(signed(t, a[0]))>>min(at, 63)<<(64-min(n, 64))) >> (64 - min(n, 64)))
	}
	return v >> min(at, 64) & (1<<min(n, 64) - 1)
}

// multiply is mul and mad with the low or high half or the full product.
func multiply(name string, mods []string) operation {
	wide, high := slices.Contains(mods, "wide"), slices.Contains(mods, "hi")
	return func(t string, a []uint64) uint64 {
		x, y := value(t, a[0]), value(t, a[1])
		v := x * y
		if high {
			switch {
			case width(t) < 8 && t[0] == 's':
				v = uint64(int64(v) >> (8 * width(t)))
			case width(t) < 8:
				v >>= 8 * width(t)
			default:
				hi, _ := bits.Mul64(x, y)
				if t[0] == 's' {
					hi -= either(int64(x) < 0, y, 0) + either(int64(y) < 0, x, 0)
				}
				v = hi
			}
		}
		if name == "mad" {
			if wide {
				return v + a[2]
			}
			return v + value(t, a[2])
		}
		return v
	}
}

// funnel is shf: a shift of two concatenated words.
func funnel(a []uint64, left, wrap bool) uint64 {
	n := a[2] & math.MaxUint32
	if wrap {
		n &= 31
	}
	n = min(n, 32)
	both := a[0]&math.MaxUint32 | a[1]<<32
	if left {
		return both << n >> 32
	}
	return both >> n
}

// dot4 is dp4a: the dot product of four bytes.
func dot4(mods []string) operation {
	at, bt := mods[1], mods[2]
	byteOf := func(t string, v uint64, i int) int64 {
		if t == "u32" {
			return int64(uint8(v >> (8 * i)))
		}
		return int64(int8(v >> (8 * i)))
	}
	if at == "u32" && bt == "s32" {
		return func(_ string, a []uint64) uint64 {
			x, y := uint32(a[0]), uint32(a[1])
			sum := int32(a[2])
			for range 4 {
				sum += int32(uint8(x)) * int32(int8(y))
				x, y = x>>8, y>>8
			}
			return uint64(uint32(sum))
		}
	}
	return func(_ string, a []uint64) uint64 {
		sum := int64(int32(a[2]))
		for i := range 4 {
			sum += byteOf(at, a[0], i) * byteOf(bt, a[1], i)
		}
		return uint64(uint32(sum))
	}
}
