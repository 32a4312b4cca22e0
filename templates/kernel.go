package templates

import (
	"fmt"
	"regexp"
	"slices"
	"strings"
	"text/template"

	"gopkg.in/yaml.v3"

	"github.com/iflowc/iflowc/ir/tensor"
)

// A Kernel is one template of the catalog: an implementation of an op for
// some weight types. At one type and instruction set it is one C translation
// unit that defines one function, named by Symbol.
type Kernel struct {
	Name string // the template's file name
	Op   string // what it computes: matmul (prototype ifl_mm) or embed
	Impl string // gemv, flat_gemm, gemm; embed
	Doc  string
	Sum  string // reduction class: kernels of one class give the same bits for a type
	When string // when it is legal beyond its types; empty: always
	// Types are the weight types it takes.
	Types []tensor.DType
	// Tile is the number of activation rows a packed tile holds (tm of
	// ifl_kernel.h).
	Tile int

	from    rowsFrom
	act     string   // activations it takes; empty: those of the weight type
	rows    []int    // rows of a tile that one function computes; empty: what the instruction set can
	isas    []string // instruction sets it is for; empty: all
	body    *template.Template
	formats map[tensor.DType]*format
}

// Symbol is the name of the C function for weights of type dt, such as
// ifl_flat_gemm_q4_b64.
func (k *Kernel) Symbol(dt tensor.DType) string {
	s := "ifl_" + k.Impl + "_" + dt.String()
	if k.act != "" {
		s += "_x" + k.act
	}
	return s
}

// From is the number of rows from which the kernel is used for weights of type
// dt where nothing was measured; 0: only where a profile says so.
func (k *Kernel) From(dt tensor.DType) int {
	if n, ok := k.from[dt.String()]; ok {
		return n
	}
	return k.from[""]
}

// rowsFrom are a header's rows by weight type; "" is every other type.
type rowsFrom map[string]int

// UnmarshalYAML reads a number for all types, or numbers by type.
func (f *rowsFrom) UnmarshalYAML(n *yaml.Node) error {
	all := 0
	if n.Decode(&all) == nil {
		*f = rowsFrom{"": all}
		return nil
	}
	byType := map[string]int{}
	err := n.Decode(&byType)
	*f = byType
	return err
}

func (f rowsFrom) check(template string, types []tensor.DType) error {
	for name, rows := range f {
		if rows < 1 {
			return fmt.Errorf("template %s: from %d rows; expected 1 or more", template, rows)
		}
		if name != "" && !slices.ContainsFunc(types, func(dt tensor.DType) bool { return dt.String() == name }) {
			return fmt.Errorf("template %s: from names the type %q, which is not among its types", template, name)
		}
	}
	return nil
}

// Act is how the kernel's activations are packed: as Act of the weight type
// says, or "bf16" (rounded).
func (k *Kernel) Act(dt tensor.DType) string {
	if k.act != "" {
		return k.act
	}
	return Act(dt)
}

// Act is how activations are packed for weights of type dt: "f32" (as they
// are), "a8_b32" or "a8_b64" (int8 blocks as wide as the weight's).
func Act(dt tensor.DType) string {
	switch {
	case !dt.IsBlock():
		return tensor.F32.String()
	case dt.Block() == 32:
		return tensor.A8B32.String()
	default:
		return tensor.A8B64.String()
	}
}

// Source is the C translation unit of the kernel for weights of type dt and an
// instruction set. The same arguments always give the same bytes.
func (k *Kernel) Source(dt tensor.DType, isa string) (string, error) {
	if !slices.Contains(k.Types, dt) {
		return "", fmt.Errorf("kernel %s: no weights of type %s", k.Name, dt)
	}
	set, ok := findISA(isa)
	if !ok || len(k.isas) > 0 && !slices.Contains(k.isas, isa) {
		return "", fmt.Errorf("kernel %s: no instruction set %s", k.Name, isa)
	}
	u, err := k.unit(dt, set)
	if err != nil {
		return "", err
	}
	var b strings.Builder
	if err := k.body.Execute(&b, u); err != nil {
		return "", fmt.Errorf("kernel %s for %s, %s: %w", k.Name, dt, isa, err)
	}
	return tidy(b.String()), nil
}

// A unit is what a template sees: the constants of one translation unit.
type unit struct {
	Symbol, Doc, Sum string
	Type             string
	Format           string // how the codes stand
	ISA              string
	Tile             int
	Act              string // C name of the activation kind
	Widths           []int  // attention: rows that one specialized function computes
	Max              int    // the largest of Widths
	Vectors16        int    // attention: vectors of 16 columns that it computes
	Parts            int    // registers that a vector of 16 takes
	Rows             []int  // matmul: the same, on vectors of IFL_LANES
	MaxRows          int    // the largest of Rows
	Chains           int    // chains of multiply-adds that a sum is made of
	Stream           int    // plain types: rows whose chains have registers
	Ahead            int    // plain types: prefetch distance of weights, in bytes; 0: no prefetch
	Pair             int    // plain types: rows that a function of two panels computes; 0 where there is none
	Accs             int    // accumulators: at least MaxRows; more where several may share a row

	Block     int  // columns of a tile-block; 1 for plain types
	Vectors   int  // code vectors as stored in a tile-block
	CodeBytes int  // bytes of codes at the start of a tile-block
	Stride    int  // bytes of a tile-block
	Signed    bool // codes are 128 + value, and there is no base
	ByLane    bool // dot products take their factor from a lane, and codes as signed bytes
	Less128   bool // codes of 8 bits, which lose 128 to be signed
	Corrected bool // sums of codes begin with what the 128 amounts to
	Depth     int  // where bytes are multiplied in pairs: code vectors whose products add up in 16 bits
	Unpacked  bool // one code a byte and float scales, as gemm unpacks them
	Decode    string
	Pick      string // C expression of code vector j of the tile-block at w, or empty

	bytes *format // of one code a byte
}

