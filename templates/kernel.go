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

// A Kernel is a template of the catalog: an implementation of an op for some weight
// types. For one type and instruction set it renders to one C translation unit that
// defines one function, named by Symbol.
type Kernel struct {
	Name string // the template's file name
	Op   string // matmul (prototype ifl_mm), embed or attention
	Impl string // gemv, flat_gemm, gemm; embed
	Doc  string
	Sum  string // order of summation: kernels with equal Sum are bit-identical for a type
	When string // further conditions of use; empty: none
	// Types lists the supported weight types.
	Types []tensor.DType
	// Tile is the number of activation rows of a packed tile (tm of ifl_kernel.h).
	Tile int

	from    rowsFrom
	act     string   // packing of the activations; empty: that of the weight type
	rows    []int    // numbers of tile rows that have a function of their own; empty: those of the ISA
	isas    []string // supported instruction sets; empty: all
	body    *template.Template
	formats map[tensor.DType]*format
}

// Symbol returns the name of the C function for weights of type dt, such as
// ifl_flat_gemm_q4_b64.
func (k *Kernel) Symbol(dt tensor.DType) string {
	s := "ifl_" + k.Impl + "_" + dt.String()
	if k.act != "" {
		s += "_x" + k.act
	}
	return s
}

// From returns the minimum number of rows for which the kernel is used with weights
// of type dt when there is no profile; 0: only a profile selects it.
func (k *Kernel) From(dt tensor.DType) int {
	if n, ok := k.from[dt.String()]; ok {
		return n
	}
	return k.from[""]
}

// rowsFrom maps a weight type to a minimum number of rows; "" is any other type.
type rowsFrom map[string]int

// UnmarshalYAML decodes one number for all types, or a map of numbers by type.
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
			return fmt.Errorf("template %s: from: type %q is not among the kernel's types", template, name)
		}
	}
	return nil
}

// Act returns the packing of the kernel's activations: Act(dt), or the one that the
// template's header sets, such as "bf16" (rounded to bf16).
func (k *Kernel) Act(dt tensor.DType) string {
	if k.act != "" {
		return k.act
	}
	return Act(dt)
}

// Act returns the default packing of activations for weights of type dt: "f32"
// (unchanged), or "a8_b16", "a8_b32" or "a8_b64" (int8 in blocks of the weight type's size).
func Act(dt tensor.DType) string {
	switch {
	case !dt.IsBlock():
		return tensor.F32.String()
	case dt.Block() == 16:
		return tensor.A8B16.String()
	case dt.Block() == 32:
		return tensor.A8B32.String()
	default:
		return tensor.A8B64.String()
	}
}

