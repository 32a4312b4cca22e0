package spec

import (
	"fmt"
	"maps"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/alecthomas/participle/v2"
	"github.com/alecthomas/participle/v2/lexer"
	"gopkg.in/yaml.v3"
)

// A value of a model spec that starts with "$" or "=" is an expression over the
// hyper-parameters of config.json:
//
//	$rope_theta | 10000            the first present value
//	= 1 / sqrt($query_pre_attn_scalar)
//	act($hidden_act | gelu_new)    converts the activation name of transformers
//	$rope_scaling.factor           key of a mapping; of a list: the number of an entry
//	each($p, M, ssd, '*', full) a list, or the characters of a text, with entries replaced
//
// An expression over absent parameters has no value and does not set the key.
type exprFallback struct {
	Alts []*exprSum `parser:"'='? @@ ('|' @@)*"`
}

type exprSum struct {
	Left  *exprProduct `parser:"@@"`
	Right []*struct {
		Op  string       `parser:"@('+' | '-')"`
		Arg *exprProduct `parser:"@@"`
	} `parser:"@@*"`
}

type exprProduct struct {
	Left  *exprAtom `parser:"@@"`
	Right []*struct {
		Op  string    `parser:"@('*' | '/')"`
		Arg *exprAtom `parser:"@@"`
	} `parser:"@@*"`
}

type exprAtom struct {
	Ref   []string      `parser:"  '$' @Ident ('.' @(Ident | Number))*"`
	Text  string        `parser:"| @Text"`
	Num   *float64      `parser:"| @Number"`
	Call  *exprCall     `parser:"| @@"`
	Word  string        `parser:"| @Ident"`
	Group *exprFallback `parser:"| '(' @@ ')'"`
}

type exprCall struct {
	Name string          `parser:"@Ident '('"`
	Args []*exprFallback `parser:"@@ (',' @@)* ')'"`
}

var exprParser = participle.MustBuild[exprFallback](
	participle.Lexer(lexer.MustSimple([]lexer.SimpleRule{
		{Name: "Text", Pattern: `'[^']*'`},
		{Name: "Number", Pattern: `[0-9]+(\.[0-9]+)?([eE][-+]?[0-9]+)?`},
		{Name: "Ident", Pattern: `[A-Za-z_][A-Za-z0-9_]*`},
		{Name: "Punct", Pattern: `[-+*/|$.(),=]`},
		{Name: "Space", Pattern: `\s+`},
	})),
	participle.Elide("Space"), participle.UseLookahead(2),
)

// parsedExprs maps texts to their *exprFallback: a family's expressions are the same for each
// of its models, and parsing one costs far more than its value.
var parsedExprs sync.Map

// exprForm is the pattern of a text that is an expression.
const exprForm = `^(\$|= |(act|bf16|count|split|divided|int|each|layers_at|layers_below|layers_every|by_layer)\()`

var exprStart = regexp.MustCompile(exprForm)

func isExpr(n *yaml.Node) bool {
	return n.Kind == yaml.ScalarNode && n.Tag == "!!str" && exprStart.MatchString(n.Value)
}

// maxExpr is the most bytes of an expression; the parser is recursive.
const maxExpr = 4096

// evalExpr returns the expression's value: nil, a float64, a string, or a value of the
// configuration.
func evalExpr(src string, config map[string]any) (any, error) {
	e, known := parsedExprs.Load(src)
	if !known {
		if len(src) > maxExpr {
			return nil, fmt.Errorf("expression %.40q…: %d bytes; want at most %d", src, len(src), maxExpr)
		}
		parsed, err := exprParser.ParseString("", src)
		if err != nil {
			return nil, fmt.Errorf("expression %q: %v", src, err)
		}
		e, _ = parsedExprs.LoadOrStore(src, parsed)
	}
	x, err := e.(*exprFallback).eval(config)
	if err != nil {
		return nil, fmt.Errorf("expression %q: %v", src, err)
	}
	return x, nil
}

func (e *exprFallback) eval(c map[string]any) (any, error) {
	for _, a := range e.Alts {
		x, err := a.eval(c)
		if x != nil || err != nil {
			return x, err
		}
	}
	return nil, nil
}