// Temps lists the variables that Decode needs.
func (u *unit) Temps() string {
	var names []string
	for i := range 7 {
		if n := fmt.Sprintf("p%d", i); strings.Contains(u.Decode, n) {
			names = append(names, n)
		}
	}
	return strings.Join(names, ", ")
}

// Bytes is the unit for tile-blocks that gemm has unpacked.
func (u *unit) Bytes() (*unit, error) {
	v := *u
	v.Unpacked = true
	v.CodeBytes = 16 * u.Block
	v.Vectors = u.Block / 4
	v.Stride = v.CodeBytes + 64
	if !u.Signed {
		v.Stride += 64
	}
	var err error
	v.Pick = u.bytes.pick
	v.Decode, err = u.bytes.decodeVectors(v.Vectors)
	return &v, err
}

func (k *Kernel) unit(dt tensor.DType, set ISA) (*unit, error) {
	u := &unit{
		Vectors16: set.vectors, Parts: set.parts, Symbol: k.Symbol(dt), Doc: k.Doc, Sum: k.Sum, Type: dt.String(), Tile: k.Tile, ISA: set.Name,
		Act: "IFL_" + strings.ToUpper(k.Act(dt)), Block: dt.Block(),
		Widths: upTo(set.widths, k.Tile), Rows: k.tileRows(set), Signed: dt.IsBlock() && !tensor.HasBase(dt), ByLane: set.byLane, Ahead: set.ahead,
	}
	if k.Tile > 0 {
		u.Max, u.MaxRows = slices.Max(u.Widths), slices.Max(u.Rows)
		u.Accs = max(u.MaxRows, 4)
	}
	if u.Chains = 1; !dt.IsBlock() && k.act == "" {
		u.Chains, u.Stream = 2, set.stream
		if set.parts == 1 {
			u.Pair = 8
		}
	}
	if u.Block == 1 {
		return u, nil
	}
	f := k.formats[dt]
	if f == nil {
		return nil, fmt.Errorf("kernel %s: no format file for type %s", k.Name, dt)
	}
	u.Less128 = (set.byLane || set.pairs) && tensor.MaxCode(dt) > 127
	if set.pairs {
		u.Depth = (1<<15 - 1) / (2 * 127 * min(tensor.MaxCode(dt), 128))
	}
	u.Corrected = u.Signed != u.Less128
	u.Format, u.bytes = f.doc, k.formats[tensor.Q8B32]
	u.Vectors = f.vectors(dt)
	u.CodeBytes = 64 * u.Vectors
	u.Stride = u.CodeBytes + 32
	if !u.Signed {
		u.Stride += 32
	}
	var err error
	u.Pick = f.pick
	u.Decode, err = f.decodeVectors(u.Vectors)
	return u, err
}

// tileRows are the numbers of rows that get a function of their own.
func (k *Kernel) tileRows(set ISA) []int {
	rows := upTo(set.rows, k.Tile)
	if len(k.rows) > 0 {
		rows = slices.DeleteFunc(rows, func(n int) bool { return !slices.Contains(k.rows, n) })
	}
	return rows
}

// EveryRows says whether there is a function for every number of rows.
func (u *unit) EveryRows() bool { return len(u.Rows) == u.Tile }

// RowsDown is Rows, the largest first.
func (u *unit) RowsDown() []int {
	down := slices.Clone(u.Rows)
	slices.Reverse(down)
	return down
}

// upTo keeps the widths that a tile of n rows can use.
func upTo(widths []int, n int) []int {
	var out []int
	for _, w := range widths {
		if w <= n {
			out = append(out, w)
		}
	}
	return out
}

var (
	trailing = regexp.MustCompile(`(?m)[ \t]+$`)
	blanks   = regexp.MustCompile(`\n{3,}`)
)

// tidy removes what templates leave behind: blanks at line ends, runs of empty
// lines.
func tidy(s string) string {
	s = trailing.ReplaceAllString(s, "")
	return strings.TrimLeft(blanks.ReplaceAllString(s, "\n\n"), "\n")
}

// funcs are the functions templates may call.
var funcs = template.FuncMap{
	"seq": func(n int) []int { // 0 … n-1
		out := make([]int, n)
		for i := range out {
			out[i] = i
		}
		return out
	},
	"add": func(a, b int) int { return a + b },
	"mul": func(a, b int) int { return a * b },
	"div": func(a, b int) int { return a / b },
}
