package ir

import (
	"regexp"
	"strconv"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
)

// keywords are the words that no name can be without quotes, with the number inf.
const keywords = `module|weight|state|graph|input|yield|from|repeat|fuse|par`

var reserved = regexp.MustCompile(`^(inf|` + keywords + `)$`)

// QuoteName returns the name of a module as the text form writes it: in quotes if it is a
// keyword.
func QuoteName(name string) string {
	if reserved.MatchString(name) {
		return strconv.Quote(name)
	}
	return name
}

// irLexer defines the tokens of the text form. Keywords precede identifiers, because
// the lexer takes the first match. A newline is a token, because it ends a statement.
//
// Square brackets have separate tokens, because % is an operator inside an index.
var irLexer = lexer.MustStateful(lexer.Rules{
	"Common": {
		{Name: "Comment", Pattern: `#[^\n]*`},
		{Name: "Space", Pattern: `[ \t\r]+`},
		{Name: "EOL", Pattern: `\n`},
	},
	"Words": {
		{Name: "Number", Pattern: `[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?|inf\b`},
		{Name: "Ident", Pattern: `[A-Za-z_][A-Za-z0-9_]*`},
	},
	"Root": {
		lexer.Include("Common"),
		{Name: "String", Pattern: `"(\\.|[^"\\\n])*"`},
		{Name: "Keyword", Pattern: `\b(` + keywords + `)\b`},
		{Name: "Value", Pattern: `%[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*`},
		{Name: "Weight", Pattern: `@[A-Za-z0-9_]+(\.[A-Za-z0-9_]+)*`},
		{Name: "Annotation", Pattern: `![A-Za-z_][A-Za-z0-9_]*`},
		lexer.Include("Words"),
		{Name: "Open", Pattern: `\[`, Action: lexer.Push("Brackets")},
		{Name: "Punct", Pattern: `\.\.|>=|[-+(){}=:,]`},
	},
	"Brackets": {
		lexer.Include("Common"),
		lexer.Include("Words"),
		{Name: "Close", Pattern: `\]`, Action: lexer.Pop()},
		{Name: "Operator", Pattern: `\.\.|[-+*/%(),]`},
	},
})

// The structs below are the grammar. parse*.go converts them to the exported types
// of the package; nothing else uses them.

type gModule struct {
	Pos   lexer.Position
	Name  string   `parser:"EOL* 'module' @(Ident | String) '{' EOL+"`
	Decls []*gDecl `parser:"(@@ EOL+)* '}' EOL*"`
}

type gDecl struct {
	Weight *gWeight `parser:"@@"`
	State  *gState  `parser:"| @@"`
	Graph  *gGraph  `parser:"| @@"`
}

type gWeight struct {
	Pos       lexer.Position
	Name      string      `parser:"'weight' @Weight"`
	Count     []*gCount   `parser:"('[' @@ (',' @@)* ']')?"`
	Type      *gType      `parser:"':' @@"`
	Transform *gTransform `parser:"('from' @@)?"`
}

type gCount struct {
	Pos lexer.Position
	N   string `parser:"@(('-'|'+')? Number)"`
	Hi  string `parser:"('..' @(('-'|'+')? Number))?"`
}

type gType struct {
	Pos   lexer.Position
	Elem  string   `parser:"@Ident"`
	Sizes []*gSize `parser:"'[' (@@ (',' @@)*)? ']'"`
}

// A gSize is a signed number, or a word, in square brackets.
type gSize struct {
	Text string `parser:"@(Ident | ('-'|'+')? Number)"`
}

type gTransform struct {
	Pos    lexer.Position
	Source string     `parser:"@String"`
	Weight string     `parser:"| @Weight"`
	Name   string     `parser:"| @Ident"`
	Call   bool       `parser:"( @'('"`
	Args   []*gRecArg `parser:"@@ (',' @@)* ')' )?"`
}

// A gRecArg that is a name without parentheses is a word, such as an element type.
type gRecArg struct {
	Pos       lexer.Position
	Num       string      `parser:"@(('-'|'+')? Number)"`
	Transform *gTransform `parser:"| @@"`
}

type gState struct {
	Pos    lexer.Position
	Name   string    `parser:"'state' @Value"`
	Count  []*gCount `parser:"('[' @@ (',' @@)* ']')? ':'"`
	Fixed  []*gField `parser:"('fixed' '{' @@ (',' @@)* '}'"`
	Fields []*gField `parser:"| 'rows' '{' @@ (',' @@)* '}'"`
	Page   string    `parser:"'paged' @Number"`
	Window string    `parser:"('window' @Number)?"`
	Source bool      `parser:"@'source'?)"`
}

