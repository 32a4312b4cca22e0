package expand

import (
	"fmt"
	"maps"
	"slices"
	"strconv"
	"strings"
	"sync"

	"github.com/iflowc/iflowc/ir/syntax"
	"github.com/iflowc/iflowc/runtime/kit/spelling"
)

// configFile is the file of the modules that an expression over config.json may call.
const configFile = "config.ifl"

// maxExpr is the most bytes of an expression over config.json.
const maxExpr = 4096

// maxExprSteps is the most steps of the expressions of a text: a list of 16,384 layers takes about 200,000.
const maxExprSteps = 1 << 18

// parsedExprs maps texts to their *syntax.Expr: a family's expressions are the same for each
// of its models, and parsing one costs far more than its value.
var parsedExprs sync.Map

// Evaluate returns the value of an expression over keys of config.json: nil, a bool, a float64, a string,
// a list of them, or a mapping of the configuration. Names in it are words, and what is computed of None is None.
// steps counts what all expressions of a text take, which is limited.
func Evaluate(lib *Library, src string, config map[string]any, steps *int) (v any, err error) {
	e, known := parsedExprs.Load(src)
	if !known {
		if len(src) > maxExpr {
			return nil, fmt.Errorf("expression %.40q…: %d bytes; want at most %d", src, len(src), maxExpr)
		}
		parsed, err := syntax.ParseExpr(strings.TrimPrefix(src, "="))
		if err != nil {
			return nil, fmt.Errorf("expression %q: %v", src, err)
		}
		e, _ = parsedExprs.LoadOrStore(src, parsed)
	}
	x := New(lib, nil, configHost{config: config})
	x.steps, x.limit = *steps, maxExprSteps
	f := &frame{Expander: x, lib: lib, module: &module{Module: &syntax.Module{}}, vars: x.scope(), words: true}
	defer func() {
		*steps = x.steps
		if failed, ok := err.(*Error); ok {
			err = fmt.Errorf("expression %q: %s", src, failed.Msg)
		}
	}()
	defer catch(&err)
	return decimal(f.eval(e.(*syntax.Expr))), nil
}

// A configHost has nothing but the keys of config.json.
type configHost struct {
	Host
	config map[string]any
}

func (h configHost) Config(_, key string) (any, bool) { v, ok := h.config[key]; return v, ok }

// decimal returns a value whose numbers are float64, as those of config.json are.
func decimal(v any) any {
	switch v := v.(type) {
	case int:
		return float64(v)
	case []any:
		for i, x := range v {
			v[i] = decimal(x)
		}
	}
	return v
}

// word returns what a name in an expression over config.json stands for.
func word(name string) any {
	if name == "true" || name == "false" {
		return name == "true"
	}
	return name
}

// wordCall calls a function, or a module of configFile.
func (f *frame) wordCall(e *syntax.Expr) []any {
	args := make([]any, len(e.Args))
	for i, a := range e.Args {
		args[i] = f.eval(a)
	}
	f.at = e.Pos
	if len(args) > 0 && args[0] == nil {
		return []any{nil}
	}
	if fn, ok := functions[e.Text]; ok {
		return []any{fn.call(f, e.Text, args)}
	}
	if s, ok := f.lib.sources[e.Text]; ok && s.file == configFile {
		m, err := f.lib.module(e.Text)
		if err != nil {
			panic(failure{err})
		}
		return f.call(f.lib, m, e, "", args, nil)
	}
	known := slices.Collect(maps.Keys(functions))
	for name, s := range f.lib.sources {
		if s.file == configFile {
			known = append(known, name)
		}
	}
	f.fail("unknown function %q%s", e.Text, spelling.DidYouMean(e.Text, known))
	return nil
}

// member returns the value of a key of a mapping or the entry of a list; nil if there is none.
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

// memberOf is member for a key that is a word or a number.
func (f *frame) memberOf(name string, args []any) any {
	if len(args) != 2 {
		f.fail("function %s has %d arguments, expected 2", name, len(args))
	}
	return f.plain(member(args[0], fmt.Sprint(args[1])))
}

// partsOf splits a text.
func (f *frame) partsOf(name string, args []any) any {
	words, ok := listOf[string](args)
	switch {
	case ok && len(words) == 2 && words[1] != "":
		return f.plain(strings.Split(words[0], words[1]))
	case len(args) != 2:
		f.fail("function %s needs a text and what is between its parts", name)
	}
	return args[0]
}

// keys returns the keys of a mapping, sorted.
func (f *frame) keys(name string, args []any) any {
	m, ok := only(args).(map[string]any)
	if !ok {
		f.fail("function %s needs a mapping", name)
	}
	return f.plain(slices.Sorted(maps.Keys(m)))
}

// entryOf returns an entry of a list, or a value that is no list.
func (f *frame) entryOf(name string, args []any) any {
	if len(args) != 2 {
		f.fail("function %s has %d arguments, expected 2", name, len(args))
	}
	list, isList := args[0].([]any)
	i, isInt := args[1].(int)
	switch {
	case !isList:
		return args[0]
	case isInt && i >= 0 && i < len(list):
		return list[i]
	}
	return nil
}

// eachOf replaces the entries of a list or the characters of a text. A last value without a pair replaces all others.
func (f *frame) eachOf(name string, args []any) any {
	var list []any
	switch v := only(args[:min(1, len(args))]).(type) {
	case []any:
		list = v
	case string:
		for _, c := range v {
			list = append(list, string(c))
		}
	default:
		f.fail("function %s: %s is neither a list nor a text", name, typeName(v))
	}
	out := make([]any, len(list))
	for i, x := range list {
		if out[i] = x; len(args)%2 == 0 {
			out[i] = f.entryOf("entry", []any{args[len(args)-1], i})
		}
		for k := 1; k+1 < len(args); k += 2 {
			if f.equal(x, args[k]) {
				out[i] = f.entryOf("entry", []any{args[k+1], i})
				break
			}
		}
	}
	return f.list(out)
}