// Source returns the C translation unit of the kernel for weights of type dt and an
// instruction set. It is deterministic.
func (k *Kernel) Source(dt tensor.DType, isa string) (string, error) {
	if !slices.Contains(k.Types, dt) {
		return "", fmt.Errorf("kernel %s does not support weights of type %s", k.Name, dt)
	}
	set, ok := findISA(isa)
	if !ok || len(k.isas) > 0 && !slices.Contains(k.isas, isa) {
		return "", fmt.Errorf("kernel %s: unknown instruction set %s", k.Name, isa)
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

// A unit is the data of a template: the constants of one translation unit.
type unit struct {
	Symbol, Doc, Sum string
	Type             string
	Format           string // doc of the format: the layout of the codes
	ISA              string
	Tile             int
	Act              string // C name of the activation kind
	Widths           []int  // attention: numbers of rows with a function of their own
	Max              int    // largest of Widths
	Vectors16        int    // attention: vectors of 16 columns per function
	Parts            int    // registers per vector of 16 floats
	Rows             []int  // matmul: numbers of rows with a function of their own
	MaxRows          int    // largest of Rows
	Chains           int    // independent accumulator chains of a sum
	Stream           int    // plain types: number of rows with chains that fit into registers
	Ahead            int    // plain types: prefetch distance in bytes; 0: no prefetch
	Pair             int    // plain types: rows of the function that computes two panels; 0: no such function
	Accs             int    // accumulators: at least MaxRows; more if a row may use several

	Block     int  // columns of a tile-block; 1 for plain types
	Vectors   int  // stored code vectors per tile-block
	CodeBytes int  // bytes of codes at the start of a tile-block
	Stride    int  // bytes of a tile-block
	Signed    bool // codes are Zero + value, without a base
	Zero      int
	Trellis   *levels // of a trellis-coded type
	ByLane    bool    // dot products read one factor from a lane and treat codes as signed bytes
	Less128   bool    // 8-bit codes, from which 128 is subtracted to make them signed
	Corrected bool    // sums start with the correction for Zero or the 128
	Depth     int     // with pairs: number of code vectors added in 16 bits before widening
	Unpacked  bool    // one code per byte and float scales, as unpacked by gemm
	Decode    string
	Pick      string // C expression of code vector j of the tile-block at w, or empty

	bytes *format // the format with one code per byte
}

// Temps returns the names of the variables that Decode uses.
func (u *unit) Temps() string {
	var names []string
	for _, kind := range "pv" {
		for i := range 10 {
			if n := fmt.Sprintf("%c%d", kind, i); strings.Contains(u.Decode, n) {
				names = append(names, n)
			}
		}
	}
	return strings.Join(names, ", ")
}

// Bytes returns the unit for tile-blocks unpacked by gemm.
func (u *unit) Bytes() (*unit, error) {
	v := *u
	v.Unpacked = true
	v.CodeBytes = 16 * u.Block
	v.Vectors = u.Block / 4
	v.Stride = v.stride()
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
	if u.Block == 1 || !dt.IsWeight() {
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
	u.Zero, u.Trellis = int(tensor.Zero(dt)), levelsOf(dt, tensor.Zero(dt))
	u.Stride = u.stride()
	var err error
	u.Pick, u.Decode, err = f.decode(dt, u.Vectors, 2)
	return u, err
}

// levels are the constants of ifl_levels for a trellis-coded type.
type levels struct {
	*tensor.Trellis
	Table             []int // Zero + level by code and the low bit of the code before, repeated to at least 64
	Next              int   // the bit of the code before
	Low, High, Middle int   // for levels in steps of three outside the middle ones
}

// levelsOf returns nil for other types. zero is the code of zero.
func levelsOf(dt tensor.DType, zero uint8) *levels {
	t := tensor.TrellisOf(dt)
	if t == nil {
		return nil
	}
	half := len(t.Levels) / 2
	l := &levels{Trellis: t, Next: half, Low: half - t.Inner, High: half + t.Inner, Middle: int(zero) - half}
	for i := range max(64, 2*half) {
		code, before := i%half, i/half%2
		l.Table = append(l.Table, int(zero)+int(t.Levels[2*code+before]))
	}
	return l
}

// Words returns C constants of entries 8i to 8i+3 and 8i+4 to 8i+7 of the table.
func (l *levels) Words(i int) string {
	var w [2]uint32
	for j := range 8 {
		w[j/4] |= uint32(l.Table[8*i+j]) << (8 * (j % 4))
	}
	return fmt.Sprintf("%#08xu, %#08xu", w[0], w[1])
}

// ScaleBytes returns the size of a row's scale in a tile-block.
func (u *unit) ScaleBytes() int {
	switch {
	case u.Unpacked:
		return 4
	case u.Trellis != nil && u.Trellis.ByteScale:
		return 1
	}
	return 2
}

// stride returns the bytes of a tile-block.
func (u *unit) stride() int {
	n := u.CodeBytes + 16*u.ScaleBytes()
	if !u.Signed {
		n += 16 * u.ScaleBytes()
	}
	return n
}

// Scales returns a C expression of the scales of IFL_LANES rows at an address.
func (u *unit) Scales(at string) string {
	switch u.ScaleBytes() {
	case 4:
		return "ifl_lanes_load((const float *)(" + at + "))"
	case 1:
		return "ifl_lanes_load_byte_scale(" + at + ")"
	}
	return "ifl_lanes_load_f16((const uint16_t *)(" + at + "))"
}

// Bases is Scales for the bases, which follow the scales of all 16 rows.
func (u *unit) Bases(scales string) string {
	return u.Scales(fmt.Sprintf("%s + %d", scales, 16*u.ScaleBytes()))
}

// Correction returns a C expression of a sum's first value from −128·Σx.
func (u *unit) Correction(sum string) string {
	switch {
	case u.Less128:
		return "-" + sum
	case u.Zero < 128:
		return fmt.Sprintf("%s / %d", sum, 128/u.Zero)
	}
	return sum
}

// tileRows returns the numbers of rows that have a function of their own.
func (k *Kernel) tileRows(set ISA) []int {
	rows := upTo(set.rows, k.Tile)
	if len(k.rows) > 0 {
		rows = slices.DeleteFunc(rows, func(n int) bool { return !slices.Contains(k.rows, n) })
	}
	return rows
}

// EveryRows reports whether every number of rows has a function of its own.
func (u *unit) EveryRows() bool { return len(u.Rows) == u.Tile }

// RowsDown returns Rows in descending order.
func (u *unit) RowsDown() []int {
	down := slices.Clone(u.Rows)
	slices.Reverse(down)
	return down
}

// upTo returns the widths that do not exceed n, the rows of a tile.
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

// tidy removes trailing blanks and repeated empty lines.
func tidy(s string) string {
	s = trailing.ReplaceAllString(s, "")
	return strings.TrimLeft(blanks.ReplaceAllString(s, "\n\n"), "\n")
}

// funcs are the functions that templates may call.
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
