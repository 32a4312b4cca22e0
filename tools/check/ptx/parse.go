// Package ptx runs PTX, the assembly output of nvcc, one thread after another.
// It is slow and for tests. It executes the input of a GPU's assembler,
// including the inline assembly of kernels, which emulation by a C++ compiler
// omits. It checks memory accesses for bounds and alignment, fills shared
// memory with garbage, and reports deadlocks.
//
// It follows NVIDIA's PTX ISA 9.0. Loading a module fails if it uses a feature
// that the kernels of templates/cuda do not use.
package ptx

import (
	"fmt"
	"strconv"
	"strings"
)

// A Module is a loaded image.
type Module struct {
	functions map[string]*function
	globals   map[string][]byte // variables in global and constant memory
}

// A function is a kernel or a function that kernels call.
type function struct {
	name   string
	params []variable // in param space
	result []variable
	space  int // bytes of param space: arguments, results, and those of calls
	regs   int
	code   []instruction
	labels map[string]int
	shared map[string]int // offset of each variable
	bytes  int            // of static shared memory
	local  int            // bytes of local memory
	locals map[string]int
}

// A variable is in param space.
type variable struct {
	name         string
	offset, size int
}

// An instruction is decoded into an action of a thread.
type instruction struct {
	text  string
	guard int  // register of the predicate, or -1
	not   bool // the predicate is negated
	do    func(*thread) error
	meet  *meeting // of ops that lanes execute together
	jump  string   // label, until code is linked
}

// A parser reads one module.
type parser struct {
	m     *Module
	lines []string // statements
	at    int
}

// Parse parses a module.
func Parse(text string) (*Module, error) {
	p := &parser{m: &Module{functions: map[string]*function{}, globals: map[string][]byte{}}, lines: statements(text)}
	for p.at < len(p.lines) {
		s := p.lines[p.at]
		p.at++
		var err error
		switch word := first(s); {
		case s == "" || word == ".version" || word == ".target" || word == ".address_size":
		case strings.Contains(s, ".entry ") || strings.Contains(s, ".func "):
			err = p.function(s)
		case strings.Contains(s, ".shared "):
			if !strings.HasPrefix(s, ".extern") {
				err = fmt.Errorf("shared memory outside a function")
			}
		case strings.Contains(s, ".global ") || strings.Contains(s, ".const "):
			err = p.global(s)
		default:
			err = fmt.Errorf("not known")
		}
		if err != nil {
			return nil, fmt.Errorf("%.200s: %w", s, err)
		}
	}
	return p.m, nil
}

// statements splits the text at the ends of statements: semicolons, braces of
// scopes, labels. It drops comments.
func statements(text string) []string {
	var out []string
	var b strings.Builder
	flush := func() {
		if s := strings.Join(strings.Fields(b.String()), " "); s != "" {
			out = append(out, s)
		}
		b.Reset()
	}
	for line := range strings.Lines(text) {
		if i := strings.Index(line, "//"); i >= 0 {
			line = line[:i]
		}
		trimmed := strings.TrimSpace(line)
		if trimmed == "{" || trimmed == "}" || strings.HasPrefix(trimmed, ".version") || strings.HasPrefix(trimmed, ".target") || strings.HasPrefix(trimmed, ".address_size") {
			flush()
			out = append(out, trimmed)
			continue
		}
		for rest := line; rest != ""; {
			i := strings.IndexAny(rest, ";{}:")
			if i < 0 {
				b.WriteString(rest)
				break
			}
			head := b.String() + rest[:i]
			switch c := rest[i]; {
			case c == ';':
				b.WriteString(rest[:i])
				flush()
			case c == ':' && strings.HasPrefix(strings.TrimSpace(head), "$") && !strings.Contains(strings.TrimSpace(head), " "):
				b.WriteString(rest[:i+1])
				flush()
			case c == '{' && strings.TrimSpace(head) == "" || c == '}' && !strings.Contains(head, "{"):
				flush()
				out = append(out, string(c))
			default:
				b.WriteString(rest[:i+1])
			}
			rest = rest[i+1:]
		}
		b.WriteByte(' ')
	}
	flush()
	return out
}

func first(s string) string {
	word, _, _ := strings.Cut(s, " ")
	return word
}

// global parses a variable with its bytes.
func (p *parser) global(s string) error {
	decl, values, _ := strings.Cut(s, "=")
	name, size, err := declared(decl)
	if err != nil {
		return err
	}
	data := make([]byte, size)
	if values = strings.Trim(values, " {}"); values != "" {
		if !strings.Contains(decl, ".b8") && !strings.Contains(decl, ".u8") {
			return fmt.Errorf("only bytes can be read here")
		}
		for i, v := range strings.Split(values, ",") {
			n, err := strconv.ParseUint(strings.TrimSpace(v), 0, 8)
			if err != nil || i >= size {
				return fmt.Errorf("byte %d is %q", i, v)
			}
			data[i] = byte(n)
		}
	}
	p.m.globals[name] = data
	return nil
}

// declared returns the name and size of a declaration such as ".param .align 8
// .b8 name[16]".
func declared(s string) (name string, size int, err error) {
	fields := strings.Fields(s)
	if len(fields) == 0 {
		return "", 0, fmt.Errorf("nothing is declared")
	}
	name = fields[len(fields)-1]
	count := 1
	if i := strings.IndexByte(name, '['); i >= 0 {
		n := strings.TrimSuffix(name[i+1:], "]")
		if name = name[:i]; n == "" {
			return name, 0, nil
		}
		if count, err = strconv.Atoi(n); err != nil {
			return "", 0, err
		}
	}
	for _, f := range fields {
		if w := width(strings.TrimPrefix(f, ".")); w > 0 {
			return name, count * w, nil
		}
	}
	return "", 0, fmt.Errorf("%s has no type", name)
}

// width returns the bytes of a type, or 0 if it is none.
func width(t string) int {
	switch t {
	case "b8", "u8", "s8":
		return 1
	case "b16", "u16", "s16", "f16", "bf16":
		return 2
	case "b32", "u32", "s32", "f32", "f16x2", "bf16x2":
		return 4
	case "b64", "u64", "s64", "f64":
		return 8
	}
	return 0
}
