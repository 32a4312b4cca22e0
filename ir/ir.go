package ir

import (
	"github.com/iflowc/iflowc/ir/tensor"
)

// A Pos is a position in a text. The zero Pos means "created by a pass".
type Pos struct {
	File string
	Line int // from 1
	Col  int // from 1
}

// A Module holds graphs that share weights and states, for example decode, encode
// and decode, a draft graph, or one program per device.
type Module struct {
	Name    string
	Weights []*Value // of Kind Weight, in order of declaration
	States  []*Value // of Kind State
	Graphs  []*Graph
	Pos     Pos
}

// DraftGraph is the conventional name of the graph that drafts tokens from the hidden
// states that `decode` yields (Medusa heads). Drafts are verified, so rounding in
// this graph does not change results.
const DraftGraph = "medusa"

// A Graph computes one step of a model, from token ids to its outputs.
type Graph struct {
	Name   string
	Dims   []*Dim   // sizes known only at run time
	Inputs []*Value // of Kind Input
	Body   *Block   // Body.Yield lists the graph's outputs
	Pos    Pos
}

// A Dim is a row count known only at run time.
type Dim struct {
	Name string // "T"
	Role string // "tokens", "out_rows" or "sequences"
}

// A Block is a list of ops in execution order, with the values that it yields.
type Block struct {
	Params []*Value // of Kind Carry: the values that repeat carries between iterations
	Ops    []*Op
	Yield  []*Value
}

// An Op applies its definition to arguments.
type Op struct {
	Def         *OpDef
	Args        []Arg
	Results     []*Value    // of Kind Result; Value.Op points back
	Attrs       Attrs       // part of the semantics
	Annotations Annotations // scheduling decisions
	Body        *Block      // repeat, fuse, par
	Pos         Pos
}

// An Arg is a use of a value. Index selects one element of an array weight or state.
// If it is nil, the indices are those of the enclosing repeat and par regions,
// outermost first.
type Arg struct {
	*Value
	Index []Index
}

// A Kind states how a value is defined.
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
	Type      Type              // for array weights, the type of one element; unused for states
	Count     []Range           // array weights and states: one range per index
	Transform *tensor.Transform // weights only: computes the values from stored tensors; Op "weight" refers to another weight of the module by Name
	State     *StateType        // states only
	Op        *Op               // results only: the op that defines the value
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

// A Size is a constant, or a Dim if that is not nil.
type Size struct {
	N   int
	Dim *Dim
}

// A StateType is what a sequence keeps between steps: rows of its tokens, stored in
// pages, or, if it is fixed, fields whose size does not depend on the number of tokens.
type StateType struct {
	Fields []Field
	Fixed  bool // fields of the whole sequence, zero before its first token, instead of rows
	Page   int  // rows per page
	Window int  // number of rows that must be kept; 0: all
	// Source marks rows of the source tokens of a sequence. An encoder processes
	// them in one step, and they are counted separately from the rows of the
	// sequence itself.
	Source bool
}

// A Field is one part of a state, such as k: f16[3, 64].
type Field struct {
	Name  string
	Elem  tensor.DType
	Shape []int
}

// A Trait is a property of an op that passes may rely on.
type Trait uint32

// The traits of ops.
const (
	Elementwise Trait = 1 << iota // out[i] depends only on in[i] (after broadcast)
	Commutative                   // in its two arguments
	RowWise                       // output row t depends only on input row t
	HasBody                       // repeat, fuse, par
	Writes                        // writes a state: must keep its order and must not be dropped
	Reads                         // reads a state: must keep its order relative to Writes
	Root                          // may be the root of a fuse region
	Collective                    // communicates between ranks of a par region
	TileLocal                     // may follow the root of a fuse region: reads only the root's output tile
	PerHead                       // if heads > 1, each head's columns depend only on that head's columns
	AcrossRows                    // reads other rows of the token's sequence: only in graphs that run on whole sources
)

// An AttrKind is the type of an attribute.
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
	Default  any      // if nil and not Required, an absent attribute has the zero value
	Required bool
	Doc      string
}

// A ParamDef declares an argument of an op.
type ParamDef struct {
	Name     string
	Optional bool
	Variadic bool // only for the last parameter
	Each     bool // for weights: the op reads the elements for all values of the last index, which is never written (see IndexCount)
	Kinds    []Kind
	Doc      string
}

// An OpDef is the complete definition of an op for the compiler.
type OpDef struct {
	Name   string
	Doc    string // text in docs/ops.md
	Params []ParamDef
	Attrs  []AttrDef
	Traits Trait
	// Infer returns the result types, or an error if the op is invalid.
	Infer func(*Op) ([]Type, error)
	// Eval computes the results in float64. It is nil for ops with bodies, on states and
	// across rows, which the interpreter implements.
	Eval func(*Op, []*tensor.Tensor) ([]*tensor.Tensor, error)
	// Step, for ops on a fixed state, updates the state with the arguments of one token
	// and computes the token's row of the result.
	Step func(o *Op, state []float64, in StepArgs, out []float64)
	// Expr is a C expression over vectors, for elementwise ops, such as
	// "{0} / (1.0f + ifl_exp(-{0}))". {name} is an attribute. It may call the
	// functions of templates/include/ifl_vec.h.
	Expr string
}

// StepArgs are the arguments of OpDef.Step, for one token of one sequence.
type StepArgs struct {
	Args  [][]float64 // one per argument of the op: the token's row, or a whole weight; nil for the state
	First bool        // the token is the first of its sequence
	Rank  int         // rank in the enclosing par region
}

// Is reports whether the op has all the given traits.
func (d *OpDef) Is(t Trait) bool { return d.Traits&t == t }

// An Attr is one attribute. Val is int, float64, bool, string (a word),
// tensor.DType, []int or []float64, depending on the AttrDef's kind.
type Attr struct {
	Name string
	Val  any
}

// Attrs are attributes in the order of the OpDef.
type Attrs []Attr

// An Annotation is a decision, such as !kernel(gemv, rows>=3: flat_gemm), !on(dev0, layer>=15: dev1) or !slot(2).
type Annotation struct {
	Name string
	Args []AnnotationArg
}

// An AnnotationArg is a word, with the minimum row count (or layer) for which it applies.
type AnnotationArg struct {
	Of   string // "rows" or "layer"; "" for the first, unconditional case
	From int
	Val  string
}

// Annotations are annotations in printing order.
type Annotations []Annotation
