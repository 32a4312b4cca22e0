package checkpoint

import (
	"bytes"
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// A pickle is a program for a stack machine. This machine builds only plain
// values. Globals are looked up in a fixed list, and calling one only records a
// tensor, a storage or an empty dict. Every opcode with other effects is an error.
// No code from the file is executed.

// Values are nil, bool, int64, float64, string, tuple, *list, *dict, global,
// longInt, *storage and *view.
type (
	tuple   []any
	list    struct{ items []any }
	dict    struct{ keys, values []any }
	global  struct{ module, name string }
	longInt string // a little-endian integer of more than eight bytes
	mark    struct{}
)

// kindOf returns the name of a value's type for error messages.
func kindOf(v any) string {
	switch v.(type) {
	case nil:
		return "None"
	case bool:
		return "bool"
	case int64, longInt:
		return "number"
	case float64:
		return "float"
	case string:
		return "string"
	case tuple:
		return "tuple"
	case *list:
		return "list"
	case *dict:
		return "dict"
	case global:
		return "class"
	case *storage:
		return "storage"
	case *view:
		return "tensor"
	}
	return "mark"
}

// Limits of a pickle. The state dict of a model of 100,000 tensors is about 20 MB
// of pickle with 3 million values, a third of which the memo has too.
const (
	maxPickleBytes  = 64 << 20
	maxPickleValues = 1 << 23
	maxPickleString = 1 << 20
)

type pickleMachine struct {
	data   []byte
	at     int
	stack  []any
	memo   map[uint64]any
	values int                                     // pushed, and put into the memo
	find   func(g global, args tuple) (any, error) // implements the call of a global
	load   func(id tuple) (any, error)             // resolves a persistent id, which is a storage
}

// run interprets one pickle and returns its value and the remaining bytes.
func (p *pickleMachine) run() (v any, rest []byte, err error) {
	p.memo = map[uint64]any{}
	for {
		if p.at >= len(p.data) || p.at > maxPickleBytes {
			return nil, nil, errors.New("unterminated pickle")
		}
		op := p.data[p.at]
		p.at++
		if op == '.' {
			break
		}
		f := pickleOps[op]
		if f == nil {
			return nil, nil, fmt.Errorf("pickle opcode %#02x at %d is not allowed in weight files", op, p.at-1)
		}
		if err := f(p); err != nil {
			return nil, nil, fmt.Errorf("pickle opcode %#02x at %d: %w", op, p.at-1, err)
		}
	}
	v, err = p.pop()
	return v, p.data[p.at:], err
}

func (p *pickleMachine) push(v any) error {
	p.stack = append(p.stack, v)
	return p.count()
}

// store puts the topmost value into the memo.
func (p *pickleMachine) store(at uint64) error {
	v, err := p.top()
	if err != nil {
		return err
	}
	p.memo[at] = v
	return p.count()
}

// count bounds what the machine keeps.
func (p *pickleMachine) count() error {
	if p.values++; p.values > maxPickleValues {
		return fmt.Errorf("more than %d values; a state dict has fewer", maxPickleValues)
	}
	return nil
}

var errStack = errors.New("the stack is empty")

func (p *pickleMachine) pop() (any, error) {
	if len(p.stack) == 0 {
		return nil, errStack
	}
	v := p.stack[len(p.stack)-1]
	p.stack = p.stack[:len(p.stack)-1]
	if _, isMark := v.(mark); isMark {
		return nil, errors.New("found a mark, want a value")
	}
	return v, nil
}

func (p *pickleMachine) top() (any, error) {
	if len(p.stack) == 0 {
		return nil, errStack
	}
	return p.stack[len(p.stack)-1], nil
}

// popMark pops the values above the last mark.
func (p *pickleMachine) popMark() ([]any, error) {
	for i := len(p.stack) - 1; i >= 0; i-- {
		if _, isMark := p.stack[i].(mark); isMark {
			items := append([]any(nil), p.stack[i+1:]...)
			p.stack = p.stack[:i]
			return items, nil
		}
	}
	return nil, errors.New("no mark on the stack")
}

func (p *pickleMachine) bytes(n uint64) ([]byte, error) {
	if n > uint64(len(p.data)-p.at) {
		return nil, fmt.Errorf("need %d bytes, have %d: %w", n, len(p.data)-p.at, errTruncated)
	}
	b := p.data[p.at : p.at+int(n)]
	p.at += int(n)
	return b, nil
}

// number reads a little-endian unsigned integer of n ≤ 8 bytes.
func (p *pickleMachine) number(n uint64) (uint64, error) {
	b, err := p.bytes(n)
	if err != nil {
		return 0, err
	}
	var buf [8]byte
	copy(buf[:], b)
	return binary.LittleEndian.Uint64(buf[:]), nil
}

// line reads a text argument up to the newline.
func (p *pickleMachine) line() (string, error) {
	end := bytes.IndexByte(p.data[p.at:min(len(p.data), p.at+maxPickleString)], '\n')
	if end < 0 {
		return "", errors.New("unterminated text argument")
	}
	s := string(p.data[p.at : p.at+end])
	p.at += end + 1
	return s, nil
}

// text pushes a string with a length field of width bytes.
func text(width uint64) func(p *pickleMachine) error {
	return func(p *pickleMachine) error {
		n, err := p.number(width)
		if err != nil {
			return err
		}
		if n > maxPickleString {
			return fmt.Errorf("string of %d bytes", n)
		}
		b, err := p.bytes(n)
		if err != nil {
			return err
		}
		return p.push(string(b))
	}
}

// integer pushes an integer of n bytes, sign-extended if signed.
func integer(n uint64, signed bool) func(p *pickleMachine) error {
	return func(p *pickleMachine) error {
		v, err := p.number(n)
		if err != nil {
			return err
		}
		if signed {
			return p.push(int64(int32(v)))
		}
		return p.push(int64(v))
	}
}

// long pushes a two's complement integer with a length field of width bytes.
func long(width uint64) func(p *pickleMachine) error {
	return func(p *pickleMachine) error {
		n, err := p.number(width)
		if err != nil {
			return err
		}
		if n > 255 {
			return fmt.Errorf("integer of %d bytes", int32(n))
		}
		b, err := p.bytes(n)
		if err != nil {
			return err
		}
		if n > 8 {
			return p.push(longInt(b))
		}
		var buf [8]byte
		if n > 0 && b[n-1]&0x80 != 0 {
			binary.LittleEndian.PutUint64(buf[:], math.MaxUint64)
		}
		copy(buf[:], b)
		return p.push(int64(binary.LittleEndian.Uint64(buf[:])))
	}
}

func constant(v any) func(p *pickleMachine) error {
	return func(p *pickleMachine) error { return p.push(v) }
}

// tupleOf replaces the n topmost values by a tuple.
func tupleOf(n int) func(p *pickleMachine) error {
	return func(p *pickleMachine) error {
		if len(p.stack) < n {
			return errStack
		}
		t := make(tuple, n)
		for i := n - 1; i >= 0; i-- {
			v, err := p.pop()
			if err != nil {
				return err
			}
			t[i] = v
		}
		return p.push(t)
	}
}

// put stores the top of the stack under the index that index reads; get pushes
// the stored value.
func put(index func(p *pickleMachine) (uint64, error)) func(p *pickleMachine) error {
	return func(p *pickleMachine) error {
		i, err := index(p)
		if err != nil {
			return err
		}
		return p.store(i)
	}
}

func get(index func(p *pickleMachine) (uint64, error)) func(p *pickleMachine) error {
	return func(p *pickleMachine) error {
		i, err := index(p)
		if err != nil {
			return err
		}
		v, ok := p.memo[i]
		if !ok {
			return fmt.Errorf("memo entry %d was never stored", i)
		}
		return p.push(v)
	}
}

func indexOf(width uint64) func(p *pickleMachine) (uint64, error) {
	return func(p *pickleMachine) (uint64, error) { return p.number(width) }
}

func indexLine(p *pickleMachine) (uint64, error) {
	s, err := p.line()
	if err != nil {
		return 0, err
	}
	i, err := strconv.ParseUint(s, 10, 32)
	if err != nil {
		return 0, fmt.Errorf("%.40q is no place of the memo", s)
	}
	return i, nil
}
