package ptx

import (
	"fmt"
	"math"
	"strconv"
	"strings"
)

// A source returns an operand's bits.
type source func(*thread) uint64

// special are the registers that identify a thread.
var special = map[string]source{
	"%tid.x":    func(t *thread) uint64 { return uint64(t.index[0]) },
	"%tid.y":    func(t *thread) uint64 { return uint64(t.index[1]) },
	"%tid.z":    func(t *thread) uint64 { return uint64(t.index[2]) },
	"%ntid.x":   func(t *thread) uint64 { return uint64(t.block.size[0]) },
	"%ntid.y":   func(t *thread) uint64 { return uint64(t.block.size[1]) },
	"%ntid.z":   func(t *thread) uint64 { return uint64(t.block.size[2]) },
	"%ctaid.x":  func(t *thread) uint64 { return uint64(t.block.id[0]) },
	"%ctaid.y":  func(t *thread) uint64 { return uint64(t.block.id[1]) },
	"%ctaid.z":  func(t *thread) uint64 { return uint64(t.block.id[2]) },
	"%nctaid.x": func(t *thread) uint64 { return uint64(t.block.grid[0]) },
	"%nctaid.y": func(t *thread) uint64 { return uint64(t.block.grid[1]) },
	"%nctaid.z": func(t *thread) uint64 { return uint64(t.block.grid[2]) },
	"%laneid":   func(t *thread) uint64 { return uint64(t.lane) },
	"WARP_SZ":   func(*thread) uint64 { return 32 },
}

// source decodes an operand that is read.
func (b *body) source(s string) (source, error) {
	if r, ok := b.register(s); ok {
		return func(t *thread) uint64 { return t.frame.reg[r] }, nil
	}
	if f, ok := special[s]; ok {
		return f, nil
	}
	if v, ok := immediate(s); ok {
		return func(*thread) uint64 { return v }, nil
	}
	return b.symbol(s)
}

// immediate parses a number; floats are 0f and 0d with their bits.
func immediate(s string) (uint64, bool) {
	for _, f := range []struct {
		prefix string
		digits int
	}{{"0f", 8}, {"0F", 8}, {"0d", 16}, {"0D", 16}} {
		if strings.HasPrefix(s, f.prefix) && len(s) == 2+f.digits {
			v, err := strconv.ParseUint(s[2:], 16, 64)
			return v, err == nil
		}
	}
	s = strings.TrimSuffix(s, "U")
	if v, err := strconv.ParseInt(s, 0, 64); err == nil {
		return uint64(v), true
	}
	v, err := strconv.ParseUint(s, 0, 64)
	return v, err == nil
}

// symbol returns the address of a variable: in its own space for shared and
// local memory, generic for global memory.
func (b *body) symbol(s string) (source, error) {
	if at, ok := b.f.shared[s]; ok {
		return func(*thread) uint64 { return uint64(at) }, nil
	}
	if at, ok := b.f.locals[s]; ok {
		return func(*thread) uint64 { return uint64(at) }, nil
	}
	if at, ok := b.params[s]; ok {
		return func(*thread) uint64 { return uint64(at) }, nil
	}
	if data, ok := b.m.globals[s]; ok {
		if len(data) == 0 {
			return nil, fmt.Errorf("variable %s has no bytes", s)
		}
		return func(*thread) uint64 { return addressOf(data) }, nil
	}
	if b.global.external(s) {
		return func(t *thread) uint64 { return uint64(t.block.dynamic) }, nil
	}
	return nil, fmt.Errorf("operand %s is not known", s)
}

// external reports whether a name is the launch's dynamic shared memory.
func (p *parser) external(name string) bool {
	for _, s := range p.lines {
		if strings.HasPrefix(s, ".extern .shared") && strings.HasSuffix(s, " "+name+"[]") {
			return true
		}
	}
	return false
}

// dest decodes a register that is written; "_" discards the result.
func (b *body) dest(s string) (int, error) {
	if s == "_" {
		return -1, nil
	}
	r, ok := b.register(s)
	if !ok {
		return 0, fmt.Errorf("no register %s", s)
	}
	return r, nil
}

func (t *thread) set(r int, v uint64) {
	if r >= 0 {
		t.frame.reg[r] = v
	}
}

// sources decodes several operands.
func (b *body) sources(list []string) ([]source, error) {
	out := make([]source, len(list))
	for i, s := range list {
		var err error
		if out[i], err = b.source(s); err != nil {
			return nil, err
		}
	}
	return out, nil
}

// vector splits {a, b}.
func vector(s string) []string {
	if !strings.HasPrefix(s, "{") {
		return []string{s}
	}
	return operands(strings.Trim(s, "{}"))
}

// dests decodes a vector of registers.
func (b *body) dests(s string) ([]int, error) {
	var out []int
	for _, v := range vector(s) {
		r, err := b.dest(v)
		if err != nil {
			return nil, err
		}
		out = append(out, r)
	}
	return out, nil
}

// address decodes [register+offset] or [variable+offset].
func (b *body) address(s string) (source, error) {
	s = strings.TrimSpace(strings.Trim(s, "[]"))
	offset := uint64(0)
	if i := strings.LastIndexAny(s, "+"); i > 0 {
		v, ok := immediate(strings.TrimSpace(s[i+1:]))
		if !ok {
			return nil, fmt.Errorf("offset of %s", s)
		}
		s, offset = strings.TrimSpace(s[:i]), v
	}
	base, err := b.source(s)
	if err != nil {
		return nil, err
	}
	return func(t *thread) uint64 { return base(t) + offset }, nil
}

// mask returns the bits of a type.
func mask(t string) uint64 {
	switch width(t) {
	case 1:
		return math.MaxUint8
	case 2:
		return math.MaxUint16
	case 4:
		return math.MaxUint32
	}
	return math.MaxUint64
}

// signed sign-extends a type's bits to 64.
func signed(t string, v uint64) int64 {
	switch width(t) {
	case 1:
		return int64(int8(v))
	case 2:
		return int64(int16(v))
	case 4:
		return int64(int32(v))
	}
	return int64(v)
}

// value extends a type's bits to a number of the same kind in 64 bits.
func value(t string, v uint64) uint64 {
	if t[0] == 's' {
		return uint64(signed(t, v))
	}
	return v & mask(t)
}

// normal is value for one type, decoded once.
func normal(t string) func(uint64) uint64 {
	switch {
	case width(t) == 0 || width(t) == 8:
		return func(v uint64) uint64 { return v }
	case t == "s32":
		return func(v uint64) uint64 { return uint64(int64(int32(v))) }
	case t[0] == 's':
		return func(v uint64) uint64 { return value(t, v) }
	}
	m := mask(t)
	return func(v uint64) uint64 { return v & m }
}