func (e *exprSum) eval(c map[string]any) (any, error) {
	x, err := e.Left.eval(c)
	for _, r := range e.Right {
		if x == nil || err != nil {
			return x, err
		}
		var y any
		if y, err = r.Arg.eval(c); err == nil {
			x, err = arith(r.Op, x, y)
		}
	}
	return x, err
}

func (e *exprProduct) eval(c map[string]any) (any, error) {
	x, err := e.Left.eval(c)
	for _, r := range e.Right {
		if x == nil || err != nil {
			return x, err
		}
		var y any
		if y, err = r.Arg.eval(c); err == nil {
			x, err = arith(r.Op, x, y)
		}
	}
	return x, err
}

func (a *exprAtom) eval(c map[string]any) (any, error) {
	switch {
	case a.Ref != nil:
		var x any = c
		for _, name := range a.Ref {
			x = member(x, name)
		}
		return x, nil
	case a.Text != "":
		return strings.Trim(a.Text, "'"), nil
	case a.Num != nil:
		return *a.Num, nil
	case a.Call != nil:
		return a.Call.eval(c)
	case a.Group != nil:
		return a.Group.eval(c)
	case a.Word == "true", a.Word == "false":
		return a.Word == "true", nil
	}
	return a.Word, nil
}

// member returns the value of a key or the entry of a list; nil if there is none.
func member(x any, name string) any {
	switch v := x.(type) {
	case map[string]any:
		return v[name]
	case []any:
		if i, err := strconv.Atoi(name); err == nil && i >= 0 && i < len(v) {
			return v[i]
		}
	}
	return nil
}

func (k *exprCall) eval(c map[string]any) (any, error) {
	x, err := k.Args[0].eval(c)
	if x == nil || err != nil {
		return nil, err
	}
	switch k.Name {
	case "sqrt", "int", "exp", "bf16":
		f, ok := number(x)
		if !ok || f < 0 && k.Name != "exp" {
			return nil, fmt.Errorf("%s of %v: want a number", k.Name, x)
		}
		switch k.Name {
		case "int":
			return math.Trunc(f), nil
		case "exp":
			return math.Exp(f), nil
		case "bf16":
			return roundBF16(f), nil
		}
		return math.Sqrt(f), nil
	case "act":
		return activationName(x)
	}
	if f := listFunctions[k.Name]; f != nil {
		args := []any{x}
		for _, a := range k.Args[1:] {
			y, err := a.eval(c)
			if err != nil {
				return nil, err
			}
			args = append(args, y)
		}
		return f(args, c)
	}
	return nil, fmt.Errorf("unknown function %q%s", k.Name, suggest(k.Name, append([]string{"sqrt", "int", "exp", "bf16", "act"}, slices.Sorted(maps.Keys(listFunctions))...)))
}

func arith(op string, x, y any) (any, error) {
	if y == nil {
		return nil, nil
	}
	a, aok := number(x)
	b, bok := number(y)
	if !aok || !bok {
		return nil, fmt.Errorf("%v %s %v: want numbers", x, op, y)
	}
	switch op {
	case "+":
		return a + b, nil
	case "-":
		return a - b, nil
	case "*":
		return a * b, nil
	}
	if b == 0 {
		return nil, fmt.Errorf("division by zero")
	}
	return a / b, nil
}

// number converts any number type of the JSON, YAML and GGUF decoders to float64.
func number(x any) (float64, bool) {
	switch v := x.(type) {
	case int:
		return float64(v), true
	case int8:
		return float64(v), true
	case int16:
		return float64(v), true
	case int32:
		return float64(v), true
	case int64:
		return float64(v), true
	case uint8:
		return float64(v), true
	case uint16:
		return float64(v), true
	case uint32:
		return float64(v), true
	case uint64:
		return float64(v), true
	case float32:
		return float64(v), true
	case float64:
		return v, true
	}
	return 0, false
}

// activationName returns the activation function that transformers calls so.
func activationName(x any) (any, error) {
	s, _ := x.(string)
	if a, ok := spelled("activations", s); ok {
		return a, nil
	}
	var known []string
	for _, p := range spellings()["activations"] {
		known = append(known, p.from)
	}
	return nil, fmt.Errorf("activation %v is not available%s", x, suggest(s, known))
}