type gField struct {
	Name string `parser:"@(Ident|Keyword) ':'"`
	Type *gType `parser:"@@"`
}

type gGraph struct {
	Pos   lexer.Position
	Name  string   `parser:"'graph' @Ident"`
	Dims  []*gDim  `parser:"'(' (@@ (',' @@)*)? ')' '{' EOL+"`
	Stmts []*gStmt `parser:"(@@ EOL+)* '}'"`
}

type gDim struct {
	Pos  lexer.Position
	Name string `parser:"@Ident"`
	Role string `parser:"@Ident"`
}

type gStmt struct {
	Pos   lexer.Position
	Input *gInput `parser:"@@"`
	Yield *gYield `parser:"| @@"`
	Op    *gOp    `parser:"| @@"`
}

type gInput struct {
	Name string `parser:"'input' @Value ':'"`
	Type *gType `parser:"@@"`
}

type gYield struct {
	Pos  lexer.Position
	Args []*gArg `parser:"'yield' (@@ (',' @@)*)?"`
}

type gOp struct {
	Pos         lexer.Position
	Results     []*gName       `parser:"(@@ (',' @@)* '=')?"`
	Repeat      *gRepeat       `parser:"( 'repeat' @@"`
	Fuse        *gBody         `parser:"| 'fuse' @@"`
	Par         *gPar          `parser:"| 'par' @@"`
	Plain       *gPlain        `parser:"| @@ )"`
	Types       []*gType       `parser:"(':' @@ (',' @@)*)?"`
	Annotations []*gAnnotation `parser:"@@*"`
}

type gName struct {
	Pos  lexer.Position
	Name string `parser:"@Value"`
}

type gPlain struct {
	Pos   lexer.Position
	Name  string   `parser:"@Ident"`
	Args  []*gArg  `parser:"(@@ (',' @@)*)?"`
	Attrs []*gAttr `parser:"('{' (@@ (',' @@)*)? '}')?"`
}

type gArg struct {
	Pos   lexer.Position
	Name  string    `parser:"@(Value|Weight)"`
	Index []*gIndex `parser:"('[' @@ (',' @@)* ']')?"`
}

// A gIndex holds the words and signs of an index for tensor.ParseIndex.
type gIndex struct {
	Pos   lexer.Position
	Words []string `parser:"@(Number|Ident|'+'|'-'|'*'|'/'|'%'|'('|')')+"`
}

type gAttr struct {
	Pos  lexer.Position
	Name string `parser:"@(Ident|Keyword)"`
	Val  *gVal  `parser:"('=' @@)?"`
}

type gVal struct {
	Num  string   `parser:"@(('-'|'+')? Number)"`
	Word string   `parser:"| @(Ident|Keyword)"`
	List []*gSize `parser:"| '[' (@@ (',' @@)*)?"`
	End  bool     `parser:"@']'"`
}

type gRepeat struct {
	Lo    string    `parser:"@(('-'|'+')? Number) '..'"`
	Hi    string    `parser:"@(('-'|'+')? Number)"`
	Carry []*gCarry `parser:"'(' (@@ (',' @@)*)? ')'"`
	Body  *gBody    `parser:"@@"`
}

type gCarry struct {
	Pos  lexer.Position
	Name string `parser:"@Value '='"`
	Init *gArg  `parser:"@@"`
}

type gPar struct {
	TPSize string `parser:"@(('-'|'+')? Number)"`
	Body   *gBody `parser:"@@"`
}

type gBody struct {
	Stmts []*gStmt `parser:"'{' EOL+ (@@ EOL+)* '}'"`
}

type gAnnotation struct {
	Name string            `parser:"@Annotation"`
	Args []*gAnnotationArg `parser:"('(' @@ (',' @@)* ')')?"`
}

type gAnnotationArg struct {
	Pos   lexer.Position
	First string `parser:"@(Ident|Keyword|Number|String)"`
	From  string `parser:"('>=' @Number"`
	Val   string `parser:"':' @(Ident|Keyword|Number|String))?"`
}

var irParser = participle.MustBuild[gModule](
	participle.Lexer(irLexer),
	participle.Elide("Comment", "Space"),
)
