package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// A body is a function that is being parsed; registers have scopes.
type body struct {
	m      *Module
	f      *function
	scopes []map[string]int // name → register
	params map[string]int   // name → offset in param space
	global *parser
}

// function parses a kernel or function with header s and its body.
func (p *parser) function(s string) error {
	head, rest, _ := strings.Cut(s, "(")
	result := ""
	if strings.HasSuffix(strings.TrimSpace(head), ".func") { // .func (result) name (params)
		result, rest, _ = strings.Cut(rest, ")")
		head, rest, _ = strings.Cut(rest, "(")
	}
	fields := strings.Fields(head)
	f := &function{name: fields[len(fields)-1], labels: map[string]int{}, shared: map[string]int{}, locals: map[string]int{}}
	b := &body{m: p.m, f: f, scopes: []map[string]int{{}}, params: map[string]int{}, global: p}
	list, _, _ := strings.Cut(rest, ")")
	for _, part := range []struct {
		text string
		into *[]variable
	}{{list, &f.params}, {result, &f.result}} {
		for _, d := range strings.Split(part.text, ",") {
			if strings.TrimSpace(d) == "" {
				continue
			}
			v, err := b.param(d)
			if err != nil {
				return err
			}
			*part.into = append(*part.into, v)
		}
	}
	if p.at == len(p.lines) || p.lines[p.at] != "{" {
		return nil // a declaration: the definition follows
	}
	p.m.functions[f.name] = f
	return b.read(p)
}

// read parses statements to the end of the body.
func (b *body) read(p *parser) error {
	for depth := 0; p.at < len(p.lines); {
		s := p.lines[p.at]
		p.at++
		switch {
		case s == "{":
			depth++
			b.scopes = append(b.scopes, map[string]int{})
			continue
		case s == "}":
			b.scopes = b.scopes[:len(b.scopes)-1]
			if depth--; depth == 0 {
				return b.link()
			}
			continue
		}
		if err := b.statement(s); err != nil {
			return fmt.Errorf("%s: %s: %w", b.f.name, s, err)
		}
	}
	return fmt.Errorf("%s: no end", b.f.name)
}

func (b *body) statement(s string) error {
	switch {
	case strings.HasSuffix(s, ":"):
		b.f.labels[strings.TrimSuffix(s, ":")] = len(b.f.code)
		return nil
	case strings.HasPrefix(s, ".reg "):
		return b.registers(s)
	case strings.HasPrefix(s, ".shared "):
		name, size, err := declared(s)
		b.f.bytes = (b.f.bytes + 15) &^ 15
		b.f.shared[name] = b.f.bytes
		b.f.bytes += size
		return err
	case strings.HasPrefix(s, ".local "):
		name, size, err := declared(s)
		b.f.local = (b.f.local + 15) &^ 15
		b.f.locals[name] = b.f.local
		b.f.local += size
		return err
	case strings.HasPrefix(s, ".param "):
		_, err := b.param(s)
		return err
	case strings.HasPrefix(s, ".pragma"), strings.HasPrefix(s, ".loc"), strings.HasPrefix(s, ".file"):
		return nil
	}
	return b.instruction(s)
}

// param assigns an offset to a variable of param space.
func (b *body) param(s string) (variable, error) {
	name, size, err := declared(s)
	v := variable{name, (b.f.space + 15) &^ 15, size}
	b.params[name] = v.offset
	b.f.space = v.offset + size
	return v, err
}

// registers declares ".reg .b32 %r<430>" or ".reg .u32 a, b".
func (b *body) registers(s string) error {
	fields := strings.Fields(s)
	for _, d := range strings.Split(strings.Join(fields[2:], " "), ",") {
		d = strings.TrimSpace(d)
		prefix, count, many := strings.Cut(strings.TrimSuffix(d, ">"), "<")
		if !many {
			b.name(d)
			continue
		}
		n, err := strconv.Atoi(count)
		if err != nil || n > 1<<16 {
			return fmt.Errorf("a number of registers %q", count)
		}
		for i := range n {
			b.name(prefix + strconv.Itoa(i))
		}
	}
	return nil
}

func (b *body) name(reg string) {
	b.scopes[len(b.scopes)-1][reg] = b.f.regs
	b.f.regs++
}

// register looks a name up, from the inner scope outward.
func (b *body) register(name string) (int, bool) {
	for i := len(b.scopes) - 1; i >= 0; i-- {
		if r, ok := b.scopes[i][name]; ok {
			return r, true
		}
	}
	return 0, false
}

// link resolves the targets of jumps.
func (b *body) link() error {
	for i := range b.f.code {
		in := &b.f.code[i]
		if in.jump == "" {
			continue
		}
		to, ok := b.f.labels[in.jump]
		if !ok {
			return fmt.Errorf("%s: no label %s", b.f.name, in.jump)
		}
		in.do = func(t *thread) error { t.frame.pc = to; return nil }
	}
	return nil
}

// instruction decodes one instruction.
func (b *body) instruction(s string) error {
	in := instruction{text: s, guard: -1}
	if strings.HasPrefix(s, "@") {
		guard, rest, _ := strings.Cut(s[1:], " ")
		in.not = strings.HasPrefix(guard, "!")
		r, ok := b.register(strings.TrimPrefix(guard, "!"))
		if !ok {
			return fmt.Errorf("no register %s", guard)
		}
		in.guard, s = r, rest
	}
	name, rest, _ := strings.Cut(s, " ")
	mods := strings.Split(name, ".")
	args := operands(rest)
	if mods[0] == "bra" {
		in.jump = args[0]
	} else if err := b.decode(&in, mods, args, rest); err != nil {
		return err
	}
	b.f.code = append(b.f.code, in)
	return nil
}

// operands splits at commas outside of braces, brackets and parentheses.
func operands(s string) []string {
	var out []string
	depth, from := 0, 0
	for i, c := range s {
		switch c {
		case '{', '[', '(':
			depth++
		case '}', ']', ')':
			depth--
		case ',':
			if depth == 0 {
				out = append(out, strings.TrimSpace(s[from:i]))
				from = i + 1
			}
		}
	}
	if rest := strings.TrimSpace(s[from:]); rest != "" {
		out = append(out, rest)
	}
	return out
}
