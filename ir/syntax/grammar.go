// Package syntax parses the language of modules: text that the compiler's modules are
// written in, and the flat text of the IR, which is the part of the language without
// parameters, conditions and calls of other modules.
package syntax

import (
	"sync"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// A File is the modules of a file, and in front of them what they have in common.
type File struct {
	Heads   []*Head   `parser:"EOL* (@@ EOL+)*"`
	Modules []*Module `parser:"(@@ EOL*)*"`
}

// A Head is a section or a list of words.
type Head struct {
	Section *Section `parser:"@@"`
	Words   *Words   `parser:"| @@"`
}

// A Section says that the parameters of a file are keys of a section, which may be nested. It is
// about the instances of some names; without them, of its own. A whole section replaces those of
// the settings below it.
type Section struct {
	Pos   lexer.Position
	Name  string   `parser:"'section' @(Ident ('.' Ident)*)"`
	At    []string `parser:"('at' @Ident (',' @Ident)*)?"`
	Whole bool     `parser:"@'whole'?"`
}

// Words is a list of words that parameters of several modules may be.
type Words struct {
	Pos  lexer.Position
	Name string   `parser:"'words' @Ident '='"`
	List []string `parser:"@Ident ('|' @Ident)*"`
}

// A Module is what a file names: a module of the library, with arguments, or all graphs of
// a model.
type Module struct {
	Pos   lexer.Position
	Name  string  `parser:"'module' @(Ident | String)"`
	Args  []*Arg  `parser:"('(' (@@ (',' @@)*)? ')')?"`
	Items []*Item `parser:"'{' EOL+ (@@ EOL+)* '}'"`
}

// An Arg is an argument of a module: a value, with %, or a number, word or list.
type Arg struct {
	Pos     lexer.Position
	Name    string `parser:"@(Value | Weight | Ident)"`
	Default *Expr  `parser:"('=' @@)?"`
}

// An Item is a declaration or a statement of a module.
type Item struct {
	Graph *Graph `parser:"@@"`
	Param *Param `parser:"| @@"`
	Use   *Use   `parser:"| @@"`
	Stmt  *Stmt  `parser:"| @@"`
}

// A Param is a parameter of a module. One that is given follows from the model's files.
type Param struct {
	Pos     lexer.Position
	Given   bool       `parser:"(@'given' | 'param')"`
	Name    string     `parser:"@Ident ':'"`
	Type    *ParamType `parser:"@@"`
	Layered bool       `parser:"@('per' 'layer')?"`
	Default *Expr      `parser:"('=' @@)?"`
	Where   *Expr      `parser:"('where' @@"`      // true of all values but the default
	Want    string     `parser:"(',' @String)?)?"` // what an error says in place of it
}

// A ParamType is int, float, bool, word or list of one of them, the name of a list of words, or
// the words that the parameter may be.
type ParamType struct {
	Pos   lexer.Position
	List  bool     `parser:"@('list' 'of')?"`
	Names []string `parser:"@Ident ('|' @Ident)*"`
}

// A Use is parameters of another module that this one has too.
type Use struct {
	Pos   lexer.Position
	Names []string `parser:"'use' @Ident (',' @Ident)*"`
	From  string   `parser:"'from' @Ident"`
}

// A Check is a condition of parameters and shapes, and what the error says if it is false.
type Check struct {
	Pos  lexer.Position
	Cond *Expr  `parser:"'check' @@"`
	Else string `parser:"',' @String"`
}

// A Weight is a declaration of a weight. Of several sources the first that is stored counts.
type Weight struct {
	Pos      lexer.Position
	Optional bool     `parser:"'weight' @'?'?"`
	Name     string   `parser:"@Weight"`
	Count    []*Count `parser:"('[' @@ (',' @@)* ']')?"`
	Type     *Type    `parser:"':' @@"`
	From     []*Expr  `parser:"('from' @@ ('else' @@)*)?"`
}

// A Count is the number of elements of an array, or the range of its indices. In a module it
// is a variable that numbers the weights of a loop.
type Count struct {
	Pos lexer.Position
	N   string `parser:"@(('-'|'+')? Number | Ident)"`
	Hi  string `parser:"('..' @(('-'|'+')? Number | Ident))?"`
}

// A Type is an element type and the sizes of a shape. In a module the element type may be
// absent: a weight then has that of its tensors.
type Type struct {
	Pos   lexer.Position
	Elem  string  `parser:"@Ident?"`
	Sizes []*Expr `parser:"'[' (@@ (',' @@)*)? ']'"`
}

// A State is a declaration of a state: in flat text rows or fields in braces, in a module
// a call of rows or fixed.
type State struct {
	Pos    lexer.Position
	Name   string   `parser:"'state' @Value"`
	Count  []*Count `parser:"('[' @@ (',' @@)* ']')? ':'"`
	Call   *CallOf  `parser:"( @@"`
	Fixed  []*Field `parser:"| 'fixed' '{' @@ (',' @@)* '}'"`
	Fields []*Field `parser:"| 'rows' '{' @@ (',' @@)* '}'"`
	Page   string   `parser:"  'paged' @Number"`
	Window string   `parser:"  ('window' @Number)?"`
	Source bool     `parser:"  @'source'? )"`
}

// A Field is a field of a state.
type Field struct {
	Name string `parser:"@(Ident|Keyword) ':'"`
	Type *Type  `parser:"@@"`
}

// A Graph is a graph of a model.
type Graph struct {
	Pos   lexer.Position
	Name  string  `parser:"'graph' @Ident"`
	Dims  []*Dim  `parser:"'(' (@@ (',' @@)*)? ')' '{' EOL+"`
	Stmts []*Stmt `parser:"(@@ EOL+)* '}'"`
}

// A Dim is a size of a graph that is known at run time only.
type Dim struct {
	Pos  lexer.Position
	Name string `parser:"@Ident"`
	Role string `parser:"@Ident"`
}

// A Stmt is a statement.
type Stmt struct {
	Pos    lexer.Position
	Op     *Op     `parser:"@@"`
	Input  *Input  `parser:"| @@"`
	Yield  *Yield  `parser:"| @@"`
	If     *If     `parser:"| @@"`
	For    *For    `parser:"| @@"`
	Weight *Weight `parser:"| @@"`
	State  *State  `parser:"| @@"`
	Check  *Check  `parser:"| @@"`
}

// An Input is an input of a graph.
type Input struct {
	Name string `parser:"'input' @Value ':'"`
	Type *Type  `parser:"@@"`
}

// A Yield ends a graph, a region or a module with its results.
type Yield struct {
	Pos  lexer.Position
	Args []*Expr `parser:"'yield' (@@ (',' @@)*)?"`
}

// An If is a condition with statements.
type If struct {
	Pos  lexer.Position
	Cond *Expr     `parser:"'if' @@"`
	Then *Body     `parser:"@@"`
	Elif []*ElseIf `parser:"('elif' @@)*"`
	Else *Body     `parser:"('else' @@)?"`
}

// An ElseIf is a further condition.
type ElseIf struct {
	Cond *Expr `parser:"@@"`
	Then *Body `parser:"@@"`
}

// A For repeats statements for each element of a list. With a name its iterations are layers:
// instances of that name.
type For struct {
	Pos  lexer.Position
	Var  string `parser:"'for' @Ident 'in'"`
	In   *Expr  `parser:"@@"`
	As   string `parser:"('as' @Ident)?"`
	Body *Body  `parser:"@@"`
}

// Layers returns the list of the loop, and the name of its layers; "" if it has none.
func (s *For) Layers() (in Expr, name string) {
	in, name = *s.In, s.As
	if in.As != nil { // of a call, the name is that of the loop's layers
		name, in.As = in.As.Name, nil
	}
	return in, name
}

// An Op is an op of flat text, an assignment or a call.
type Op struct {
	Pos         lexer.Position
	Targets     *Targets      `parser:"@@?"`
	Repeat      *Repeat       `parser:"( 'repeat' @@"`
	Fuse        *Body         `parser:"| 'fuse' @@"`
	Par         *Par          `parser:"| 'par' @@"`
	Right       *Right        `parser:"| @@ )"`
	Types       []*Type       `parser:"(':' @@ (',' @@)*)?"`
	Annotations []*Annotation `parser:"@@*"`
}

// A Repeat is a loop of flat text.
type Repeat struct {
	Lo    string   `parser:"@(('-'|'+')? Number) '..'"`
	Hi    string   `parser:"@(('-'|'+')? Number)"`
	Carry []*Carry `parser:"'(' (@@ (',' @@)*)? ')'"`
	Body  *Body    `parser:"@@"`
}

// A Carry is a value that a loop carries, with the value before its first iteration.
type Carry struct {
	Pos  lexer.Position
	Name string `parser:"@Value '='"`
	Init *Expr  `parser:"@@"`
}

// A Par is a tensor-parallel group.
type Par struct {
	Ranks string `parser:"@(('-'|'+')? Number)"`
	Body  *Body  `parser:"@@"`
}

// A Body is statements in braces.
type Body struct {
	Stmts []*Stmt `parser:"'{' EOL+ (@@ EOL+)* '}'"`
}

// An Annotation is a decision of a pass.
type Annotation struct {
	Name string           `parser:"@Annotation"`
	Args []*AnnotationArg `parser:"('(' @@ (',' @@)* ')')?"`
}

// An AnnotationArg is a word, or one that counts from a number of rows or layers on.
type AnnotationArg struct {
	Pos   lexer.Position
	First string `parser:"@(Ident|Keyword|Number|String)"`
	From  string `parser:"('>=' @Number"`
	Val   string `parser:"':' @(Ident|Keyword|Number|String))?"`
}

var parser = sync.OnceValue(func() *participle.Parser[File] {
	return participle.MustBuild[File](participle.Lexer(definition{}))
})
