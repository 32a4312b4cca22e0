package ir

import (
	"github.com/iflowc/iflowc/ir/tensor"
)

// A Pos is a place in a text. The zero Pos means "made by a pass".
type Pos struct {
	File string
	Line int // from 1
	Col  int // from 1
}

// A Module holds graphs that share weights and states: decode; encode and
// decode; a draft; one program per device.
type Module struct {
	Name    string
	Weights []*Value // Kind Weight, in order of declaration
	States  []*Value // Kind State
	Graphs  []*Graph
	Pos     Pos
}

// DraftGraph is the name, by convention, of the graph that proposes tokens from
// the hidden states that `decode` yields (Medusa heads). What it proposes is
// verified, so that rounding in it changes no result.
const DraftGraph = "medusa"

// A Graph is one step of a model, from token ids to its outputs.
type Graph struct {
	Name   string
	Dims   []*Dim   // sizes known only at run time
	Inputs []*Value // Kind Input
	Body   *Block   // Body.Yield are the graph's outputs
	Pos    Pos
}

// A Dim is a row count known only at run time.
type Dim struct {
	Name string // "T"
	Role string // "tokens", "out_rows" or "sequences"
}

// A Block lists ops in execution order and yields values.
type Block struct {
	Params []*Value // Kind Carry: values that repeat carries round
	Ops    []*Op
	Yield  []*Value
}

// An Op applies its definition to arguments.
type Op struct {
	Def         *OpDef
	Args        []Arg
	Results     []*Value    // Kind Result; Value.Op points back
	Attrs       Attrs       // part of the meaning
	Annotations Annotations // decisions only
	Body        *Block      // repeat, fuse, par
	Pos         Pos
}

// An Arg is a use of a value. Index picks one element of an array weight or
// state; nil means the current one of the enclosing repeat (and par) regions,
// outermost first.
type Arg struct {
	*Value
	Index []Index
}

// Kind says how a value comes to be.
type Kind uint8

// The kinds of values.
const (
	Result Kind = iota
	Carry
	Weight
	Input
	State
)

// A Value has exactly one definition.
type Value struct {
	Name      string // without its sigil
	Kind      Kind
	Type      Type              // of one element, for array weights; unused for states
	Count     []Range           // array weights and states: one range per index
	Transform *tensor.Transform // Weight: how its values come from stored tensors; Op "weight" refers to another weight of the module by Name
	State     *StateType        // State only
	Op        *Op               // definer, for a Result
	Pos       Pos
}

// A Range is the half-open index range lo..hi.
type Range struct{ Lo, Hi int }

// Len returns the number of indices in the range.
func (r Range) Len() int { return r.Hi - r.Lo }

// A Type is an element type and a shape.
type Type struct {
	Elem  tensor.DType
	Shape []Size
}

// A Size is a constant, or a Dim when that is not nil.
type Size struct {
	N   int
	Dim *Dim
}

// A StateType is a record of per-token rows, kept per sequence and paged.
type StateType struct {
	Fields []Field
	Page   int // rows a page
	Window int // rows that must be kept; 0 means all
	// Source marks rows that belong to the tokens of a sequence's source, which
	// an encoder reads whole in one step; they are counted apart from the rows
	// of the sequence itself.
	Source bool
}

// A Field is one part of a state's row, such as k: f16[3, 64].
type Field struct {
	Name  string
	Elem  tensor.DType
	Shape []int
}

// Trait says what passes may assume of an op.
type Trait uint32

// The traits.
const (
	Elementwise Trait = 1 << iota // out[i] depends on in[i] only (after broadcast)
	Commutative                   // of its two arguments
	RowWise                       // out row t depends on in row t only
	HasBody                       // repeat, fuse, par
	Writes                        // changes a state: order matters, never dropped
	Reads                         // reads a state: order against Writes matters
	Root                          // may be the one root of a fuse region
	Collective                    // an exchange between ranks of a par region
	TileLocal                     // may follow the root of a fuse region: needs only the root's output tile
	PerHead                       // with heads above 1, each head's columns depend on that head's columns only
)

// AttrKind is the type of an attribute.
type AttrKind uint8

// The kinds of attributes. A PerLayer attribute is a number or, inside a
// repeat, a list with one number per iteration.
const (
	IntAttr AttrKind = iota
	FloatAttr
	BoolAttr
	WordAttr  // one of Words
	DTypeAttr // an element type
	IntsAttr
	FloatsAttr
	PerLayerInt
	PerLayerFloat
)

// An AttrDef declares an attribute of an op.
type AttrDef struct {
	Name     string
	Kind     AttrKind
	Words    []string // WordAttr: the legal words
	Default  any      // nil and not Required: absent means the zero value
	Required bool
	Doc      string
}

// A ParamDef declares an argument of an op.
type ParamDef struct {
	Name     string
	Optional bool
	Variadic bool // last one only
	Each     bool // weights: the op takes one for every value of the last index, which is never written (see IndexCount)
	Kinds    []Kind
	Doc      string
}

// An OpDef is all the compiler knows about an op, in one place.
type OpDef struct {
	Name   string
	Doc    string // becomes docs/ops.md
	Params []ParamDef
	Attrs  []AttrDef
	Traits Trait
	// Infer gives the result types, or says what does not fit.
	Infer func(*Op) ([]Type, error)
	// Eval is the meaning, in float64. Nil for ops with bodies and for ops on
	// states, whose meaning the interpreter holds.
	Eval func(*Op, []*tensor.Tensor) ([]*tensor.Tensor, error)
	// Expr is C over vectors, for elementwise ops: "{0} / (1.0f + ifl_exp(-{0}))";
	// {name} is an attribute. See templates/include/ifl_vec.h for what it may call.
	Expr string
}

// Is reports whether the op has all the given traits.
func (d *OpDef) Is(t Trait) bool { return d.Traits&t == t }

// An Attr is one attribute. Val is int, float64, bool, string (a word),
// tensor.DType, []int or []float64, by the AttrDef's kind.
type Attr struct {
	Name string
	Val  any
}

// Attrs are in the order of the OpDef.
type Attrs []Attr

// An Annotation is a decision: !kernel(gemv, rows>=3: flat_gemm), !on(dev0, layer>=15: dev1), !slot(2).
type Annotation struct {
	Name string
	Args []AnnotationArg
}

// An AnnotationArg is a word, with the least row count (or layer) from which it holds.
type AnnotationArg struct {
	Of   string // "rows" or "layer"; "" for the unconditional first case
	From int
	Val  string
}

// Annotations are in order of printing.
type Annotations []Annotation
