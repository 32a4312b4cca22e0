package checkpoint

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"strconv"
)

// pickleOps are the supported opcodes. All others are errors, among them INST, OBJ,
// NEWOBJ and the extension registry.
var pickleOps = [256]func(p *pickleMachine) error{
	0x80: opProto, // PROTO
	0x95: opFrame, // FRAME

	'(': func(p *pickleMachine) error { return p.push(mark{}) },
	'0': opPop,
	'1': func(p *pickleMachine) error { _, err := p.popMark(); return err },
	'2': opDup,

	'N': constant(nil), 0x88: constant(true), 0x89: constant(false),
	'J': integer(4, true), 'K': integer(1, false), 'M': integer(2, false), 0x8a: long(1), 0x8b: long(4),
	'I': opIntLine, 'G': opFloat,
	'X': text(4), 'U': text(1), 'T': text(4), 0x8c: text(1), 0x8d: text(8),

	')': constant(tuple{}), 't': opTuple, 0x85: tupleOf(1), 0x86: tupleOf(2), 0x87: tupleOf(3),
	']': func(p *pickleMachine) error { return p.push(&list{}) }, 'l': opList, 'a': opAppend, 'e': opAppends,
	'}': func(p *pickleMachine) error { return p.push(&dict{}) }, 'd': opDict, 's': opSetItem, 'u': opSetItems,

	'p': put(indexLine), 'q': put(indexOf(1)), 'r': put(indexOf(4)), 0x94: opMemoize,
	'g': get(indexLine), 'h': get(indexOf(1)), 'j': get(indexOf(4)),

	'c': opGlobal, 0x93: opStackGlobal, 'R': opReduce, 'b': opBuild, 'Q': opPersistent,
}

func opProto(p *pickleMachine) error {
	v, err := p.number(1)
	if err == nil && v > 5 {
		err = fmt.Errorf("pickle protocol %d", v)
	}
	return err
}

func opFrame(p *pickleMachine) error {
	n, err := p.number(8)
	if err == nil && n > uint64(len(p.data)-p.at) {
		err = fmt.Errorf("frame of %d bytes, have %d: %w", n, len(p.data)-p.at, errTruncated)
	}
	return err
}

func opPop(p *pickleMachine) error {
	if len(p.stack) == 0 {
		return errStack
	}
	p.stack = p.stack[:len(p.stack)-1]
	return nil
}

func opDup(p *pickleMachine) error {
	v, err := p.top()
	if err != nil {
		return err
	}
	return p.push(v)
}

func opIntLine(p *pickleMachine) error {
	s, err := p.line()
	if err != nil {
		return err
	}
	switch s {
	case "00":
		return p.push(false)
	case "01":
		return p.push(true)
	}
	v, err := strconv.ParseInt(s, 10, 64)
	if err != nil {
		return fmt.Errorf("%.40q is not an integer of 64 bits", s)
	}
	return p.push(v)
}

func opFloat(p *pickleMachine) error {
	b, err := p.bytes(8)
	if err != nil {
		return err
	}
	return p.push(math.Float64frombits(binary.BigEndian.Uint64(b)))
}

func opTuple(p *pickleMachine) error {
	items, err := p.popMark()
	if err != nil {
		return err
	}
	return p.push(tuple(items))
}

func opList(p *pickleMachine) error {
	items, err := p.popMark()
	if err != nil {
		return err
	}
	return p.push(&list{items})
}

func opAppend(p *pickleMachine) error {
	v, err := p.pop()
	if err != nil {
		return err
	}
	return p.extend([]any{v})
}

func opAppends(p *pickleMachine) error {
	items, err := p.popMark()
	if err != nil {
		return err
	}
	return p.extend(items)
}

func (p *pickleMachine) extend(items []any) error {
	v, err := p.top()
	if err != nil {
		return err
	}
	l, ok := v.(*list)
	if !ok {
		return fmt.Errorf("append to a %s", kindOf(v))
	}
	l.items = append(l.items, items...)
	return nil
}

func opDict(p *pickleMachine) error {
	items, err := p.popMark()
	if err != nil {
		return err
	}
	d := &dict{}
	if err := d.set(items); err != nil {
		return err
	}
	return p.push(d)
}

func opSetItem(p *pickleMachine) error {
	v, err := p.pop()
	if err != nil {
		return err
	}
	k, err := p.pop()
	if err != nil {
		return err
	}
	return p.update([]any{k, v})
}

func opSetItems(p *pickleMachine) error {
	items, err := p.popMark()
	if err != nil {
		return err
	}
	return p.update(items)
}

func (p *pickleMachine) update(items []any) error {
	v, err := p.top()
	if err != nil {
		return err
	}
	d, ok := v.(*dict)
	if !ok {
		return fmt.Errorf("set items of a %s", kindOf(v))
	}
	return d.set(items)
}

func (d *dict) set(items []any) error {
	if len(items)%2 != 0 {
		return errors.New("key without a value")
	}
	for i := 0; i < len(items); i += 2 {
		d.keys, d.values = append(d.keys, items[i]), append(d.values, items[i+1])
	}
	return nil
}

// get returns the value of a text key.
func (d *dict) get(key string) any {
	for i, k := range d.keys {
		if s, ok := k.(string); ok && s == key {
			return d.values[i]
		}
	}
	return nil
}

func opMemoize(p *pickleMachine) error { return p.store(uint64(len(p.memo))) }

func opGlobal(p *pickleMachine) error {
	module, err := p.line()
	if err != nil {
		return err
	}
	name, err := p.line()
	if err != nil {
		return err
	}
	return p.pushGlobal(global{module, name})
}

func opStackGlobal(p *pickleMachine) error {
	name, err := p.pop()
	if err != nil {
		return err
	}
	module, err := p.pop()
	if err != nil {
		return err
	}
	m, ok1 := module.(string)
	n, ok2 := name.(string)
	if !ok1 || !ok2 {
		return errors.New("name of a global is not text")
	}
	return p.pushGlobal(global{m, n})
}

func (p *pickleMachine) pushGlobal(g global) error {
	if !g.allowed() {
		return fmt.Errorf("%.60q of module %.60q is not allowed in weight files; the file tries to run code", g.name, g.module)
	}
	return p.push(g)
}

func opReduce(p *pickleMachine) error {
	args, err := p.pop()
	if err != nil {
		return err
	}
	callee, err := p.pop()
	if err != nil {
		return err
	}
	g, ok1 := callee.(global)
	a, ok2 := args.(tuple)
	if !ok1 || !ok2 {
		return fmt.Errorf("call of a %s with a %s", kindOf(callee), kindOf(args))
	}
	v, err := p.find(g, a)
	if err != nil {
		return fmt.Errorf("%s.%s: %w", g.module, g.name, err)
	}
	return p.push(v)
}

// opBuild drops the attributes that torch sets on a state dict (_metadata). For
// any other object, attributes could run code and are an error.
func opBuild(p *pickleMachine) error {
	state, err := p.pop()
	if err != nil {
		return err
	}
	object, err := p.top()
	if err != nil {
		return err
	}
	_, ok1 := object.(*dict)
	_, ok2 := state.(*dict)
	if !ok1 || !ok2 {
		return fmt.Errorf("attributes (%s) for a %s", kindOf(state), kindOf(object))
	}
	return nil
}

func opPersistent(p *pickleMachine) error {
	id, err := p.pop()
	if err != nil {
		return err
	}
	t, ok := id.(tuple)
	if !ok {
		return fmt.Errorf("persistent id of type %s", kindOf(id))
	}
	v, err := p.load(t)
	if err != nil {
		return err
	}
	return p.push(v)
}
