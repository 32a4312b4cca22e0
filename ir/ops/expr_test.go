package ops_test

import (
	"go/ast"
	"go/parser"
	"go/token"
	"math"
	"regexp"
	"strconv"
	"strings"
	"testing"

	"github.com/iflowc/iflowc/ir"
	"github.com/iflowc/iflowc/ir/ops"
)

// TestExprAgreesWithEval checks that the C expression of every elementwise op, evaluated
// over real numbers, agrees with Eval.
func TestExprAgreesWithEval(t *testing.T) {
	t.Parallel()
	seen := 0
	for _, d := range ops.Table {
		if d.Is(ir.Elementwise) != (d.Expr != "") {
			t.Errorf("%s: elementwise ops, and they alone, have a C expression", d.Name)
		}
		if d.Expr == "" {
			continue
		}
		seen++
		var attrs ir.Attrs
		for i, a := range d.Attrs {
			attrs = append(attrs, ir.Attr{Name: a.Name, Val: 1.5 + float64(i)})
		}
		for _, x := range []float64{-20, -2.25, -0.5, 0, 0.125, 1, 3, 20} {
			args := []any{f32(1, x)}
			if len(d.Params) == 2 {
				args = append(args, f32(1, 0.75-x))
			}
			want := apply(t, d, attrs, args...)[0].F[0]
			got := evalC(t, d, attrs, x, 0.75-x)
			if math.Abs(got-want) > 1e-6*(1+math.Abs(want)) {
				t.Errorf("%s(%g): C gives %g, Eval %g", d.Name, x, got, want)
			}
		}
	}
	if seen < 18 {
		t.Errorf("only %d elementwise ops", seen)
	}
}

var floatSuffix = regexp.MustCompile(`([0-9])f\b`)

func evalC(t *testing.T, d *ir.OpDef, attrs ir.Attrs, x, y float64) float64 {
	t.Helper()
	text := strings.NewReplacer("{0}", "x", "{1}", "y").Replace(d.Expr)
	for _, a := range attrs {
		text = strings.ReplaceAll(text, "{"+a.Name+"}", strconv.FormatFloat(a.Val.(float64), 'g', -1, 64))
	}
	e, err := parser.ParseExpr(floatSuffix.ReplaceAllString(text, "$1"))
	if err != nil {
		t.Fatalf("%s: %q: %v", d.Name, text, err)
	}
	return evalExpr(t, e, map[string]float64{"x": x, "y": y})
}

var cFunctions = map[string]func(a []float64) float64{
	"ifl_exp": func(a []float64) float64 { return math.Exp(a[0]) }, "ifl_tanh": func(a []float64) float64 { return math.Tanh(a[0]) },
	"ifl_erf": func(a []float64) float64 { return math.Erf(a[0]) }, "ifl_log": func(a []float64) float64 { return math.Log(a[0]) },
	"ifl_log1p": func(a []float64) float64 { return math.Log1p(a[0]) },
	"ifl_max":   func(a []float64) float64 { return math.Max(a[0], a[1]) }, "ifl_min": func(a []float64) float64 { return math.Min(a[0], a[1]) },
	"ifl_abs": func(a []float64) float64 { return math.Abs(a[0]) }, "ifl_sqrt": func(a []float64) float64 { return math.Sqrt(a[0]) },
	"ifl_floor": func(a []float64) float64 { return math.Floor(a[0]) }, "ifl_set1": func(a []float64) float64 { return a[0] },
}

func evalExpr(t *testing.T, e ast.Expr, vars map[string]float64) float64 {
	t.Helper()
	switch e := e.(type) {
	case *ast.Ident:
		return vars[e.Name]
	case *ast.BasicLit:
		f, err := strconv.ParseFloat(e.Value, 64)
		if err != nil {
			t.Fatal(err)
		}
		return f
	case *ast.ParenExpr:
		return evalExpr(t, e.X, vars)
	case *ast.UnaryExpr:
		return -evalExpr(t, e.X, vars)
	case *ast.CallExpr:
		f := cFunctions[e.Fun.(*ast.Ident).Name]
		if f == nil {
			t.Fatalf("unknown function %s", e.Fun.(*ast.Ident).Name)
		}
		var args []float64
		for _, a := range e.Args {
			args = append(args, evalExpr(t, a, vars))
		}
		return f(args)
	case *ast.BinaryExpr:
		x, y := evalExpr(t, e.X, vars), evalExpr(t, e.Y, vars)
		switch e.Op {
		case token.ADD:
			return x + y
		case token.SUB:
			return x - y
		case token.MUL:
			return x * y
		case token.QUO:
			return x / y
		}
	}
	t.Fatalf("unexpected %T", e)
	return 0
}
